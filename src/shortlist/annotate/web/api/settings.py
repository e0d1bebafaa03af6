"""The settings of a running project; what changes is in force from the next question on."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter

from shortlist.annotate.db.class_map import ended_classes
from shortlist.annotate.db.statements import class_ids, class_names
from shortlist.annotate.live.plan import LivePlan, live_plan
from shortlist.annotate.problems import Conflict, Invalid
from shortlist.annotate.queue.ways import MOST_LISTED
from shortlist.annotate.web.api.access import App, OffLoop, Owner, Reviewer, Services, refusals
from shortlist.annotate.web.api.review_models import SettingsIn, SettingsOut

router = APIRouter(tags=["settings"], route_class=OffLoop, responses=refusals(401, 403, 404, 409))
MODEL = ("policy", "epsilon", "names", "score")
"""What is about the model that chooses lists, and not about the project."""


@router.get("/settings")
def settings(app: App, who: Reviewer) -> SettingsOut:
    """The settings that are in force."""
    now, plan = app.project.settings, app.tuning.live.plan
    with app.project.store.read() as connection:
        names, ended = class_names(connection), ended_classes(connection)
    shown = plan or LivePlan(size=now.size)  # what a model would be told that was asked for now
    return SettingsOut(
        title=now.title,
        size=shown.size,
        overlap=now.overlap,
        gold_every=now.gold_every,
        policy="uniform" if plan is None else plan.policy,
        epsilon=shown.epsilon,
        names=shown.names,
        score=shown.score,
        typing=app.queue.typing,
        compare=now.compare,
        pinned=None if now.pinned is None or now.pinned in ended else names[now.pinned],
        text_column=now.text_column,
        item_column=now.item_column,
    )


@router.patch("/settings")
def change_settings(app: App, who: Owner, body: SettingsIn) -> SettingsOut:
    """Change settings, from the next question on. Overlap is for items that come in from now on."""
    given = {name: value for name, value in body.model_dump().items() if value is not None}
    model = {name: given.pop(name) for name in MODEL if name in given}
    if "pinned" in given:
        given["pinned"] = _pinned(app, given["pinned"])
    if "size" in given:
        _check_size(app, given["size"])
    if given.get("compare") and not app.project.settings.compare:
        _may_compare(app)
    app.tuning.change(given, _plan(app, given, model))
    app.audit(who, "change settings", "", **body.model_dump(exclude_none=True))
    return settings(app, who)


def _plan(app: Services, given: dict[str, Any], model: dict[str, Any]) -> LivePlan | None:
    """What the model is told from now on: as now, but for what was given."""
    running, changed = app.tuning.live.plan, app.project.with_settings(given)
    before = running.to_dict() if running else changed.live if "policy" in model else None
    if before is not None:
        before |= {"size": changed.size} if "size" in given else {}
        before |= {"mistakes": changed.overlap > 1} if "overlap" in given else {}
    return live_plan(replace(changed, live=before), **model)


def _pinned(app: Services, name: str) -> int | None:
    if not name:
        return None
    with app.project.store.read() as connection:
        found = class_ids(connection).get(name)
    if found is None:
        raise Invalid("no_class", f"pinned: no class is named {name!r}")
    return found


def _check_size(app: Services, size: int) -> None:
    with app.project.store.read() as connection:
        count = len(class_names(connection)) - len(ended_classes(connection))
    if size > count:
        raise Invalid("too_long", f"size {size}: expected at most the {count} classes of the project")


def _may_compare(app: Services) -> None:
    with app.project.store.read() as connection:
        count, ended = len(class_names(connection)), ended_classes(connection)
    if count > MOST_LISTED:
        raise Conflict("too_many", f"{count} classes: full lists are compared with at most {MOST_LISTED}")
    if ended:
        raise Conflict("class_ended", "a class was merged or retired: all lists must be of the same classes")

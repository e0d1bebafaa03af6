"""What an owner does with files and settings: look at what an upload would do, read it in, change the settings."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from shortlist.annotate.formats import EXPORTS, media_type
from shortlist.annotate.live.plan import live_plan
from shortlist.annotate.project.importing import ImportOutcome
from shortlist.annotate.queue.chooser import UniformChooser
from shortlist.annotate.queue.ways import Comparing
from shortlist.annotate.web.api.access import App, OffLoop, Owner, Reviewer, Services, refusals
from shortlist.annotate.web.api.models import MAX_ID, SkippedOut
from shortlist.annotate.web.api.review_models import ExportRow, SettingsIn, SettingsOut, UploadOut
from shortlist.annotate.web.uploads import Upload, What

router = APIRouter(tags=["data"], route_class=OffLoop, responses=refusals(401, 403, 404, 409))
RawBody = Annotated[bytes, Body(media_type="application/octet-stream")]
FileName = Annotated[str, Query(min_length=1, max_length=500, description="its ending says what it is")]
Column = Annotated[str | None, Query(max_length=500, description="of a table of items; as `annotate add` says")]
Strict = Annotated[bool, Query(description="refuse all if any item is bad, instead of leaving it out")]
MANY = 100


@router.post("/uploads/preview")
def look(
    app: App,
    who: Owner,
    body: RawBody,
    what: What,
    name: FileName,
    text_column: Column = None,
    item_column: Column = None,
) -> UploadOut:
    """What a file would do: how many items come in, what is left out and why. Nothing is changed."""
    found = app.uploads.look(what, name, body, text_column=text_column or None, item_column=item_column or None)
    return _out(None, "preview", found)


@router.post("/uploads", status_code=202)
def upload(
    app: App,
    who: Owner,
    body: RawBody,
    what: What,
    name: FileName,
    text_column: Column = None,
    item_column: Column = None,
    strict: Strict = False,
) -> UploadOut:
    """Read a file in, as `shortlist annotate add` does; ask for its number to see how far it is."""
    app.audit(who, "upload", what)
    columns = {"text_column": text_column or None, "item_column": item_column or None}
    return _progress(app.uploads.begin(what, name, body, **columns, strict=strict))


@router.get("/uploads/{number}")
def progress(app: App, who: Owner, number: Annotated[int, Path(ge=1, le=MAX_ID)]) -> UploadOut:
    """How far an upload is."""
    return _progress(app.uploads.get(number))


@router.get("/exports")
def exports(app: App, who: Reviewer) -> list[ExportRow]:
    """The files that can be downloaded."""
    return [ExportRow(name=name, media_type=media_type(name)) for name in EXPORTS]


@router.get("/settings")
def settings(app: App, who: Reviewer) -> SettingsOut:
    """The settings as they are stored."""
    return _settings(app, restart=False)


@router.patch("/settings")
def change_settings(app: App, who: Owner, body: SettingsIn) -> SettingsOut:
    """Change settings. Overlap is for items that come in from now on.

    `restart` says whether the server must be started again for new lists: for those that a model chooses, and where
    several processes serve.
    """
    wanted = {name: value for name, value in body.model_dump().items() if value is not None}
    policy = wanted.pop("policy", None)
    changed = app.project.with_settings(wanted)
    live = {**(changed.live or {}), **({"size": changed.size} if "size" in wanted else {})}
    if "overlap" in wanted:
        live["mistakes"] = changed.overlap > 1
    plan = live_plan(replace(changed, live=live if changed.live else None), policy)
    changed = app.project.with_settings({**wanted, "live": None if plan is None else plan.to_dict()})
    before = app.project.settings
    app.project.store_settings(changed)
    app.queue.leases.gold_every = changed.gold_every
    app.audit(who, "change settings", "", **body.model_dump(exclude_none=True))
    resized = changed.size == before.size or _resize(app, changed.size)
    return _settings(app, restart=before.live != changed.live or not resized)


def _resize(app: Services, size: int) -> bool:
    """Whether lists have this size from now on: where chance draws them, in this process alone."""
    chooser = app.queue.chooser
    plain = chooser.chooser if isinstance(chooser, Comparing) else chooser
    if app.board.rows > 1 or not isinstance(plain, UniformChooser):
        return False
    plain.size = size
    return True


def _settings(app: Services, restart: bool) -> SettingsOut:
    now = app.project.settings
    policy = "uniform" if now.live is None else str(now.live.get("policy", "uniform"))
    numbers = {"size": now.size, "overlap": now.overlap, "gold_every": now.gold_every}
    return SettingsOut(title=now.title, **numbers, policy=policy, typing=now.typing, restart=restart)


def _progress(upload: Upload) -> UploadOut:
    found = _out(upload.id, upload.state, upload.outcome)
    return found.model_copy(update={"done": upload.done, "total": upload.total, "message": upload.message})


def _out(number: int | None, state: str, outcome: ImportOutcome) -> UploadOut:
    skipped = [SkippedOut(item=item[:200], reason=reason) for item, reason in outcome.skipped[:MANY]]
    counts = {"added": outcome.added, "classes": outcome.classes, "known": outcome.known, "scored": outcome.scored}
    more = max(len(outcome.skipped) - MANY, 0)
    return UploadOut(id=number, state=state, skipped=skipped, more_skipped=more, **counts)  # type: ignore[arg-type]

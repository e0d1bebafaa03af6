"""What the trainer knows besides the answers: names of the classes, known classes, scores of another model."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from shortlist.annotate.db.class_map import ended_classes
from shortlist.annotate.db.schema import Correction, Item
from shortlist.annotate.db.statements import all_descriptions, class_names
from shortlist.annotate.live.items import LiveItems, kind_of
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.scores import scores_of, scores_stamp
from shortlist.policies import Expert, experts_from_scores, names_expert


@dataclass(frozen=True)
class Start:
    """All of it. When any of it has changed, the trainer learns everything anew."""

    class_names: tuple[str, ...]
    descriptions: tuple[str, ...]
    known: dict[int, int]
    """Item id -> class, or NO_CLASS."""
    corrected: frozenset[int]
    """Those of them that were asked about, until a reviewer gave them their class."""
    latest: int
    """The latest correction: of gold items, too."""
    ended: frozenset[int]
    """Classes that were merged into others or retired."""
    scores: tuple[int, int] | None


def read_start(connection: Connection, project: Project) -> Start:
    """What is known now."""
    names, described = class_names(connection), all_descriptions(connection)
    known = connection.execute(select(Item.id, Item.known).where(Item.known.is_not(None)))
    asked = select(Correction.item_id).where(Correction.version == 1, Correction.before.is_(None))
    return Start(
        tuple(names),
        tuple(described.get(k, "") for k in range(len(names))),
        {item_id: int(label) for item_id, label in known if label is not None},
        frozenset(connection.execute(asked).scalars()),
        _latest(connection),
        frozenset(ended_classes(connection)),
        scores_stamp(project),
    )


Added = tuple[int, int, int, tuple[int, int] | None]


def added(connection: Connection, project: Project) -> Added:
    """What starts a training when it changes: known classes, corrections, ended classes, scores.

    Changes of the rest wait for the next training.
    """
    count = connection.execute(select(func.count()).where(Item.known.is_not(None))).scalar_one()
    return int(count), _latest(connection), len(ended_classes(connection)), scores_stamp(project)


def _latest(connection: Connection) -> int:
    return int(connection.execute(select(func.max(Correction.id))).scalar() or 0)


def make_experts(
    connection: Connection, project: Project, items: LiveItems, start: Start, plan: LivePlan
) -> Sequence[Expert]:
    """What knows something about the classes of these items; names say nothing about pictures."""
    found: list[Expert] = []
    if plan.names and kind_of(connection) == "text":
        texts = dict(connection.execute(select(Item.id, Item.text)).all())
        mine = [texts[item_id] or "" for item_id in items.ids]
        found.append(
            names_expert(
                mine,
                start.class_names,
                items.x,
                descriptions=start.descriptions,
                features=plan.features,
                seed=plan.seed,
            )
        )
    table = scores_of(project, items.ids, items.num_classes)
    return found if table is None else [*found, *experts_from_scores(table)]

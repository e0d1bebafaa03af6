"""Items and what was said about them, a page at a time; and one item with its whole history.

Pages go by the item's number. A request looks at no more than `LOOK` items: where few of them match, the next request
goes on from there, so that each is quick among a million items.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, or_, select

from shortlist.annotate.db.class_map import ClassMap, read_class_map
from shortlist.annotate.db.schema import NO_CLASS, Annotator, Answer, Correction, Item, Note, Question, Slot
from shortlist.annotate.db.statements import NO_UNDO, STANDING, class_names
from shortlist.annotate.problems import NotFound
from shortlist.annotate.project.review.corrections import standing

LOOK = 20_000
EXCERPT = 240
_OPEN_FLAG = and_(Note.kind == "flag", Note.closed_at.is_(None))


@dataclass(frozen=True)
class Filter:
    """Which items: those for which all of it holds.

    `class_id`, `person`, `none`, `slower` and `quicker` (seconds) are about one and the same answer; `doubtful` lists
    the items worth a second look, `words` are in the name or in the text.
    """

    class_id: int | None = None
    person: int | None = None
    none: bool = False
    slower: float | None = None
    quicker: float | None = None
    answered: bool = False
    disagreement: bool = False
    flagged: bool = False
    corrected: bool = False
    skipped: bool = False
    gold: bool = False
    words: str | None = None
    doubtful: Sequence[int] | None = None


def browse(
    connection: Connection, wanted: Filter, after: int = 0, limit: int = 50
) -> tuple[list[dict[str, Any]], int | None]:
    """The next items by number, and the number after which to go on; None: there are no more."""
    classes = read_class_map(connection)
    looked_at = _candidates(connection, wanted, classes, after).subquery()
    found = select(Item.id).where(Item.id.in_(select(looked_at.c.id)), *_conditions(wanted, classes))
    ids = list(connection.execute(found.order_by(Item.id).limit(limit)).scalars())
    further: int | None = ids[-1] if ids else None
    if len(ids) < limit:
        last, count = connection.execute(select(func.max(looked_at.c.id), func.count()).select_from(looked_at)).one()
        further = last if count == LOOK else None
    rows = _rows(connection, ids, classes)
    return [row for row in rows if not wanted.disagreement or disagree(row["answers"])], further


def _candidates(connection: Connection, wanted: Filter, classes: ClassMap, after: int) -> Select[Any]:
    """The next `LOOK` items of the rarest kind that an index can list."""
    column: Any = Item.id
    where: list[ColumnElement[bool]] = []
    if wanted.doubtful is not None:
        where = [Item.id.in_(wanted.doubtful)]
    elif wanted.flagged:
        column, where = Note.item_id, [_OPEN_FLAG]
    elif wanted.corrected:
        column = Correction.item_id
    elif wanted.gold:
        where = [Item.gold.is_not(None)]
    elif wanted.person is not None:
        column, where = Question.item_id, [Question.annotator_id == wanted.person]
    elif wanted.class_id is not None:
        parts = _parts(classes, wanted.class_id)
        few = select(Answer.id).where(Answer.class_id.in_(parts)).limit(LOOK + 1).subquery()
        if connection.execute(select(func.count()).select_from(few)).scalar_one() <= LOOK:
            picked = select(Question.item_id.label("id")).join(Answer, Answer.question_id == Question.id)
            rare = picked.where(Answer.class_id.in_(parts), Question.item_id > after).distinct()
            return rare.order_by(Question.item_id).limit(LOOK)
    return select(column.label("id")).where(column > after, *where).distinct().order_by(column).limit(LOOK)


def _conditions(wanted: Filter, classes: ClassMap) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.words:
        escaped = wanted.words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found.append(or_(*(column.ilike(f"%{escaped}%", escape="\\") for column in (Item.name, Item.text))))
    if wanted.gold:
        found.append(Item.gold.is_not(None))
    if wanted.flagged:
        found.append(exists().where(Note.item_id == Item.id, _OPEN_FLAG))
    if wanted.corrected:
        found.append(exists().where(Correction.item_id == Item.id))
    if wanted.skipped:
        found.append(_said(Answer.kind == "skip", Answer.attempt == Question.attempt))
    about = _about_an_answer(wanted, classes)
    if about or wanted.answered:
        found.append(_said(*STANDING, *about))
    if wanted.disagreement:  # at least two people, of whom one gave a class; which lists they saw is looked at later
        found += [_said(*STANDING, func.coalesce(Answer.class_id, NO_CLASS) != NO_CLASS), _several()]
    return found


def _about_an_answer(wanted: Filter, classes: ClassMap) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    said = func.coalesce(Answer.class_id, NO_CLASS)  # not by the index of classes: the item leads to its answers
    if wanted.class_id is not None:
        found.append(said.in_(_parts(classes, wanted.class_id)))
    if wanted.person is not None:
        found.append(Question.annotator_id == wanted.person)
    if wanted.none:
        found.append(said == NO_CLASS)
    if wanted.slower is not None:
        found.append(Answer.seconds >= wanted.slower)
    if wanted.quicker is not None:
        found.append(Answer.seconds <= wanted.quicker)
    return found


def _said(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether somebody said something of the kind about the item; the slots lead there, by their index."""
    joined = and_(Slot.item_id == Item.id, Question.slot_id == Slot.id, Answer.question_id == Question.id)
    return exists().where(joined, NO_UNDO, *conditions)


def _several() -> ColumnElement[bool]:
    done = select(func.count()).where(Slot.item_id == Item.id, Slot.annotator_id.is_not(None))
    return done.correlate(Item).scalar_subquery() > 1


def _parts(classes: ClassMap, class_id: int) -> list[int]:
    return [class_id, *(old for old in classes.into if classes.now(old) == class_id)]


def _rows(connection: Connection, ids: Sequence[int], classes: ClassMap) -> list[dict[str, Any]]:
    columns = (Item.id, Item.name, Item.kind, Item.media_type, Item.state, Item.gold, Item.known)
    texts = func.substr(Item.text, 1, EXCERPT).label("text")
    rows = connection.execute(select(*columns, texts).where(Item.id.in_(ids)).order_by(Item.id)).mappings()
    given = _answers(connection, ids, classes)
    flags = select(Note.item_id, func.count()).where(Note.item_id.in_(ids), _OPEN_FLAG).group_by(Note.item_id)
    flagged = {item: count for item, count in connection.execute(flags)}  # noqa: C416 - rows are no pairs to mypy
    skips = _skips(connection, ids)
    corrected = set(connection.execute(select(Correction.item_id).where(Correction.item_id.in_(ids))).scalars())
    return [
        {
            **row,
            "answers": given.get(row["id"], []),
            "flags": flagged.get(row["id"], 0),
            "corrected": row["id"] in corrected and standing(connection, row["id"]) is not None,
            "skips": skips.get(row["id"], []),
        }
        for row in rows
    ]


def _answers(connection: Connection, ids: Sequence[int], classes: ClassMap) -> dict[int, list[dict[str, Any]]]:
    """What stands, as it reads today, by item."""
    statement = (
        select(Question.item_id, Question.shortlist, Question.inclusion, Question.served_at, Annotator.name)
        .add_columns(Answer.class_id, Answer.kind, Answer.seconds, Question.annotator_id)
        .join_from(Slot, Question, Question.slot_id == Slot.id)
        .join(Answer, Answer.question_id == Question.id)
        .join(Annotator, Annotator.id == Question.annotator_id)
        .where(Slot.item_id.in_(ids), NO_UNDO, *STANDING)
        .order_by(Answer.id)
    )
    found = defaultdict(list)
    for row in connection.execute(statement):
        typed = row.kind == "typed"
        seen = classes.read(row.shortlist, row.probabilities, row.class_id, typed=typed, served_at=row.served_at)
        found[row.item_id].append(
            {
                "person": row.annotator_id,
                "name": row.name,
                "answer": seen.typed if seen.typed is not None else seen.picked,
                "typed": seen.typed is not None,
                "shortlist": seen.shortlist,
                "seconds": row.seconds,
            }
        )
    return found


def _skips(connection: Connection, ids: Sequence[int]) -> dict[int, list[str]]:
    """Why people skipped it, an empty word where they did not say, by item."""
    statement = (
        select(Question.item_id, Answer.reason)
        .join_from(Slot, Question, Question.slot_id == Slot.id)
        .join(Answer, Answer.question_id == Question.id)
        .where(Slot.item_id.in_(ids), NO_UNDO, Answer.kind == "skip", Answer.attempt == Question.attempt)
        .order_by(Answer.id)
    )
    found = defaultdict(list)
    for item, reason in connection.execute(statement):
        found[item].append(reason or "")
    return found


def disagree(answers: Sequence[dict[str, Any]]) -> bool:
    """Whether two people gave different classes, or one refused a class that another gave."""
    given = {one["answer"] for one in answers if one["answer"] is not None}
    refused = {k for one in answers if one["answer"] is None for k in one["shortlist"]}
    people = {one["person"] for one in answers}
    return len(people) > 1 and (len(given) > 1 or bool(given & refused))


def history(connection: Connection, item_id: int) -> dict[str, Any]:
    """One item and everything that was said about it, oldest first."""
    item = connection.execute(select(Item.__table__).where(Item.id == item_id)).mappings().first()
    if item is None:
        raise NotFound("no_item", f"there is no item {item_id}")
    names = class_names(connection)
    events = _asked(connection, item_id) + _notes(connection, item_id) + _corrections(connection, item_id)
    latest = connection.execute(select(func.max(Correction.version)).where(Correction.item_id == item_id)).scalar()
    answers = _answers(connection, [item_id], read_class_map(connection)).get(item_id, [])
    shown = ("id", "name", "kind", "text", "media_type", "state", "gold", "known", "pending")
    return {
        **{name: item[name] for name in shown},
        "version": int(latest or 0),
        "corrected": standing(connection, item_id) is not None,
        "disagreement": disagree(answers),
        "answers": answers,
        "events": sorted(events, key=lambda one: one["at"]),
        "names": {k: names[k] for one in events for k in (*one["shortlist"], one["class_id"]) if k is not None},
    }


_NO_EVENT: dict[str, Any] = {"class_id": None, "shortlist": [], "seconds": None, "words": "", "stands": True}


def _asked(connection: Connection, item_id: int) -> list[dict[str, Any]]:
    statement = (
        select(Answer.id, Answer.kind, Answer.class_id, Answer.seconds, Answer.answered_at, Answer.reason)
        .add_columns(Question.shortlist, Question.attempt.label("now"), Answer.attempt, Annotator.name)
        .join_from(Slot, Question, Question.slot_id == Slot.id)
        .join(Answer, Answer.question_id == Question.id)
        .join(Annotator, Annotator.id == Question.annotator_id)
    )
    said = connection.execute(statement.where(Slot.item_id == item_id, NO_UNDO)).all()
    taken_back = connection.execute(statement.where(Answer.supersedes.in_([row.id for row in said]))).all()
    return [
        {
            **_NO_EVENT,
            **{"kind": row.kind, "who": row.name, "at": row.answered_at, "class_id": row.class_id},
            **{"shortlist": row.shortlist, "seconds": row.seconds, "words": row.reason or ""},
            "stands": row.kind != "undo" and row.attempt == row.now,
            "id": row.id,
        }
        for row in (*said, *taken_back)
    ]


def _notes(connection: Connection, item_id: int) -> list[dict[str, Any]]:
    rows = connection.execute(select(Note.__table__).where(Note.item_id == item_id))
    return [
        {
            **_NO_EVENT,
            **{"kind": row.kind, "who": row.author, "at": row.at, "words": row.text, "id": row.id},
            "stands": row.closed_at is None,
        }
        for row in rows
    ]


def _corrections(connection: Connection, item_id: int) -> list[dict[str, Any]]:
    rows = connection.execute(select(Correction.__table__).where(Correction.item_id == item_id)).all()
    undone = {row.undoes for row in rows}
    return [
        {
            **_NO_EVENT,
            **{"kind": "correction" if row.kind == "correction" else "correction undone", "who": row.author},
            **{"at": row.at, "class_id": row.class_id, "words": row.why, "id": row.id},
            "stands": row.kind == "correction" and row.version not in undone,
        }
        for row in rows
    ]

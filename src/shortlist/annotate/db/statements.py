"""Small reads and writes on the tables that the queue, the importer and the formats share."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    Connection,
    Integer,
    Table,
    Update,
    bindparam,
    case,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from shortlist.annotate.db.class_map import ENDED_IDS, ended_classes, read_class_map
from shortlist.annotate.db.quick import Quick, Row, Runs
from shortlist.annotate.db.schema import annotators, answers, classes, items, questions, slots

Member = TypeVar("Member")

_LAST_CLASS = select(func.max(classes.c.id))
_CLASS_NAMES = select(classes.c.name).order_by(classes.c.id)
_DESCRIPTIONS = select(classes.c.id, classes.c.description).where(classes.c.description.is_not(None))
_SHOWN_CLASSES = select(classes).where(classes.c.id.in_(bindparam("shown", expanding=True)))
_LAST_RANK = select(func.max(slots.c.rank))
STANDING = (answers.c.kind.in_(("answer", "typed")), answers.c.attempt == questions.c.attempt)
"""An answer, picked or typed, that was not taken back, as conditions on `answers` joined to `questions`: an undo begins
a new attempt."""
NO_UNDO = text("answers.kind <> 'undo'")
"""The condition of the index `answers_once`, word for word: without it SQLite does not use that index to go from a
question to its answers, but reads all answers."""
_REFUSED = (
    select(questions.c.shortlist, questions.c.probabilities, questions.c.served_at, answers.c.class_id, answers.c.kind)
    .join(answers, answers.c.question_id == questions.c.id)
    .where(questions.c.slot_id == bindparam("slot"), NO_UNDO, *STANDING)
)
_CHANGE = bindparam("change", type_=Integer)
_PENDING, _STATE = items.c.pending + _CHANGE, items.c.state
_SETTLE = (
    update(items)
    .where(items.c.id == bindparam("item"))
    .values(
        pending=_PENDING,
        state=case(
            (or_(items.c.state == "closed", _CHANGE == 0), items.c.state), (_PENDING == 0, "done"), else_="open"
        ),
    )
)
_COUNT = (
    update(annotators)
    .where(annotators.c.id == bindparam("annotator"))
    .values(
        answers=annotators.c.answers + bindparam("answer"),
        nones=annotators.c.nones + bindparam("none"),
        skips=annotators.c.skips + bindparam("skip"),
    )
)
SET_SLOT = (
    update(slots)
    .where(slots.c.id == bindparam("slot"))
    .values(
        state=bindparam("to_state"),
        annotator_id=bindparam("holder"),
        lease_until=bindparam("until"),
        turn=bindparam("to_turn"),
    )
)
OF_KNOWN = exists().where(items.c.id == slots.c.item_id, items.c.known.is_not(None))
ASKABLE = ~OF_KNOWN
"""A slot of an item that may be asked about, as a condition on `slots`: its class is not known already."""
_REOPEN = (
    update(slots).where(slots.c.item_id == bindparam("item"), slots.c.state == "closed", ASKABLE).values(state="free"),
    update(items)
    .where(items.c.id == bindparam("item"), items.c.state == "closed", items.c.known.is_(None))
    .values(state="open"),
)
_FREE_SLOT = SET_SLOT.values(rank=bindparam("to_rank"), state=case((OF_KNOWN, "closed"), else_="free"))


_IMPORTS = 6_074_113  # of an advisory lock: any fixed number that no other lock has


def take_turns(connection: Connection) -> None:
    """Wait until no other transaction imports; others wait for this one. SQLite has one writer anyway.

    Two imports of a file would add the same rows, or wait for each other's for ever.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_IMPORTS)))


def stop_asking(connection: Connection) -> None:
    """Wait for those who are asking or answering; others wait until this transaction ends. SQLite does so anyway.

    For changes of many items or of the classes. Whoever asks or answers locks slots first, before they look which
    classes and items there are, and in an order of their own: to lock the slots of many items could end in a deadlock.
    """
    take_turns(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE slots IN EXCLUSIVE MODE"))


def batches(rows: Sequence[Member], size: int) -> Iterator[Sequence[Member]]:
    """`rows` cut into pieces of at most `size`."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def count_classes(connection: Runs) -> int:
    """How many classes there are. A `Quick` transaction reads this once."""
    memo: dict[str, Any] = getattr(connection, "memo", {})
    if "classes" not in memo:
        last = connection.execute(_LAST_CLASS).scalar()
        memo["classes"] = 0 if last is None else int(last) + 1
    return int(memo["classes"])


def expect_classes(connection: Quick) -> None:
    """Send what `count_classes` and `ended_classes` will ask for."""
    if "classes" not in connection.memo:
        connection.expect(_LAST_CLASS)
    if "ended" not in connection.memo:
        connection.expect(ENDED_IDS)


def class_names(connection: Runs) -> list[str]:
    """Every class name, in the order of the ids."""
    return list(connection.execute(_CLASS_NAMES).scalars())


def current_names(connection: Runs) -> list[str]:
    """The names of the classes in use, in the order of the ids."""
    ended = set(ended_classes(connection))
    return [name for k, name in enumerate(class_names(connection)) if k not in ended]


def class_ids(connection: Runs) -> dict[str, int]:
    """Name -> id of every class in use; the name of a merged class gives the class that it is a part of now."""
    classes = read_class_map(connection)
    found = {name: classes.now(k) for k, name in enumerate(class_names(connection))}
    return {name: k for name, k in found.items() if k is not None}


def shown_classes(connection: Runs, shown: set[int]) -> dict[int, Row]:
    """The name and description of each class as they are now: an admin may change them while people work."""
    known: dict[int, Row] = getattr(connection, "memo", {}).setdefault("shown", {})
    missing = list(shown - known.keys())
    if missing:
        rows = connection.execute(_SHOWN_CLASSES, {"shown": missing}).mappings()
        known.update((row["id"], row) for row in rows)
    return {k: known[k] for k in shown}


def all_descriptions(connection: Runs) -> dict[int, str]:
    """The descriptions of the classes that have one."""
    return {row["id"]: row["description"] for row in connection.execute(_DESCRIPTIONS).mappings()}


def next_rank(connection: Runs) -> int:
    """The rank behind every slot there is."""
    last = connection.execute(_LAST_RANK).scalar()
    return 0 if last is None else int(last) + 1


Later = Callable[[], int]
"""Returns the id of a row that was sent to the database: to be called once everything else was sent as well."""


class Together:
    """An insert and the updates that go with it: one statement on PostgreSQL, one after another on SQLite.

    The values of the inserted row are given under its columns' names with `new_` before them.
    """

    def __init__(self, table: Table, columns: Sequence[str], *updates: Update) -> None:
        self._insert, self._updates = insert(table).values(_new(table, columns)).returning(table.c.id), updates
        made = self._insert.cte("made")
        parts = [one.cte(f"part{k}") for k, one in enumerate(updates)]
        self._folded = select(made.c.id).add_cte(*parts)

    def run(self, connection: Quick, values: dict[str, Any]) -> Later:
        """All of it; the id is that of the new row."""
        if connection.folds:
            return connection.execute(self._folded, values).scalar_one
        made = connection.execute(self._insert, values).scalar_one()
        for statement in self._updates:
            connection.execute(statement, values)
        return lambda: int(made)


class OwnSlot:
    """A new slot and the question in it, inserted in the same way."""

    def __init__(self) -> None:
        self._slot = insert(slots).values(_new(slots, _SLOT, "slot_")).returning(slots.c.id)
        given = _new(questions, _ASKED)
        self._question = insert(questions).values(given).returning(questions.c.id)
        slot, others = self._slot.cte("slot"), [name for name in _ASKED if name != "slot_id"]
        row = select(slot.c.id, *(given[name].label(name) for name in others))
        made = insert(questions).from_select(["slot_id", *others], row).returning(questions.c.id).cte("made")
        self._folded = select(made.c.id).add_cte(made)

    def run(self, connection: Quick, values: dict[str, Any]) -> Later:
        """Both; the id is that of the question."""
        if connection.folds:
            return connection.execute(self._folded, values).scalar_one
        slot = connection.execute(self._slot, values).scalar_one()
        made = connection.execute(self._question, {**values, "new_slot_id": slot}).scalar_one()
        return lambda: int(made)


def _new(table: Table, columns: Sequence[str], before: str = "new_") -> dict[str, BindParameter[Any]]:
    return {name: bindparam(before + name, type_=table.c[name].type) for name in columns}


_ANSWERED = ("question_id", "attempt", "kind", "class_id", "seconds", "answered_at", "supersedes")
_ASKED = (
    *("slot_id", "item_id", "annotator_id", "turn", "shortlist", "policy", "policy_version", "probabilities"),
    *("seed", "state", "attempt", "served_at", "way"),
)
_SLOT = ("item_id", "number", "annotator_id", "gold", "state", "rank", "turn", "lease_until")
SET_QUESTION = (
    update(questions)
    .where(questions.c.id == bindparam("question"))
    .values(state=bindparam("to_state_of_question"), attempt=bindparam("to_attempt"))
)
SETTLE_ANSWER = Together(answers, _ANSWERED, SET_QUESTION, _COUNT, SET_SLOT, _SETTLE)
"""An answer that ends its slot; to a gold item the change is 0, so that it takes as long as any other."""
LEASE = Together(questions, _ASKED, SET_SLOT)
"""A question and the lease of its slot."""
LEASE_GOLD = OwnSlot()


_INSERTS: dict[tuple[str, ...], Any] = {}


def insert_id(connection: Runs, table: Table, values: dict[str, Any]) -> int:
    """Insert one row and return its id."""
    key = (table.name, *values)
    statement = _INSERTS.get(key)
    if statement is None:
        given = {name: bindparam(name, type_=table.c[name].type) for name in values}
        statement = _INSERTS[key] = insert(table).values(given).returning(table.c.id)
    return int(connection.execute(statement, values).scalar_one())


def set_slot(
    connection: Runs, slot_id: int, state: str, turn: int, holder: int | None = None, until: float | None = None
) -> None:
    """Move a slot to another state."""
    values = {"slot": slot_id, "to_state": state, "to_turn": turn, "holder": holder, "until": until}
    connection.execute(SET_SLOT, values)


def free_slot(connection: Runs, slot: Row, turn: int) -> None:
    """Put a slot back: at the end of the queue, so that nobody has to look again at what they passed over.

    A gold slot belongs to one annotator and is not passed on: it waits for them if its next turn has come, else it is
    closed. A slot of an item whose class has become known is closed, too.
    """
    last = next_rank(connection)  # for gold slots as well, or the time would give them away
    if slot["gold"]:
        state = "free" if turn > slot["turn"] else "closed"
        set_slot(connection, slot["slot_id"], state, turn, slot["annotator_id"])
        return
    values = {"slot": slot["slot_id"], "to_turn": turn, "holder": None, "until": None}
    connection.execute(_FREE_SLOT, values | {"to_rank": last})


def reopen(connection: Runs, item_id: int) -> None:
    """Open an item again that the policy had closed; one of known class stays closed."""
    for statement in _REOPEN:
        connection.execute(statement, {"item": item_id})


def settle_item(connection: Runs, item_id: int, change: int) -> None:
    """Count an item's waiting slots down (-1) or up (+1); with none left it is done."""
    connection.execute(_SETTLE, {"item": item_id, "change": change})


def count_answer(connection: Runs, annotator_id: int, kind: str, class_id: int | None, change: int) -> None:
    """Keep an annotator's counters up to date, so that no page has to count the answers."""
    connection.execute(_COUNT, {"annotator": annotator_id, **counts(kind, class_id, change)})


def counts(kind: str, class_id: int | None, change: int) -> dict[str, int]:
    """By how much an answer or a skip changes the counters."""
    answered = 0 if kind == "skip" else change
    return {"answer": answered, "none": answered if class_id is None else 0, "skip": change - answered}


def refused_classes(connection: Runs, slot_id: int) -> list[int]:
    """The classes that were shown in this slot and answered with None, as they read today (`class_map`).

    Any other answer ends a slot.
    """
    rows = connection.execute(_REFUSED, {"slot": slot_id}).mappings().all()
    classes_now = read_class_map(connection)
    seen = [
        classes_now.read(
            row["shortlist"],
            row["probabilities"],
            row["class_id"],
            typed=row["kind"] == "typed",
            served_at=row["served_at"],
        )
        for row in rows
    ]
    return sorted({k for one in seen if one.picked is None for k in one.shortlist})

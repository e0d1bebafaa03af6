"""Small reads and writes on the tables that the queue, the importer and the formats share."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from shortlist.annotate.schema import Annotator, Item, LabelClass, Question, Slot

Row = TypeVar("Row")


def batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """`rows` cut into pieces of at most `size`."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


class ClassNames:
    """The class names by id, read again only when a class was added (possibly by another process)."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def all(self, connection: Connection) -> Sequence[str]:
        """Every class name, in the order of the ids."""
        last = connection.execute(select(func.max(LabelClass.id))).scalar()
        if (-1 if last is None else last) + 1 != len(self._names):
            self._names = list(connection.execute(select(LabelClass.name).order_by(LabelClass.id)).scalars())
        return self._names


def next_rank(connection: Connection) -> int:
    """The rank behind every slot there is."""
    last = connection.execute(select(func.max(Slot.rank))).scalar()
    return 0 if last is None else int(last) + 1


def insert_id(connection: Connection, table: Any, values: dict[str, Any]) -> int:
    """Insert one row and return its id."""
    key = connection.execute(insert(table).values(values)).inserted_primary_key
    assert key is not None  # every table of ours has a counted id
    return int(key[0])


def free_slot(connection: Connection, slot: RowMapping, turn: int | None = None) -> None:
    """Put a slot back: to the end of the queue, so that nobody's place in it has to be looked at again.

    A gold slot belongs to one annotator and is not passed on.
    """
    values: dict[str, Any] = {"annotator_id": None, "lease_until": None}
    if slot["gold"]:
        values = {"state": "closed", "lease_until": None}
    else:
        values |= {"state": "free", "rank": next_rank(connection)}
    if turn is not None:
        values["turn"] = turn
    connection.execute(update(Slot).where(Slot.id == slot["slot_id"]).values(values))


def settle_item(connection: Connection, item_id: int, change: int) -> None:
    """Count an item's waiting slots down (-1) or up (+1); at none left it is done."""
    pending = connection.execute(
        update(Item).where(Item.id == item_id).values(pending=Item.pending + change).returning(Item.pending)
    ).scalar_one()
    state = "done" if pending == 0 else "open"
    connection.execute(update(Item).where(Item.id == item_id, Item.state != "closed").values(state=state))


def count_answer(connection: Connection, annotator_id: int, kind: str, class_id: int | None, change: int) -> None:
    """Keep an annotator's counters, so that no page has to count the answers."""
    if kind == "skip":
        values: dict[str, Any] = {"skips": Annotator.skips + change}
    else:
        values = {"answers": Annotator.answers + change}
        if class_id is None:
            values["nones"] = Annotator.nones + change
    connection.execute(update(Annotator).where(Annotator.id == annotator_id).values(values))


def refused_classes(connection: Connection, slot_id: int) -> list[int]:
    """The classes that were shown in this slot and answered None; other answers end a slot."""
    lists = connection.execute(
        select(Question.shortlist).where(Question.slot_id == slot_id, Question.state == "answered")
    ).scalars()
    return sorted({k for shown in lists for k in shown})

"""Gold answers for items that are in the project already."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, bindparam, delete, select, update

from shortlist.annotate.db.schema import Item, Question, Slot, items
from shortlist.annotate.db.statements import batches, class_ids, stop_asking
from shortlist.annotate.project.classes import Names, insert_classes
from shortlist.annotate.project.importing import ImportOutcome
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import is_name
from shortlist.errors import InputError

AT_ONCE = 500  # items per statement


def mark_gold(
    project: Project, known: Mapping[str, str], *, classes: Names = (), strict: bool = False
) -> ImportOutcome:
    """Make the items in `known` (item -> class) gold, as if they had come in as such, all in one transaction.

    Only items that nobody was asked about: an answer is either trained on or used to measure somebody, and that must
    not change once it may have been exported. Everybody is asked about the new ones, too. `classes` are added first.
    """
    outcome = ImportOutcome()
    with project.store.write() as connection:
        outcome.classes = insert_classes(connection, classes)
        stop_asking(connection)
        ids_by_name = class_ids(connection)
        good = check_gold(connection, known, ids_by_name, outcome)
        for batch in batches(list(good.items()), AT_ONCE):
            _mark(connection, [{"item": item_id, "class": ids_by_name[label]} for item_id, label in batch])
        outcome.added = len(good)
        if strict and outcome.skipped:
            name, reason = outcome.skipped[0]
            raise InputError(f"nothing changed: {name}: {reason}")
    return outcome


def check_gold(
    connection: Connection, known: Mapping[str, str], classes: Collection[str], outcome: ImportOutcome
) -> dict[int, str]:
    """Item id -> class, of those that can be gold; `outcome` is told about the others."""
    good: dict[int, str] = {}
    for batch in batches(list(known), AT_ONCE):
        there = {row.name: row for row in connection.execute(_ITEMS.where(Item.name.in_(filter(is_name, batch))))}
        ids = [row.id for row in there.values()]
        asked = set(connection.execute(_ASKED.where(Slot.item_id.in_(ids))).scalars())
        for name in batch:
            item = there.get(name)
            if item is None:
                outcome.skipped.append((name, "a gold answer for an item that does not exist"))
            elif known[name] not in classes:
                outcome.skipped.append((name, f"the gold answer {known[name]!r} is not a class"))
            elif item.gold is not None:
                outcome.skipped.append((name, "is a gold item already"))
            elif item.known is not None:
                outcome.skipped.append((name, "its class is known already, and learned from"))
            elif item.id in asked:
                outcome.skipped.append((name, "somebody was asked about it already"))
            else:
                good[item.id] = known[name]
    return good


_ITEMS = select(Item.id, Item.name, Item.gold, Item.known)
_GOLD = update(items).where(items.c.id == bindparam("item")).values(gold=bindparam("class"), pending=0, state="open")
_ASKED = select(Slot.item_id).join(Question, Question.slot_id == Slot.id).distinct()


def _mark(connection: Connection, told: Sequence[Mapping[str, int]]) -> None:
    connection.execute(delete(Slot).where(Slot.item_id.in_([one["item"] for one in told])))
    connection.execute(_GOLD, told)

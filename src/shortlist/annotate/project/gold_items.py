"""Gold answers for items that are in the project already."""

from collections.abc import Mapping

from sqlalchemy import Connection, case, delete, select, update

from shortlist.annotate.db.schema import Annotator, Item, LabelClass, Question, Slot
from shortlist.annotate.db.statements import batches
from shortlist.annotate.project.importing import Report
from shortlist.annotate.project.project import Project
from shortlist.errors import InputError

AT_ONCE = 500  # items a statement


def mark_gold(project: Project, known: Mapping[str, str], *, strict: bool = False) -> Report:
    """Make gold items of those in `known` (item -> class), as if they had come in as such, all in one transaction.

    Only of items that nobody was asked about: an answer is one to train on or one to measure somebody with, and which
    it is must not change once it may have been exported. Every person is asked about the new ones, too.
    """
    report = Report()
    with project.store.write() as connection:
        class_ids = {name: k for k, name in connection.execute(select(LabelClass.id, LabelClass.name))}
        for batch in batches(list(known), AT_ONCE):
            names = [name for name in batch if "\x00" not in name]  # PostgreSQL has no word for it
            items = {row.name: row for row in connection.execute(_ITEMS.where(Item.name.in_(names)))}
            _look_back(connection, min((row.id for row in items.values()), default=None))
            ids = [row.id for row in items.values()]
            # locked before it is asked who was asked: nobody is from here on
            connection.execute(project.store.locked(select(Slot.id).where(Slot.item_id.in_(ids)), of=Slot)).all()
            asked = set(connection.execute(_ASKED.where(Slot.item_id.in_(ids))).scalars())
            for name in batch:
                item, gold = items.get(name), class_ids.get(known[name])
                if item is None:
                    report.skipped.append((name, "a gold answer for an item that is not there"))
                elif gold is None:
                    report.skipped.append((name, f"the gold answer {known[name]!r} is not a class"))
                elif item.gold is not None:
                    report.skipped.append((name, "a gold item already"))
                elif item.id in asked:
                    report.skipped.append((name, "was asked already: its answers are not gold ones"))
                else:
                    _mark(connection, item.id, gold)
                    report.added += 1
        if strict and report.skipped:
            name, reason = report.skipped[0]
            raise InputError(f"nothing changed: {name}: {reason}")
    return report


_ITEMS = select(Item.id, Item.name, Item.gold)
_ASKED = select(Slot.item_id).join(Question, Question.slot_id == Slot.id).distinct()


def _look_back(connection: Connection, first: int | None) -> None:
    """Gold items are given by their ids: people go back to before the first of these (and pass what they have seen)."""
    if first is not None:
        seen = case((Annotator.gold_seen < first, Annotator.gold_seen), else_=first - 1)
        connection.execute(update(Annotator).values(gold_seen=seen))


def _mark(connection: Connection, item_id: int, gold: int) -> None:
    connection.execute(delete(Slot).where(Slot.item_id == item_id))
    connection.execute(update(Item).where(Item.id == item_id).values(gold=gold, pending=0, state="open"))

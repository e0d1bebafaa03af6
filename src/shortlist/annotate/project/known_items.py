"""Items whose class the owner knows: a model learns from them, and nobody is asked about them."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, select, update

from shortlist.annotate.db.schema import Item, items, slots
from shortlist.annotate.db.statements import batches, class_ids, stop_asking
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import is_name

AT_ONCE = 500  # items per transaction: annotators of a running server wait for one batch
_KNOW = update(items).where(items.c.id == bindparam("item")).values(known=bindparam("class"), state="closed")


def mark_known(project: Project, known: Mapping[str, str]) -> tuple[int, list[tuple[str, str]]]:
    """Store the class of each of these items (item -> class); how many there were, and which were left out and why.

    A class given before is replaced. Whoever holds a question about the item may still answer it. Gold items stay what
    they are: people are measured on them, so a model must not learn them.
    """
    count, skipped = 0, list[tuple[str, str]]()
    for batch in batches(list(filter(is_name, known)), AT_ONCE):
        with project.store.write() as connection:
            stop_asking(connection)
            found = connection.execute(select(Item.id, Item.name, Item.gold).where(Item.name.in_(batch))).all()
            ids_by_name, told = class_ids(connection), []
            for row in found:
                if row.gold is not None:
                    skipped.append((row.name, "a gold item: it is not learned from"))
                elif known[row.name] not in ids_by_name:
                    skipped.append((row.name, f"its class {known[row.name]!r} was retired"))
                else:
                    told.append({"item": row.id, "class": ids_by_name[known[row.name]]})
            know(connection, told)
        count += len(told)
    return count, skipped


def know(connection: Connection, told: Sequence[Mapping[str, int]]) -> None:
    """Store the `class` of each `item`, by their ids, and ask nobody about them any more."""
    if told:
        connection.execute(_KNOW, told)
    free = (slots.c.item_id.in_([one["item"] for one in told]), slots.c.state == "free")
    connection.execute(update(slots).where(*free).values(state="closed"))

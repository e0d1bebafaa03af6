"""A reviewer's word on an item: it takes the place of the answers, and can be taken back.

A correction makes the class of an item known: nobody is asked about it any more, the model learns it as a full label,
and the exports have it instead of the answers, which stay in the history. Of a gold item it changes the gold class, by
which people are measured.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from shortlist.annotate.db.class_map import ended_classes, read_class_map
from shortlist.annotate.db.schema import NO_CLASS, Correction, Item, LabelClass, Slot, items, slots
from shortlist.annotate.db.statements import ASKABLE, count_classes, next_rank
from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import Conflict, Invalid, NotFound
from shortlist.annotate.project.sources import check_text

MOST_WORDS = 2000


def correct(
    store: Store,
    item_id: int,
    seen: int,
    class_id: int | None,
    author: str,
    why: str,
    clock: Callable[[], float] = time.time,
) -> int:
    """Give an item a class, or None for none of the classes; returns the item's new version.

    Args:
        store: the project's database; the correction is on the disk when this returns.
        item_id: the item.
        seen: the version that the reviewer saw (0: no correction yet); if there is a newer one, this is refused.
        class_id: its class.
        author: who says so.
        why: in their words; may be empty.
        clock: what time it is.
    """
    _check_words(why)
    with _versioned(store, item_id, seen) as (connection, item):
        if class_id is None and item.gold is not None:
            raise Invalid("gold", "a gold item measures people, so it needs a class")
        if class_id is not None and not _is_class(connection, class_id):
            raise Invalid("no_class", f"there is no class {class_id} (any more)")
        _append(connection, item, seen, clock(), "correction", class_id=class_id, author=author, why=why)
        _set(connection, item, NO_CLASS if class_id is None else class_id)
    return seen + 1


def undo_correction(
    store: Store, item_id: int, seen: int, author: str, why: str = "", clock: Callable[[], float] = time.time
) -> int:
    """Take back the latest correction that stands; the item is what it was before. Returns the new version."""
    _check_words(why)
    with _versioned(store, item_id, seen) as (connection, item):
        latest = standing(connection, item_id)
        if latest is None:
            raise Conflict("nothing_to_undo", "there is no correction to take back")
        # the class of then may be a part of another one by now, or retired
        classes = read_class_map(connection)
        before = None if latest.before is None else classes.now(latest.before)
        if before is None and item.gold is not None:
            raise Conflict("class_ended", "the gold class it had before was retired: correct it instead")
        _append(connection, item, seen, clock(), "undo", undoes=latest.version, author=author, why=why)
        _set(connection, item, before)
        retired = before is None and latest.before is not None
        if retired or item.known is None:  # what comes back with a class: that of before, not the one taken back
            was_known = classes.last(latest.before) if retired else None
            connection.execute(update(items).where(items.c.id == item_id).values(was_known=was_known))
    return seen + 1


def standing(connection: Connection, item_id: int) -> Any:
    """The latest correction of an item that was not taken back; None: there is none."""
    rows = connection.execute(
        select(Correction).where(Correction.item_id == item_id).order_by(Correction.version)
    ).all()
    undone = {row.undoes for row in rows}
    return next((row for row in reversed(rows) if row.kind == "correction" and row.version not in undone), None)


def standing_corrections(connection: Connection) -> dict[int, Any]:
    """Item id -> its latest correction that was not taken back, with the item's name.

    Not where its class was retired since: people are asked about the item again.
    """
    statement = select(Correction, Item.name, Item.gold).join(Item, Item.id == Correction.item_id)
    found: dict[int, list[Any]] = {}
    for row in connection.execute(statement.order_by(Correction.id)):
        if row.kind == "correction":
            found.setdefault(row.item_id, []).append(row)
        else:  # it takes back the latest one
            found[row.item_id].pop()
    latest, classes = {item: rows[-1] for item, rows in found.items() if rows}, read_class_map(connection)
    return {item: row for item, row in latest.items() if row.class_id is None or classes.now(row.class_id) is not None}


@contextmanager
def _versioned(store: Store, item_id: int, seen: int) -> Iterator[tuple[Connection, Any]]:
    """A transaction on an item at the version that was seen; refused if somebody was faster."""
    try:
        with store.write() as connection:
            # locked before anything is changed, so that nobody is asked about it from here on; and before the item, as
            # by whoever answers, or the two might wait for each other
            connection.execute(store.locked(select(Slot.id).where(Slot.item_id == item_id), of=Slot)).all()
            item = connection.execute(store.locked(_ITEM.where(Item.id == item_id), of=Item)).first()
            if item is None:
                raise NotFound("no_item", f"there is no item {item_id}")
            latest = connection.execute(_LATEST.where(Correction.item_id == item_id).limit(1)).first()
            if (0 if latest is None else latest.version) != seen:
                raise Conflict("corrected_meanwhile", _said(latest))
            yield connection, item
    except IntegrityError as error:  # the database itself refuses a version twice
        raise Conflict("corrected_meanwhile", "somebody was faster: look again") from error


_ITEM = select(Item.id, Item.gold, Item.known, Item.state, Item.pending)
_LATEST = (
    select(Correction.version, Correction.kind, Correction.class_id, Correction.author, Correction.why, LabelClass.name)
    .join(LabelClass, LabelClass.id == Correction.class_id, isouter=True)
    .order_by(Correction.version.desc())
)


def _said(latest: Any) -> str:
    if latest is None:
        return "there is no such version of the item: look again"
    what = "took a correction back" if latest.kind == "undo" else f"said {latest.name or 'no class'!r}"
    return f"{latest.author} {what} in the meantime{f' ({latest.why})' if latest.why else ''}: look again"


def _append(connection: Connection, item: Any, seen: int, now: float, kind: str, **values: Any) -> None:
    before = item.known if item.gold is None else item.gold
    row = {"item_id": item.id, "version": seen + 1, "kind": kind, "before": before, "at": now, **values}
    connection.execute(insert(Correction).values(row))


def _set(connection: Connection, item: Any, to: int | None) -> None:
    """Make `to` what is known of the item; None: nothing, so that it is asked about again if answers are missing."""
    mine = items.c.id == item.id
    if item.gold is not None:
        connection.execute(update(items).where(mine).values(gold=to))
        return
    state = "closed" if to is not None else "open" if item.pending else "done"
    connection.execute(update(items).where(mine).values(known=to, state=state))
    given = slots.c.item_id == item.id
    if to is None:
        # at the end of the queue, as every slot that is freed
        free = {"state": "free", "rank": next_rank(connection) + slots.c.number}
        connection.execute(update(slots).where(given, slots.c.state == "closed", ASKABLE).values(free))
    else:
        connection.execute(update(slots).where(given, slots.c.state == "free").values(state="closed"))


def _is_class(connection: Connection, class_id: int) -> bool:
    return 0 <= class_id < count_classes(connection) and class_id not in ended_classes(connection)


def _check_words(why: str) -> None:
    if why:
        check_text(why)
    if len(why) > MOST_WORDS:
        raise Invalid("too_long", f"{len(why)} characters: expected at most {MOST_WORDS}")

"""Merging and retiring classes: what was asked and answered stays as it was, and reads differently (`db.class_map`).

| change | lists shown before | their inclusion probabilities | training |
|---|---|---|---|
| rename, describe | the same classes by another name | the same | names choose the first lists anew |
| add | did not show it: None leaves it possible | 0 for it | one more class |
| merge a into b | b is whole where a and b were shown | of whoever picked a part: the part's | a and b are one class |
| retire r | without r; whoever picked r said None to the rest | of the others: the same | no item is of r |
"""

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, func, select, update

from shortlist.annotate.db.class_map import ended_classes, read_class_map
from shortlist.annotate.db.schema import Answer, Item, LabelClass, Question, Slot, items, slots
from shortlist.annotate.db.statements import (
    STANDING,
    batches,
    class_names,
    free_slot,
    next_rank,
    reopen,
    settle_item,
    stop_asking,
)
from shortlist.annotate.problems import Conflict, Invalid, NotFound
from shortlist.annotate.project.known_items import know
from shortlist.annotate.project.project import Project

AT_ONCE = 500  # slots per transaction: annotators of a running server wait for one batch
FEWEST = 2


def merge_classes(project: Project, class_id: int, into: int, clock: Callable[[], float] = time.time) -> None:
    """Make `class_id` a part of `into`, for good: lists shown from now on cannot be told apart again."""
    with project.store.write() as connection:
        _may_end(project, connection, class_id)
        if into == class_id or into in ended_classes(connection) or not 0 <= into < len(class_names(connection)):
            raise Invalid("no_class", f"class {class_id} cannot be merged into {into}: expected another class in use")
        ended = {"merged_into": into, "ended_at": clock()}
        connection.execute(update(LabelClass).where(LabelClass.id == class_id).values(ended))
        for column in ("gold", "known"):
            connection.execute(update(items).where(items.c[column] == class_id).values({column: into}))


def retire_class(project: Project, class_id: int, clock: Callable[[], float] = time.time) -> int:
    """No item is of this class any more; those answered with it, or known to be of it, are asked about again.

    Returns how many there are.
    """
    with project.store.write() as connection:
        _may_end(project, connection, class_id)
        gold = connection.execute(select(func.count()).where(Item.gold == class_id)).scalar_one()
        if gold:
            raise Conflict("gold", f"{gold} gold items are of this class: correct them first")
        connection.execute(update(LabelClass).where(LabelClass.id == class_id).values(ended_at=clock()))
    return _ask_about(project, class_id) + _ask_again(project, class_id)


def ask_about_retired(project: Project) -> None:
    """Ask again about whatever still has a retired class.

    Such answers come from Label Studio, where people could still pick it, or are left of a retirement that was
    interrupted.
    """
    with project.store.read() as connection:
        retired = [class_id for class_id, into in read_class_map(connection).into.items() if into is None]
    for class_id in retired:
        _ask_about(project, class_id)
        _ask_again(project, class_id)


def restore_class(project: Project, class_id: int) -> None:
    """Take a retired class back into use: answers that picked it count again, and items known to be of it are again."""
    with project.store.write() as connection:
        stop_asking(connection)
        row = _class(connection, class_id)
        if row.ended_at is None:
            raise Conflict("in_use", f"class {row.name!r} is in use")
        if row.merged_into is not None:
            raise Conflict("merged", f"class {row.name!r} is a part of another one by now, which cannot be undone")
        connection.execute(update(LabelClass).where(LabelClass.id == class_id).values(ended_at=None))
        _know_again(connection, class_id)


def _may_end(project: Project, connection: Connection, class_id: int) -> None:
    stop_asking(connection)  # or who has just seen that the class is in use would answer with it later
    row = _class(connection, class_id)
    if row.ended_at is not None:
        raise Conflict("class_ended", f"class {row.name!r} was merged or retired already")
    if project.settings.compare:
        raise Conflict("comparing", "ways to ask are being compared here: all lists must be of the same classes")
    if len(class_names(connection)) - len(ended_classes(connection)) <= FEWEST:
        raise Conflict("too_few", f"a project needs at least {FEWEST} classes")


def _class(connection: Connection, class_id: int) -> Any:
    columns = (LabelClass.name, LabelClass.merged_into, LabelClass.ended_at)
    row = connection.execute(select(*columns).where(LabelClass.id == class_id)).first()
    if row is None:
        raise NotFound("no_class", f"there is no class {class_id}")
    return row


def _ask_about(project: Project, class_id: int) -> int:
    """Make the class of items unknown that were known to be of a retired one; returns how many of them lack answers."""
    count, of_class = 0, select(Item.id).where(Item.known == class_id)
    while True:
        with project.store.write() as connection:
            stop_asking(connection)
            known = list(connection.execute(of_class.limit(AT_ONCE)).scalars())
            waiting = (slots.c.item_id.in_(known), slots.c.state == "closed")
            free = {"state": "free", "rank": next_rank(connection) + slots.c.id}
            connection.execute(update(slots).where(*waiting).values(free))
            unknown = update(items).where(items.c.id.in_(known)).values(known=None, was_known=class_id)
            count += int(connection.execute(unknown.where(items.c.pending > 0).values(state="open")).rowcount)
            connection.execute(unknown.where(items.c.pending == 0).values(state="done"))
        if len(known) < AT_ONCE:
            return count


def _know_again(connection: Connection, class_id: int) -> None:
    """Give the class back to the items that were known to be of it, unless they are known to be of another by now."""
    unknown = select(Item.id).where(Item.was_known == class_id, Item.known.is_(None), Item.gold.is_(None))
    for batch in batches(list(connection.execute(unknown).scalars()), AT_ONCE):
        know(connection, [{"item": one, "class": class_id} for one in batch])
    connection.execute(update(items).where(items.c.was_known == class_id).values(was_known=None))


def _ask_again(project: Project, class_id: int) -> int:
    """Put back the slots that ended with this class, or with one that is a part of it.

    Those of an item whose class is known wait until it no longer is (a correction may be undone). Returns how many do
    not have to.
    """
    count = 0
    while True:
        with project.store.write() as connection:
            stop_asking(connection)
            parts = list(_parts(connection, class_id))
            found = (
                select(Slot.id.label("slot_id"), Slot.gold, Slot.turn, Slot.item_id, Slot.annotator_id, Item.known)
                .join(Question, Question.slot_id == Slot.id)
                .join(Answer, Answer.question_id == Question.id)
                .join(Item, Item.id == Slot.item_id)
                .where(Answer.class_id.in_(parts), *STANDING, Slot.state == "done", ~Slot.gold)
                .where(Question.turn == Slot.turn)  # no earlier answer, after which it was asked again
                .limit(AT_ONCE)
            )
            rows = connection.execute(found).mappings().all()
            for row in rows:
                free_slot(connection, row, row["turn"] + 1)
                settle_item(connection, row["item_id"], +1)
                reopen(connection, row["item_id"])
        count += sum(row["known"] is None for row in rows)
        if len(rows) < AT_ONCE:
            return count


def _parts(connection: Connection, class_id: int) -> set[int]:
    found, new = {class_id}, {class_id}
    while new:
        new = set(connection.execute(select(LabelClass.id).where(LabelClass.merged_into.in_(new))).scalars()) - found
        found |= new
    return found

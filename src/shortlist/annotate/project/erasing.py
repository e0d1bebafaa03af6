"""What is erased for good: a person with everything they said, an item with everything said about it.

Nothing of it is left in the database, and SQLite overwrites the pages (`secure_delete`). Backups made before keep it,
and so does whatever was exported: that is for their owner to remove.
"""

from contextlib import suppress
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    Table,
    and_,
    case,
    delete,
    exists,
    false,
    func,
    or_,
    select,
    update,
)

from shortlist.annotate.db.schema import annotators, answers, items, questions, slots, tables
from shortlist.annotate.db.statements import ASKABLE, OF_KNOWN, STANDING, next_rank
from shortlist.annotate.problems import NotFound
from shortlist.annotate.project.audit import Actor, audit
from shortlist.annotate.project.project import Project

ERASE = "erase"


def erase_person(project: Project, annotator_id: int, who: Actor) -> int:
    """Erase an annotator: name, links, sessions, tokens, comments, answers. Others are asked instead.

    Returns how many answers there were.
    """
    with project.store.write() as connection:
        me = annotators.c.id == annotator_id
        if connection.execute(project.store.locked(select(annotators.c.id).where(me), of=annotators)).scalar() is None:
            raise NotFound("no_annotator", f"there is no annotator {annotator_id}")
        count = _count(connection, questions.c.annotator_id == annotator_id)
        # a slot before any item, as by whoever answers or changes many items, or the two might wait for each other
        own = select(slots.c.id).where(slots.c.annotator_id == annotator_id)
        connection.execute(project.store.locked(own, of=slots)).all()
        _free_slots(connection, annotator_id)
        _delete(connection, annotators, select(annotators.c.id).where(me))
        audit(connection, who, ERASE, f"annotator {annotator_id}", answers=count)
    return count


def erase_item(project: Project, item_id: int, who: Actor) -> int:
    """Erase an item: its text or file, name, answers, comments, corrections. Returns how many answers there were."""
    with project.store.write() as connection:
        mine = items.c.id == item_id
        # locked first, as by whoever answers: nobody is given one of its slots in the meantime
        connection.execute(project.store.locked(select(slots.c.id).where(slots.c.item_id == item_id), of=slots)).all()
        file = connection.execute(project.store.locked(select(items.c.id, items.c.file).where(mine), of=items)).first()
        if file is None:
            raise NotFound("no_item", f"there is no item {item_id}")
        count = _count(connection, questions.c.item_id == item_id)
        _uncount(connection, item_id)
        _delete(connection, items, select(items.c.id).where(mine))
        audit(connection, who, ERASE, f"item {item_id}", answers=count)
    if file.file is not None:
        with suppress(FileNotFoundError):
            (project.media / file.file).unlink()
    return count


def _count(connection: Connection, which: ColumnElement[bool]) -> int:
    standing = select(func.count()).join_from(answers, questions, answers.c.question_id == questions.c.id)
    return int(connection.execute(standing.where(which, *STANDING)).scalar_one())


def _free_slots(connection: Connection, annotator_id: int) -> None:
    """Give the person's slots back to the queue, at its end; those on gold items are theirs alone and go with them."""
    mine = (questions.c.annotator_id == annotator_id, questions.c.state == "answered")
    answered = exists().where(*mine, questions.c.slot_id == slots.c.id, questions.c.turn == slots.c.turn)
    # an answer from Label Studio may have a slot that is nobody's
    nobodys = and_(slots.c.annotator_id.is_(None), slots.c.state == "done", answered)
    held = (or_(slots.c.annotator_id == annotator_id, nobodys), slots.c.gold == false())
    done = (*held, slots.c.state == "done")
    settled = select(slots.c.item_id).where(*done)
    count = select(func.count()).where(*done, slots.c.item_id == items.c.id).scalar_subquery()
    again = case((items.c.known.is_not(None), items.c.state), else_="open")
    reopened = update(items).where(items.c.id.in_(settled))
    connection.execute(reopened.values(pending=items.c.pending + count, state=again))
    closed = (slots.c.item_id.in_(settled), slots.c.state == "closed", ASKABLE)  # by a policy that knew enough
    connection.execute(update(slots).where(*closed).values(state="free"))
    free: dict[str, Any] = {"state": case((OF_KNOWN, "closed"), else_="free"), "rank": next_rank(connection)}
    connection.execute(update(slots).where(*held).values(**free, annotator_id=None, lease_until=None))


def _uncount(connection: Connection, item_id: int) -> None:
    """Take what was said about the item out of everybody's counters."""

    def said(*which: ColumnElement[bool]) -> ScalarSelect[int]:
        latest = (answers.c.kind != "undo", answers.c.attempt == questions.c.attempt, questions.c.item_id == item_id)
        found = select(func.count()).join_from(answers, questions, answers.c.question_id == questions.c.id)
        return found.where(*latest, questions.c.annotator_id == annotators.c.id, *which).scalar_subquery()

    skip, none = answers.c.kind == "skip", answers.c.class_id.is_(None)
    less = {"answers": said(~skip), "nones": said(~skip, none), "skips": said(skip)}
    asked = select(questions.c.annotator_id).where(questions.c.item_id == item_id)
    values = {name: annotators.c[name] - count for name, count in less.items()}
    connection.execute(update(annotators).where(annotators.c.id.in_(asked)).values(values))


def _delete(connection: Connection, table: Table, ids: Select[Any]) -> None:
    """The rows of these ids, and before them every row that refers to one of them."""
    for child in tables():
        for key in child.foreign_keys:
            if key.column.table is table and child is not table:
                _delete(connection, child, select(child.c.id).where(key.parent.in_(ids)))
    connection.execute(delete(table).where(table.c.id.in_(ids)))

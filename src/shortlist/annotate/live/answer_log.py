"""The answers so far, as the trainer reads them: only new ones, or all again after an undo. It writes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from shortlist.annotate.db.class_map import read_class_map
from shortlist.annotate.db.schema import Answer, Item, Question, Slot
from shortlist.annotate.db.statements import STANDING
from shortlist.labels import NONE
from shortlist.policies import Log, rectangle

IntArray = NDArray[np.int64]
Lists = NDArray[np.int32]


@dataclass(frozen=True)
class Given:
    """One standing answer to a list, the class typed beside it or NONE; `truth` is the known class of a gold item."""

    item_id: int
    shortlist: tuple[int, ...]
    answer: int
    truth: int | None = None
    typed: int = NONE


@dataclass
class AnswerLog:
    """How far the trainer has read: `count` rows of any kind, up to id `last`."""

    last: int = 0
    count: int = 0

    def read(self, connection: Connection) -> tuple[list[Given], bool]:
        """The standing answers since the last call; or all of them, and True, if an earlier one was taken back.

        All of them, too, if a row turns up before one already read: on PostgreSQL a lower id may be committed later.
        """
        new = connection.execute(select(func.max(Answer.id), func.count()).where(Answer.id > self.last)).one()
        top, added = (new[0] or self.last), int(new[1])
        before = connection.execute(select(func.count()).where(Answer.id <= self.last)).scalar_one()
        if not added and before == self.count:
            return [], False
        undone = (
            select(func.count())
            .select_from(Answer)
            .where(Answer.id > self.last, Answer.supersedes.is_not(None), Answer.supersedes <= self.last)
        )
        again = before != self.count or bool(connection.execute(undone).scalar_one())
        rows = _standing(connection, 0 if again else self.last, top)
        self.last, self.count = top, before + added
        return rows, again

    def waiting(self, connection: Connection) -> int:
        """How many rows came since the last `read`."""
        return int(connection.execute(select(func.count()).where(Answer.id > self.last)).scalar_one())


def _standing(connection: Connection, after: int, up_to: int) -> list[Given]:
    classes = read_class_map(connection)
    asked = (Question.item_id, Question.shortlist, Question.inclusion, Question.served_at)
    statement = (
        select(*asked, Answer.class_id, Answer.kind, Slot.gold, Item.gold)
        .join(Question, Question.id == Answer.question_id)
        .join(Slot, Slot.id == Question.slot_id)
        .join(Item, Item.id == Question.item_id)
        .where(Answer.id > after, Answer.id <= up_to, *STANDING)
        .order_by(Answer.id)
    )
    found = []
    for item, shown, inclusion, served_at, answer, kind, gold, truth in connection.execute(statement):
        seen = classes.read(shown, inclusion, answer, typed=kind == "typed", served_at=served_at)
        picked, typed = (NONE if one is None else one for one in (seen.picked, seen.typed))
        found.append(Given(item, tuple(seen.shortlist), picked, truth if gold else None, typed))
    return found


def rounds(
    given: Sequence[Given], rows: dict[int, int], num_classes: int
) -> Iterator[tuple[IntArray, Lists, IntArray, IntArray, IntArray]]:
    """(rows, lists, sizes, answers, typed) for `Loop.record`.

    The first answer of each item, then the second of each, ... Answers about items that are not in `rows` (item id ->
    row) are left out.
    """
    turns: list[list[Given]] = []
    asked: dict[int, int] = {}
    for one in given:
        if one.item_id in rows and (one.shortlist or one.typed != NONE):
            turn = asked.get(one.item_id, 0)
            asked[one.item_id] = turn + 1
            if turn == len(turns):
                turns.append([])
            turns[turn].append(one)
    for part in turns:
        yield (np.array([rows[one.item_id] for one in part], np.int64), *_arrays(part, num_classes))


def gold_log(given: Sequence[Given], num_classes: int) -> tuple[Log, IntArray]:
    """The answers on gold items, and their known classes, for `Loop.record_gold`."""
    known = [one for one in given if one.truth is not None and (one.shortlist or one.typed != NONE)]
    truth = np.array([one.truth for one in known], np.int64)
    return Log(np.array([one.item_id for one in known], np.int64), *_arrays(known, num_classes)), truth


def _arrays(given: Sequence[Given], num_classes: int) -> tuple[Lists, IntArray, IntArray, IntArray]:
    """(lists, sizes, answers, typed)."""
    lists, sizes = rectangle([one.shortlist for one in given], num_classes)
    answer, typed = (np.array([getattr(one, name) for one in given], np.int64) for name in ("answer", "typed"))
    return lists, sizes, answer, typed

"""Lease, answer, skip, undo: each is one transaction, and whatever was acknowledged is on the disk.

An answer belongs to one attempt at a question. Sent again, it returns the stored row, so a client may retry for ever; a
different one is refused. An undo begins the next attempt. A class that was typed, because it was not on the list or
faster to type than to find there, is an answer of its own kind: None to a list that does not hold it, and the class.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import bindparam, exists, select

from shortlist.annotate.db.class_map import ended_classes
from shortlist.annotate.db.quick import Quick, Row, Runs
from shortlist.annotate.db.schema import annotators, answers, questions, slots
from shortlist.annotate.db.statements import (
    SET_QUESTION,
    SETTLE_ANSWER,
    SETTLE_GOLD_ANSWER,
    count_answer,
    count_classes,
    counts,
    free_slot,
    insert_id,
    refused_classes,
    set_slot,
    settle_item,
)
from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import Conflict, Invalid, NotFound
from shortlist.annotate.queue.chooser import Chooser
from shortlist.annotate.queue.leases import Leases, Served

Kind = Literal["answer", "typed", "skip", "undo"]
LEASE_SECONDS = 300.0
TAKE_BACK_AT_ONCE = 100  # answers per transaction: the others wait for one batch, not for all
SEED_BITS = 53  # so that a JSON number holds a seed exactly

_Q, _S, _A = questions.c, slots.c, answers.c
_MINE = (_Q.id == bindparam("question"), _Q.annotator_id == bindparam("annotator"))
_ANNOTATOR = select(annotators.c.id).where(annotators.c.id == bindparam("annotator"))
_LOCK = select(_S.id).join(questions, _Q.slot_id == _S.id).where(*_MINE).with_for_update(of=slots)
_QUESTION = (
    select(_Q.id, _Q.slot_id, _Q.item_id, _Q.turn, _Q.attempt, _Q.state, _Q.shortlist, _S.gold)
    .add_columns(_Q.annotator_id, _S.annotator_id.label("slot_holder"))
    .add_columns(_S.state.label("slot_state"), _S.turn.label("slot_turn"))
    .join(slots, _S.id == _Q.slot_id)
    .where(*_MINE)
)
_SPOKEN = select(
    exists().where(_Q.annotator_id == bindparam("annotator"), _Q.item_id == bindparam("item"), _Q.state != "expired")
)
_LATEST = (
    select(_Q.id)
    .where(_Q.annotator_id == bindparam("annotator"), _Q.state == bindparam("in_state"))
    .order_by(_Q.id.desc())
    .limit(1)
)
_LATEST_ONES = _LATEST.limit(TAKE_BACK_AT_ONCE)
_ATTEMPT = (_A.question_id == bindparam("question"), _A.attempt == bindparam("at_attempt"))
_ANSWER = select(answers).where(*_ATTEMPT, _A.kind != "undo")
_UNDO = select(answers).where(*_ATTEMPT, _A.kind == "undo")


@dataclass(frozen=True)
class Stored:
    """A row of the append-only log, as it was stored."""

    id: int
    question: int
    attempt: int
    kind: Kind
    answer: int | None
    seconds: float | None
    answered_at: float
    superseded: bool


class Queue:
    """What annotators do. `hold`: how many open questions to have afterwards (the shown one and those prefetched)."""

    def __init__(
        self,
        store: Store,
        chooser: Chooser,
        *,
        gold_every: int = 10,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
        seeds: Callable[[], int] = lambda: secrets.randbits(SEED_BITS),
        typing: bool = True,
    ) -> None:
        self.store = store
        self.leases = Leases(store, chooser, gold_every, lease_seconds)
        self.chooser = chooser
        self.clock = clock
        self.seeds = seeds
        self.typing = typing
        self.settled = 0  # slots that this queue saw done, less those taken back, without gold
        self._annotator = store.locked(_ANNOTATOR, of=annotators)

    def next(self, annotator_id: int, hold: int = 1) -> list[Served]:
        """The annotator's open questions, oldest first; the same ones again until they are answered."""
        with self._as(annotator_id) as connection:
            return self._top_up(connection, annotator_id, hold)

    def answer(
        self,
        annotator_id: int,
        question_id: int,
        attempt: int,
        answer: int | None,
        seconds: float | None,
        hold: int = 0,
        *,
        typed: bool = False,
    ) -> tuple[Stored, list[Served]]:
        """Store an answer (a class on the shortlist, or None; any class if it was typed); durable when this returns."""
        return self._submit(annotator_id, question_id, attempt, "typed" if typed else "answer", answer, seconds, hold)

    def skip(
        self, annotator_id: int, question_id: int, attempt: int, seconds: float | None = None, hold: int = 0
    ) -> tuple[Stored, list[Served]]:
        """Leave the question to somebody else. A skip is not None: it says nothing about the item."""
        return self._submit(annotator_id, question_id, attempt, "skip", None, seconds, hold)

    def undo(
        self, annotator_id: int, question_id: int | None = None, attempt: int | None = None, hold: int = 0
    ) -> tuple[Stored, list[Served]]:
        """Take back an answer or a skip (by default that of the latest question) and hold the question again."""
        with self._as(annotator_id) as connection:
            chosen = self._latest(connection, annotator_id) if question_id is None else question_id
            question = self._question(connection, annotator_id, chosen)
            if attempt is not None and attempt < question["attempt"]:
                stored = self._undone(connection, question, attempt)
            else:
                stored = self._undo(connection, annotator_id, question)
            return stored, self._top_up(connection, annotator_id, hold)

    def renew(self, annotator_id: int) -> list[Served]:
        """Keep the leases of the open questions from running out."""
        return self.next(annotator_id, hold=0)

    def release(self, annotator_id: int) -> None:
        """Give back everything the annotator holds, for others to answer."""
        with self._as(annotator_id) as connection:
            for row in self.leases.held(connection, annotator_id):
                self.leases.expire(connection, row)

    def take_back(self, annotator_id: int) -> int:
        """Undo every answer of somebody who cannot be trusted, so that it is asked again; returns how many."""
        count = 0
        while True:
            with self._as(annotator_id) as connection:
                mine = {"annotator": annotator_id, "in_state": "answered"}
                found = list(connection.execute(_LATEST_ONES, mine).scalars())
                for question_id in found:
                    self._take_back(connection, self._question(connection, annotator_id, question_id))
            count += len(found)
            if len(found) < TAKE_BACK_AT_ONCE:
                return count

    # -- one transaction as one annotator ----------------------------------------------------------------------------

    @contextmanager
    def _as(self, annotator_id: int) -> Iterator[Quick]:
        with self.store.quick() as connection:
            # The lock makes two tabs of one annotator take turns, so that both see the same open questions.
            if connection.execute(self._annotator, {"annotator": annotator_id}).scalar() is None:
                raise NotFound("no_annotator", "there is no such annotator")
            yield connection

    def _top_up(self, connection: Quick, annotator_id: int, hold: int) -> list[Served]:
        return self.leases.top_up(connection, annotator_id, hold, self.clock(), self.seeds)

    def _question(self, connection: Runs, annotator_id: int, question_id: int) -> Row:
        mine = {"question": question_id, "annotator": annotator_id}
        if not self.store.is_sqlite:
            # First lock, then read: a row read before the wait for its lock would show the past.
            connection.execute(_LOCK, mine)
        row = connection.execute(_QUESTION, mine).mappings().first()
        if row is None:
            raise NotFound("no_question", f"question {question_id} is not one of yours")
        return row

    # -- answers and skips -------------------------------------------------------------------------------------------

    def _submit(
        self,
        annotator_id: int,
        question_id: int,
        attempt: int,
        kind: Kind,
        answer: int | None,
        seconds: float | None,
        hold: int,
    ) -> tuple[Stored, list[Served]]:
        with self._as(annotator_id) as connection:
            question = self._question(connection, annotator_id, question_id)
            # an open question has no answer at the attempt that it is at
            fresh = question["state"] == "open" and attempt == question["attempt"]
            stored = None if fresh else _find_answer(connection, question, attempt)
            if stored is None:
                self._may_answer(connection, annotator_id, question, attempt, kind, answer)
                stored = self._store(connection, annotator_id, question, kind, answer, seconds)
            elif (stored.kind, stored.answer) != (kind, answer):
                raise Conflict("answered_differently", f"question {question_id} already has another answer")
            return stored, (self._top_up(connection, annotator_id, hold) if hold else [])

    def _may_answer(
        self,
        connection: Runs,
        annotator_id: int,
        question: Row,
        attempt: int,
        kind: Kind,
        answer: int | None,
    ) -> None:
        if attempt != question["attempt"]:
            raise Conflict("stale_attempt", f"question {question['id']} is at attempt {question['attempt']}")
        if kind == "typed":
            self._may_type(connection, answer)
        elif answer is None and not question["shortlist"]:
            raise Invalid("nothing_shown", "no classes were shown: type one, or skip the item")
        elif answer is not None and answer not in question["shortlist"]:
            raise Invalid("not_shown", f"class {answer} is not on the shortlist of question {question['id']}")
        if question["state"] == "expired" and not self._may_regain(connection, annotator_id, question):
            raise Conflict("lease_lost", f"question {question['id']} has expired and was given to somebody else")

    def _may_type(self, connection: Runs, answer: int | None) -> None:
        if not self.typing:
            raise Invalid("no_typing", "this project takes only classes that are on the list, or None")
        if answer is None or answer not in range(count_classes(connection)) or answer in ended_classes(connection):
            raise Invalid("no_class", f"a typed answer is a class, and there is no class {answer} (any more)")

    def _may_regain(self, connection: Runs, annotator_id: int, question: Row) -> bool:
        """A late answer still counts unless somebody else was given the slot in the meantime."""
        waiting = "closed" if question["gold"] else "free"
        if question["slot_state"] != waiting or question["slot_turn"] != question["turn"]:
            return False
        mine = {"annotator": annotator_id, "item": question["item_id"]}
        return not connection.execute(_SPOKEN, mine).scalar()

    def _store(
        self,
        connection: Quick,
        annotator_id: int,
        question: Row,
        kind: Kind,
        answer: int | None,
        seconds: float | None,
    ) -> Stored:
        # a None that may be asked again needs a look at what was refused, this answer included
        ends = answer is not None or (kind == "answer" and not self._may_ask_again(connection, question))
        if ends:  # a typed answer is always a class
            return self._settle(connection, annotator_id, question, kind, answer, seconds)
        stored = _append(connection, question["id"], question["attempt"], kind, answer, seconds, self.clock())
        state = "skipped" if kind == "skip" else "answered"
        _set_question(connection, question["id"], state, question["attempt"])
        count_answer(connection, annotator_id, kind, answer, +1)
        again = kind == "answer"
        free_slot(connection, question, turn=question["turn"] + again)
        if again:
            self.chooser.front.put(question["item_id"])
        return stored

    def _settle(
        self,
        connection: Quick,
        annotator_id: int,
        question: Row,
        kind: Kind,
        answer: int | None,
        seconds: float | None,
    ) -> Stored:
        """An answer that ends its slot."""
        now, gold = self.clock(), question["gold"]
        row = {"new_question_id": question["id"], "new_attempt": question["attempt"], "new_kind": kind}
        row |= {"new_class_id": answer, "new_seconds": seconds, "new_answered_at": now, "new_supersedes": None}
        row |= {"question": question["id"], "to_state_of_question": "answered", "to_attempt": question["attempt"]}
        row |= {"annotator": annotator_id, **counts(kind, answer, +1)}
        row |= {"slot": question["slot_id"], "to_state": "done", "to_turn": question["turn"]}
        row |= {"holder": annotator_id, "until": None, "item": question["item_id"], "change": -1}
        made = (SETTLE_GOLD_ANSWER if gold else SETTLE_ANSWER).run(connection, row)
        if not gold:
            self._count(connection, +1)
        return Stored(made, question["id"], question["attempt"], kind, answer, seconds, now, False)

    def _may_ask_again(self, connection: Runs, question: Row) -> bool:
        """Whether the item is asked again with other classes, now that these are refused as well."""
        if question["gold"]:
            return False
        before = refused_classes(connection, question["slot_id"]) if question["turn"] else []
        refused = {*before, *question["shortlist"], *ended_classes(connection)}
        return self.chooser.asks_again(count_classes(connection), sorted(refused))

    # -- undo --------------------------------------------------------------------------------------------------------

    def _latest(self, connection: Runs, annotator_id: int) -> int:
        found = [
            connection.execute(_LATEST, {"annotator": annotator_id, "in_state": state}).scalar()
            for state in ("answered", "skipped")
        ]
        if not any(found):
            raise Conflict("nothing_to_undo", "there is no answer to take back")
        return max(row or 0 for row in found)

    def _undone(self, connection: Runs, question: Row, attempt: int) -> Stored:
        which = {"question": question["id"], "at_attempt": attempt}
        return _stored(connection.execute(_UNDO, which).mappings().one(), superseded=False)

    def _undo(self, connection: Quick, annotator_id: int, question: Row) -> Stored:
        taken_back = _find_answer(connection, question, question["attempt"])
        if taken_back is None:
            raise Conflict("nothing_to_undo", f"question {question['id']} has no answer to take back")
        state, ahead = question["slot_state"], question["slot_turn"] - question["turn"]
        mine = state == "done" and ahead == 0 and question["slot_holder"] == annotator_id
        # a None is asked again at once, mostly of the same person; or the policy knew enough and closed the item
        held = state == "leased" and ahead == 1 and question["slot_holder"] == annotator_id
        waiting = state in ("free", "closed") and ahead <= 1
        if not (mine or held or waiting):
            raise Conflict("slot_taken", f"question {question['id']} has since been given to somebody else")
        if held:
            self.leases.expire(connection, question)
        elif state == "closed" and not question["gold"]:
            self.leases.reopen(connection, question["item_id"])
        now = self.clock()
        stored = _append(connection, question["id"], question["attempt"], "undo", None, None, now, taken_back.id)
        _set_question(connection, question["id"], "open", question["attempt"] + 1)
        until = now + self.leases.lease_seconds
        set_slot(connection, question["slot_id"], "leased", question["turn"], annotator_id, until)
        count_answer(connection, annotator_id, taken_back.kind, taken_back.answer, -1)
        if mine and not question["gold"]:
            settle_item(connection, question["item_id"], +1)
            self._count(connection, -1)
        return stored

    def _take_back(self, connection: Quick, question: Row) -> None:
        answer = _find_answer(connection, question, question["attempt"])
        assert answer is not None  # its state is "answered"
        _append(connection, question["id"], question["attempt"], "undo", None, None, self.clock(), answer.id)
        _set_question(connection, question["id"], "expired", question["attempt"] + 1)
        count_answer(connection, question["annotator_id"], answer.kind, answer.answer, -1)
        if (question["slot_state"], question["slot_holder"]) != ("done", question["annotator_id"]):
            return  # a None, after which somebody else was asked: the slot is theirs
        if question["slot_turn"] != question["turn"]:
            return  # a None before the answer that ended the slot
        free_slot(connection, question, question["turn"])
        if not question["gold"]:
            settle_item(connection, question["item_id"], +1)
            self.leases.reopen(connection, question["item_id"])
            self._count(connection, -1)

    def _count(self, connection: Quick, change: int) -> None:
        def settle() -> None:
            self.settled += change

        connection.after.append(settle)


def _set_question(connection: Runs, question_id: int, state: str, attempt: int) -> None:
    values = {"question": question_id, "to_state_of_question": state, "to_attempt": attempt}
    connection.execute(SET_QUESTION, values)


def _append(
    connection: Runs,
    question_id: int,
    attempt: int,
    kind: Kind,
    answer: int | None,
    seconds: float | None,
    now: float,
    supersedes: int | None = None,
) -> Stored:
    values: dict[str, Any] = {"question_id": question_id, "attempt": attempt, "kind": kind, "class_id": answer}
    values |= {"seconds": seconds, "answered_at": now, "supersedes": supersedes}
    return Stored(insert_id(connection, answers, values), question_id, attempt, kind, answer, seconds, now, False)


def _find_answer(connection: Runs, question: Row, attempt: int) -> Stored | None:
    row = connection.execute(_ANSWER, {"question": question["id"], "at_attempt": attempt}).mappings().first()
    return None if row is None else _stored(row, superseded=attempt < question["attempt"])


def _stored(row: Row, superseded: bool) -> Stored:
    return Stored(
        id=row["id"],
        question=row["question_id"],
        attempt=row["attempt"],
        kind=row["kind"],
        answer=row["class_id"],
        seconds=row["seconds"],
        answered_at=row["answered_at"],
        superseded=superseded,
    )

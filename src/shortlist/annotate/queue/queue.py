"""Lease, answer, skip, undo: each is one transaction, and whatever was acknowledged is on the disk.

An answer belongs to one attempt at a question. Sent again, it returns the stored row, so a client may retry for ever; a
different one is refused. An undo begins the next attempt. A class that was typed, because it was not on the list or
faster to type than to find there, is an answer of its own kind: None to a list that does not hold it, and the class.

`asking`, `submitting` and `undoing` are the same in steps (`db.steps`), for a writer that runs several at once. Others
are served between the steps of one annotator: what is read before a stop must be something that only they can change.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from sqlalchemy import bindparam, exists, or_, select

from shortlist.annotate.db.class_map import ended_classes, read_class_map
from shortlist.annotate.db.quick import Quick, Row, Runs
from shortlist.annotate.db.schema import annotators, questions, slots
from shortlist.annotate.db.statements import (
    SETTLE_ANSWER,
    count_answer,
    count_classes,
    counts,
    expect_classes,
    free_slot,
    refused_classes,
    reopen,
    set_slot,
    settle_item,
)
from shortlist.annotate.db.steps import Steps, finish
from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import Conflict, Invalid, NotFound
from shortlist.annotate.queue.chooser import Chooser
from shortlist.annotate.queue.leases import Leases, Served
from shortlist.annotate.queue.stored import Given, Stored, append, as_stored, find_answer, find_undo, set_question

LEASE_SECONDS = 300.0
TAKE_BACK_AT_ONCE = 100  # answers per transaction: the others wait for one batch, not for all
SEED_BITS = 53  # so that a JSON number holds a seed exactly

_Q, _S = questions.c, slots.c
_ANNOTATOR = select(annotators.c.id).where(annotators.c.id == bindparam("annotator"))
_QUESTION = (
    select(_Q.id, _Q.slot_id, _Q.item_id, _Q.turn, _Q.attempt, _Q.state, _Q.shortlist, _S.gold)
    .add_columns(_Q.annotator_id, _S.annotator_id.label("slot_holder"))
    .add_columns(_S.state.label("slot_state"), _S.turn.label("slot_turn"))
    .join(slots, _S.id == _Q.slot_id)
    .join(annotators, annotators.c.id == _Q.annotator_id)
    .where(_Q.id == bindparam("question"), _Q.annotator_id == bindparam("annotator"))
)
# the annotator was asked about the item in another slot, or anew in this turn of this slot
_SPOKEN = select(
    exists().where(
        *(_Q.annotator_id == bindparam("annotator"), _Q.item_id == bindparam("item"), _Q.state != "expired"),
        or_(_Q.slot_id != bindparam("slot"), _Q.turn == bindparam("at_turn")),
    )
)
_LATEST = (
    select(_Q.id)
    .where(_Q.annotator_id == bindparam("annotator"), _Q.state == bindparam("in_state"))
    .order_by(_Q.id.desc())
    .limit(1)
)
_LATEST_ONES = _LATEST.limit(TAKE_BACK_AT_ONCE)


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
        # Locking the annotator makes two tabs of theirs take turns, so that both see the same open questions. Every row
        # that is read is locked: after a wait for a lock, PostgreSQL shows the others as they were before it.
        self._annotator = store.locked(_ANNOTATOR, of=annotators)
        self._question = store.locked(_QUESTION, of=[annotators, slots, questions])

    def next(self, annotator_id: int, hold: int = 1) -> list[Served]:
        """The annotator's open questions, oldest first; the same ones again until they are answered."""
        with self.store.quick() as connection:
            return finish(self.asking(connection, annotator_id, hold))

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
        given = Given("typed" if typed else "answer", answer, seconds)
        with self.store.quick() as connection:
            return finish(self.submitting(connection, annotator_id, question_id, attempt, given, hold))

    def skip(
        self, annotator_id: int, question_id: int, attempt: int, seconds: float | None = None, hold: int = 0
    ) -> tuple[Stored, list[Served]]:
        """Leave the question to somebody else. A skip is not None: it says nothing about the item."""
        given = Given("skip", None, seconds)
        with self.store.quick() as connection:
            return finish(self.submitting(connection, annotator_id, question_id, attempt, given, hold))

    def undo(
        self, annotator_id: int, question_id: int | None = None, attempt: int | None = None, hold: int = 0
    ) -> tuple[Stored, list[Served]]:
        """Take back an answer or a skip (by default that of the latest question) and hold the question again."""
        with self.store.quick() as connection:
            return finish(self.undoing(connection, annotator_id, question_id, attempt, hold))

    def renew(self, annotator_id: int) -> list[Served]:
        """Keep the leases of the open questions from running out."""
        return self.next(annotator_id, hold=0)

    def release(self, annotator_id: int) -> None:
        """Give back everything the annotator holds, for others to answer."""
        with self._as(annotator_id) as connection:
            for row in self.leases.held(connection, annotator_id).all():
                self.leases.expire(connection, row)

    def take_back(self, annotator_id: int) -> int:
        """Undo every answer of somebody who cannot be trusted, so that it is asked again; returns how many."""
        count = 0
        while True:
            with self._as(annotator_id) as connection:
                mine = {"annotator": annotator_id, "in_state": "answered"}
                found = list(connection.execute(_LATEST_ONES, mine).scalars())
                for question_id in found:
                    self._take_back(connection, self._find(connection, annotator_id, question_id))
            count += len(found)
            if len(found) < TAKE_BACK_AT_ONCE:
                return count

    # -- the same in steps -------------------------------------------------------------------------------------------

    def asking(self, connection: Quick, annotator_id: int, hold: int) -> Steps[list[Served]]:
        """`next`, in steps."""
        found = connection.execute(self._annotator, {"annotator": annotator_id})
        ask = self.leases.look(connection, annotator_id, self.clock(), self.seeds)
        yield
        _check(found.scalar())
        return (yield from self.leases.top_up(ask, hold))

    def submitting(
        self, connection: Quick, annotator_id: int, question_id: int, attempt: int, given: Given, hold: int
    ) -> Steps[tuple[Stored, list[Served]]]:
        """`answer` and `skip`, in steps."""
        sent = connection.execute(self._question, {"question": question_id, "annotator": annotator_id})
        expect_classes(connection)
        yield
        question = sent.first()
        if question is None or question["state"] != "open":  # others may have been given its slot since
            question = self._find(connection, annotator_id, question_id)
        # an open question has no answer at the attempt that it is at
        fresh = question["state"] == "open" and attempt == question["attempt"]
        stored = None if fresh else find_answer(connection, question, attempt)
        if stored is None:
            self._may_answer(connection, question, attempt, given)
            made = self._store(connection, question, given)
        elif (stored.kind, stored.answer) == (given.kind, given.answer):
            made = partial(_same, stored)
        else:
            raise Conflict("answered_differently", f"question {question_id} already has another answer")
        served = (yield from self._top_up(connection, annotator_id, hold)) if hold else (yield from _nothing())
        return made(), served

    def undoing(
        self, connection: Quick, annotator_id: int, question_id: int | None, attempt: int | None, hold: int
    ) -> Steps[tuple[Stored, list[Served]]]:
        """`undo`, in steps."""
        _check(connection.execute(self._annotator, {"annotator": annotator_id}).scalar())
        chosen = self._latest(connection, annotator_id) if question_id is None else question_id
        question = self._find(connection, annotator_id, chosen)
        if attempt is not None and attempt < question["attempt"]:
            stored = find_undo(connection, question, attempt)
        else:
            stored = self._undo(connection, annotator_id, question)
        return stored, (yield from self._top_up(connection, annotator_id, hold))

    def _top_up(self, connection: Quick, annotator_id: int, hold: int) -> Steps[list[Served]]:
        ask = self.leases.look(connection, annotator_id, self.clock(), self.seeds)
        yield
        return (yield from self.leases.top_up(ask, hold))

    # -- one annotator -----------------------------------------------------------------------------------------------

    @contextmanager
    def _as(self, annotator_id: int) -> Iterator[Quick]:
        with self.store.quick() as connection:
            _check(connection.execute(self._annotator, {"annotator": annotator_id}).scalar())
            yield connection

    def _find(self, connection: Runs, annotator_id: int, question_id: int) -> Row:
        mine = {"question": question_id, "annotator": annotator_id}
        row = connection.execute(self._question, mine).mappings().first()
        if row is None:
            raise NotFound("no_question", f"question {question_id} is not one of yours")
        return row

    # -- answers and skips -------------------------------------------------------------------------------------------

    def _may_answer(self, connection: Runs, question: Row, attempt: int, given: Given) -> None:
        answer = given.answer
        if attempt != question["attempt"]:
            raise Conflict("stale_attempt", f"question {question['id']} is at attempt {question['attempt']}")
        if given.kind == "typed":
            self._may_type(connection, answer)
        elif given.kind == "answer" and answer is None and not question["shortlist"]:
            raise Invalid("nothing_shown", "no classes were shown: type one, or skip the item")
        elif answer is not None and answer not in question["shortlist"]:
            raise Invalid("not_shown", f"class {answer} is not on the shortlist of question {question['id']}")
        if question["state"] == "expired" and not self._may_regain(connection, question):
            raise Conflict("lease_lost", f"question {question['id']} has expired and was given to somebody else")

    def _may_type(self, connection: Runs, answer: int | None) -> None:
        if not self.typing:
            raise Invalid("no_typing", "this project takes only classes that are on the list, or None")
        if answer is None or answer not in range(count_classes(connection)) or answer in ended_classes(connection):
            raise Invalid("no_class", f"a typed answer is a class, and there is no class {answer} (any more)")

    def _may_regain(self, connection: Runs, question: Row) -> bool:
        """A late answer still counts unless somebody else was given the slot in the meantime."""
        waiting = "closed" if question["gold"] else "free"
        if question["slot_state"] != waiting or question["slot_turn"] != question["turn"]:
            return False
        mine = {"annotator": question["annotator_id"], "item": question["item_id"]}
        mine |= {"slot": question["slot_id"], "at_turn": question["turn"]}
        return not connection.execute(_SPOKEN, mine).scalar()

    def _store(self, connection: Quick, question: Row, given: Given) -> Callable[[], Stored]:
        again = given.kind == "answer" and self._is_asked_again(connection, question, given.answer)
        if given.kind != "skip" and not again:
            return self._settle(connection, question, given)
        stored = append(connection, question, given, self.clock())
        state = "skipped" if given.kind == "skip" else "answered"
        set_question(connection, question["id"], state, question["attempt"])
        count_answer(connection, question["annotator_id"], given.kind, given.answer, +1)
        free_slot(connection, question, turn=question["turn"] + again)
        if again and not question["gold"]:
            self.chooser.front.put(question["item_id"])
        return partial(_same, stored)

    def _settle(self, connection: Quick, question: Row, given: Given) -> Callable[[], Stored]:
        """An answer that ends its slot."""
        now, gold, at = self.clock(), question["gold"], question["attempt"]
        row = {"new_question_id": question["id"], "new_attempt": at, "new_kind": given.kind}
        row |= {"new_class_id": given.answer, "new_seconds": given.seconds, "new_answered_at": now}
        row |= {"new_supersedes": None, "annotator": question["annotator_id"], **counts(given.kind, given.answer, +1)}
        row |= {"question": question["id"], "to_state_of_question": "answered", "to_attempt": at}
        row |= {"slot": question["slot_id"], "to_state": "done", "to_turn": question["turn"], "until": None}
        row |= {"holder": question["annotator_id"], "item": question["item_id"], "change": 0 if gold else -1}
        made = SETTLE_ANSWER.run(connection, row)
        if not gold:
            self._count(connection, +1)
        return lambda: as_stored(made(), question, given, now)

    def _is_asked_again(self, connection: Runs, question: Row, answer: int | None) -> bool:
        """After None, if the policy says so; and with a class that was retired while somebody looked at its list."""
        if answer is None:  # needs a look at what was refused, this answer included
            return self._may_ask_again(connection, question)
        gone = answer in ended_classes(connection) and read_class_map(connection).now(answer) is None
        return gone and not question["gold"]

    def _may_ask_again(self, connection: Runs, question: Row) -> bool:
        """Whether the item is asked about again with other classes, now that these are refused as well.

        So are gold items: whoever is not asked again would know that it was one, and could take their None back.
        """
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

    def _undo(self, connection: Quick, annotator_id: int, question: Row) -> Stored:
        taken_back = find_answer(connection, question, question["attempt"])
        if taken_back is None:
            raise Conflict("nothing_to_undo", f"question {question['id']} has no answer to take back")
        state, ahead = question["slot_state"], question["slot_turn"] - question["turn"]
        mine = state == "done" and ahead == 0 and question["slot_holder"] == annotator_id
        # a None is asked again at once, mostly of the same person; or the policy knew enough and closed the item
        held = state == "leased" and ahead == 1 and question["slot_holder"] == annotator_id
        waiting = state in ("free", "closed") and ahead <= 1
        passed = taken_back.kind == "skip" and ahead > 0  # somebody else has answered it since
        if passed or not (mine or held or waiting):
            raise Conflict("slot_taken", f"question {question['id']} has since been given to somebody else")
        if held:
            self.leases.expire(connection, question)
        elif state == "closed" and not question["gold"]:
            reopen(connection, question["item_id"])
        now = self.clock()
        stored = append(connection, question, Given("undo"), now, taken_back.id)
        set_question(connection, question["id"], "open", question["attempt"] + 1)
        until = now + self.leases.lease_seconds
        set_slot(connection, question["slot_id"], "leased", question["turn"], annotator_id, until)
        count_answer(connection, annotator_id, taken_back.kind, taken_back.answer, -1)
        if mine and not question["gold"]:
            settle_item(connection, question["item_id"], +1)
            self._count(connection, -1)
        return stored

    def _take_back(self, connection: Quick, question: Row) -> None:
        answer = find_answer(connection, question, question["attempt"])
        assert answer is not None  # its state is "answered"
        append(connection, question, Given("undo"), self.clock(), answer.id)
        set_question(connection, question["id"], "expired", question["attempt"] + 1)
        count_answer(connection, question["annotator_id"], answer.kind, answer.answer, -1)
        # an answer from Label Studio may have a slot that is nobody's
        if question["slot_state"] != "done" or question["slot_holder"] not in (question["annotator_id"], None):
            return  # a None, after which somebody else was asked: the slot is theirs
        if question["slot_turn"] != question["turn"]:
            return  # a None before the answer that ended the slot
        free_slot(connection, question, question["turn"])
        if not question["gold"]:
            settle_item(connection, question["item_id"], +1)
            reopen(connection, question["item_id"])
            self._count(connection, -1)

    def _count(self, connection: Quick, change: int) -> None:
        def settle() -> None:
            self.settled += change

        connection.after.append(settle)


def _check(annotator_id: int | None) -> None:
    if annotator_id is None:
        raise NotFound("no_annotator", "there is no such annotator")


def _same(stored: Stored) -> Stored:
    return stored


def _nothing() -> Steps[list[Served]]:
    yield
    return []

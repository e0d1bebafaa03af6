"""Lease, answer, skip, undo and expiry by two annotators and a clock, against a model in plain Python."""

from dataclasses import dataclass, field
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import func, select, text

from shortlist.annotate.db.schema import Annotator, Answer, Item, Question, Slot
from shortlist.annotate.db.statements import STANDING
from shortlist.annotate.problems import Conflict

from ..conftest import Clock, people

ITEMS, OVERLAP, CLASSES, LEASE = 2, 2, 6, 300.0  # few enough that the queue runs empty


@dataclass
class Asked:
    slot: int
    item: int
    who: int
    shortlist: list[int]
    state: str = "open"
    attempt: int = 0


@dataclass
class Model:
    holder: dict[int, int | None] = field(default_factory=dict)  # slot -> the open question
    until: dict[int, float] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)  # slot -> the question that settled it
    item_of: dict[int, int] = field(default_factory=dict)
    asked: dict[int, Asked] = field(default_factory=dict)
    log: dict[tuple[int, int], tuple[str, int | None]] = field(default_factory=dict)
    undone: set[tuple[int, int]] = field(default_factory=set)

    def spoke(self, who: int, item: int) -> bool:
        return any(q.who == who and q.item == item and q.state != "expired" for q in self.asked.values())

    def free(self, slot: int) -> bool:
        return self.holder[slot] is None and slot not in self.done

    def held(self, who: int) -> list[int]:
        return sorted(key for key, q in self.asked.items() if q.who == who and q.state == "open")

    def expire(self, now: float) -> None:
        for slot, question in self.holder.items():
            if question is not None and self.until[slot] <= now:
                self.asked[question].state = "expired"
                self.holder[slot] = None

    def live(self) -> dict[int, int | None]:
        return {
            key: value
            for (key, attempt), (kind, value) in self.log.items()
            if kind != "skip" and (key, attempt) not in self.undone
        }


def outcome(act, *arguments):
    """ "ok" and what was stored, or the code of the refusal."""
    try:
        return "ok", act(*arguments)[0]
    except Conflict as refused:
        return refused.code, None


def machine(project, ids: list[int]) -> type[RuleBasedStateMachine]:
    class Annotating(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            reset(project)
            self.clock = Clock()
            self.queue = project.queue(clock=self.clock, lease_seconds=LEASE)
            self.model = Model()
            with project.store.read() as connection:
                for slot, item in connection.execute(select(Slot.id, Slot.item_id)):
                    self.model.holder[slot] = None
                    self.model.item_of[slot] = item

        # -- what people do

        @rule(who=st.sampled_from(ids), hold=st.integers(0, 3))
        def next(self, who: int, hold: int) -> None:
            before = self.model.held(who)
            for key in before:
                self.model.until[self.model.asked[key].slot] = self.clock.now + LEASE
            if len(before) < hold:
                self.model.expire(self.clock.now)
            takable = {
                self.model.item_of[slot]
                for slot in self.model.holder
                if self.model.free(slot) and not self.model.spoke(who, self.model.item_of[slot])
            }
            self.took(who, self.queue.next(who, hold))
            wanted = max(len(before), min(hold, len(before) + len(takable)))
            assert len(self.model.held(who)) == wanted

        def took(self, who: int, held: list) -> None:
            known = self.model.held(who)
            assert [q.id for q in held][: len(known)] == known, "what was held is still held, oldest first"
            for q in held[len(known) :]:
                with project.store.read() as connection:
                    slot = connection.execute(select(Question.slot_id).where(Question.id == q.id)).scalar_one()
                assert self.model.free(slot)
                assert not self.model.spoke(who, q.item_id)
                self.model.holder[slot] = q.id
                self.model.until[slot] = self.clock.now + LEASE
                self.model.asked[q.id] = Asked(slot, q.item_id, who, q.shortlist)

        @precondition(lambda self: self.model.asked)
        @rule(data=st.data(), kind=st.sampled_from(["answer", "answer", "typed", "skip"]))
        def decide(self, data: st.DataObject, kind: str) -> None:
            key = data.draw(st.sampled_from(sorted(self.model.asked)))
            q = self.model.asked[key]
            attempt = data.draw(st.integers(0, q.attempt))
            among = {"answer": [None, *q.shortlist[:2]], "typed": [q.shortlist[0], *range(CLASSES)], "skip": [None]}
            value = data.draw(st.sampled_from(among[kind]))
            expected = self.expected(key, attempt, (kind, value))
            if kind != "skip":
                answer = partial(self.queue.answer, typed=kind == "typed")
                code, stored = outcome(answer, q.who, key, attempt, value, 1.0)
            else:
                code, stored = outcome(self.queue.skip, q.who, key, attempt)
            assert code == expected
            if stored is None:
                return
            assert (stored.kind, stored.answer) == (kind, value)
            assert stored.superseded == ((key, attempt) in self.model.undone)
            if (key, attempt) not in self.model.log:
                self.model.log[key, attempt] = (kind, value)
                self.model.holder[q.slot] = None
                q.state = "skipped" if kind == "skip" else "answered"
                if kind != "skip":
                    self.model.done[q.slot] = key

        def expected(self, key: int, attempt: int, decision: tuple[str, int | None]) -> str:
            q = self.model.asked[key]
            if (key, attempt) in self.model.log:
                return "ok" if self.model.log[key, attempt] == decision else "answered_differently"
            if attempt != q.attempt:
                return "stale_attempt"
            if q.state == "expired" and not (self.model.free(q.slot) and not self.model.spoke(q.who, q.item)):
                return "lease_lost"
            return "ok"

        @precondition(lambda self: self.model.asked)
        @rule(data=st.data())
        def undo(self, data: st.DataObject) -> None:
            key = data.draw(st.sampled_from(sorted(self.model.asked)))
            q = self.model.asked[key]
            if (key, q.attempt) not in self.model.log:
                expected = "nothing_to_undo"
            elif self.model.done.get(q.slot) == key or self.model.free(q.slot):
                expected = "ok"
            else:
                expected = "slot_taken"
            code, stored = outcome(self.queue.undo, q.who, key)
            assert code == expected
            if stored is None:
                return
            self.model.undone.add((key, q.attempt))
            self.model.done.pop(q.slot, None)
            self.model.holder[q.slot] = key
            for held in self.model.held(q.who):
                self.model.until[self.model.asked[held].slot] = self.clock.now + LEASE
            self.model.until[q.slot] = self.clock.now + LEASE
            q.state, q.attempt = "open", q.attempt + 1

        @rule(seconds=st.sampled_from([1.0, 200.0, 301.0]))
        def wait(self, seconds: float) -> None:
            self.clock.now += seconds

        @rule(who=st.sampled_from(ids), hold=st.integers(1, 3))
        def go_away_and_come_back(self, who: int, hold: int) -> None:
            self.next(who, hold)
            self.clock.now += LEASE + 1
            self.next(next(other for other in ids if other != who), 1)
            self.next(who, hold)

        @precondition(lambda self: self.model.asked)
        @rule()
        def restart(self) -> None:
            self.queue = project.queue(clock=self.clock, lease_seconds=LEASE)

        # -- what must always be so

        @invariant()
        def database_agrees(self) -> None:
            if hasattr(self, "model"):
                check(project, self.model)

    return Annotating


def reset(project) -> None:
    with project.store.write() as connection:
        connection.execute(text("DELETE FROM answers WHERE supersedes IS NOT NULL"))
        for statement in (
            "DELETE FROM answers",
            "DELETE FROM questions",
            "UPDATE slots SET state = 'free', rank = id, annotator_id = NULL, lease_until = NULL",
            f"UPDATE items SET state = 'open', pending = {OVERLAP}",
            "UPDATE annotators SET answers = 0, nones = 0, skips = 0",
        ):
            connection.execute(text(statement))


def check(project, model: Model) -> None:
    with project.store.read() as connection:
        slots = connection.execute(select(Slot)).mappings().all()
        questions = {row["id"]: row for row in connection.execute(select(Question)).mappings()}
        rows = connection.execute(select(Answer).order_by(Answer.id)).mappings().all()
        counters = {row["id"]: row for row in connection.execute(select(Annotator)).mappings()}
        items = connection.execute(select(Item)).mappings().all()
        latest = connection.execute(select(func.max(Slot.rank))).scalar()
        joined = select(Question.id, Answer.class_id).join(Answer, Answer.question_id == Question.id)
        standing = dict(connection.execute(joined.where(*STANDING)).all())
    assert {key: (q.state, q.attempt) for key, q in model.asked.items()} == {
        key: (row["state"], row["attempt"]) for key, row in questions.items()
    }
    for slot in slots:
        holder = model.holder[slot["id"]]
        state = "leased" if holder is not None else "done" if slot["id"] in model.done else "free"
        assert slot["state"] == state
        owner = holder or model.done.get(slot["id"])
        assert slot["annotator_id"] == (model.asked[owner].who if owner else None)
        assert slot["rank"] <= latest
        if state == "leased":
            assert slot["lease_until"] == model.until[slot["id"]]
    superseded = {row["supersedes"] for row in rows}
    said = [row for row in rows if row["kind"] in ("answer", "typed") and row["id"] not in superseded]
    live = {row["question_id"]: row["class_id"] for row in said}
    assert live == standing == model.live()
    logged = {(row["question_id"], row["attempt"]): row["class_id"] for row in rows if row["kind"] != "undo"}
    assert logged == {key: value for key, (_, value) in model.log.items()}
    for who, row in counters.items():
        mine = [value for key, value in live.items() if questions[key]["annotator_id"] == who]
        assert (row["answers"], row["nones"]) == (len(mine), mine.count(None))
    for item in items:
        waiting = [slot for slot in slots if slot["item_id"] == item["id"] and slot["state"] != "done"]
        assert (item["pending"], item["state"]) == (len(waiting), "open" if waiting else "done")


def test_the_queue_behaves_as_the_model(make_project, database):
    project = make_project(database, items=ITEMS, classes=CLASSES, overlap=OVERLAP, typing=True)
    ids = people(project, "ada", "bob")
    examples = 40 if database is None else 12
    run_state_machine_as_test(
        machine(project, ids),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

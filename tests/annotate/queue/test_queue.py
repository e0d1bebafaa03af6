"""Which question somebody gets: leases, answers, undo, skips, overlap, gold."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import func, select, text, update

from shortlist.annotate.db.schema import Answer, Item, Question, Slot
from shortlist.annotate.problems import Conflict, Invalid, NotFound
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import Source
from shortlist.annotate.queue import leases
from shortlist.annotate.queue.chooser import Choice, UniformChooser

from ..conftest import people
from .conftest import scalar


def test_a_question_is_stored_before_it_is_shown(make_project, database, clock):
    project = make_project(database)
    (ada,) = people(project, "ada")
    (shown,) = project.queue(clock=clock).next(ada)
    with project.store.read() as connection:
        row = connection.execute(select(Question)).mappings().one()
    assert (row["id"], row["shortlist"], row["annotator_id"]) == (shown.id, shown.shortlist, ada)
    assert (row["policy"], row["probabilities"], row["served_at"]) == ("uniform", [0.5] * 3, clock.now)
    again = UniformChooser(3).choose(1, 6, [], row["seed"])
    assert list(again.shortlist) == shown.shortlist, "the seed gives the shortlist again"


def test_asking_again_gives_the_same_question(make_project, database):
    project = make_project(database)
    (ada,) = people(project, "ada")
    queue = project.queue()
    first = queue.next(ada, hold=2)
    assert [q.id for q in queue.next(ada, hold=2)] == [q.id for q in first]
    assert [q.shortlist for q in project.queue().next(ada, hold=2)] == [q.shortlist for q in first]


def test_two_annotators_never_hold_the_same_slot(make_project, database):
    project = make_project(database, items=20, overlap=2)
    ids = people(project, *"abcdefgh")
    queue = project.queue()
    with ThreadPoolExecutor(8) as pool:
        held = list(pool.map(lambda who: queue.next(who, hold=4), ids))
    assert all(len(questions) == 4 for questions in held)
    for questions in held:
        assert len({q.item_id for q in questions}) == 4, "nobody is asked twice about an item"
    assert scalar(project, select(func.count(func.distinct(Question.slot_id)))) == 32


def test_two_tabs_of_one_annotator_see_the_same_questions(make_project, database):
    project = make_project(database, items=20)
    (ada,) = people(project, "ada")
    queue = project.queue()
    with ThreadPoolExecutor(8) as pool:
        held = list(pool.map(lambda _: [q.id for q in queue.next(ada, hold=2)], range(16)))
    assert all(ids == held[0] for ids in held)


def test_an_answer_is_idempotent_and_a_different_one_refused(make_project, database):
    project = make_project(database)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue()
    (q,) = queue.next(ada)
    first, _ = queue.answer(ada, q.id, 0, q.shortlist[0], 1.5)
    again, _ = queue.answer(ada, q.id, 0, q.shortlist[0], 99.0)
    assert again == first
    for other in (None, q.shortlist[1]):
        with pytest.raises(Conflict) as refused:
            queue.answer(ada, q.id, 0, other, 1.0)
        assert refused.value.code == "answered_differently"
    with pytest.raises(Conflict):
        queue.skip(ada, q.id, 0)
    with pytest.raises(NotFound):
        queue.answer(bob, q.id, 0, q.shortlist[0], 1.0)
    assert scalar(project, select(func.count()).select_from(Answer)) == 1


def test_the_same_answer_at_once_from_many_threads_is_stored_once(make_project, database):
    project = make_project(database)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(lambda _: queue.answer(ada, q.id, 0, None, 1.0)[0].id, range(16)))
    assert len(set(stored)) == 1


def test_an_answer_must_be_on_the_shortlist(make_project, database):
    project = make_project(database)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    absent = next(k for k in range(6) if k not in q.shortlist)
    for bad in (absent, -1, 10**6):
        with pytest.raises(Invalid):
            queue.answer(ada, q.id, 0, bad, 1.0)


def test_undo_supersedes_and_the_same_question_is_answered_anew(make_project, database):
    project = make_project(database)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    first, _ = queue.answer(ada, q.id, 0, None, 1.0)
    undone, held = queue.undo(ada, hold=1)
    assert undone.kind == "undo"
    assert [(h.id, h.attempt, h.shortlist) for h in held] == [(q.id, 1, q.shortlist)]
    late, _ = queue.answer(ada, q.id, 0, None, 1.0)  # a delayed retry of the first answer changes nothing
    assert (late.id, late.superseded) == (first.id, True)
    again, _ = queue.undo(ada, q.id, 0)
    assert again.id == undone.id, "undo is idempotent too"
    queue.answer(ada, q.id, 1, q.shortlist[0], 1.0)
    with project.store.read() as connection:
        rows = connection.execute(select(Answer.kind, Answer.supersedes).order_by(Answer.id)).all()
    assert rows == [("answer", None), ("undo", first.id), ("answer", None)], "nothing was changed or removed"
    with pytest.raises(Conflict):
        queue.answer(ada, q.id, 2, None, 1.0)


def test_undo_without_an_answer_is_refused(make_project, database):
    project = make_project(database)
    (ada,) = people(project, "ada")
    queue = project.queue()
    with pytest.raises(Conflict):
        queue.undo(ada)
    (q,) = queue.next(ada)
    with pytest.raises(Conflict):
        queue.undo(ada, q.id)


def test_a_skip_goes_to_somebody_else_and_can_be_taken_back_until_then(make_project, database):
    project = make_project(database, items=1)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue()
    (q,) = queue.next(ada)
    queue.skip(ada, q.id, 0)
    assert queue.next(ada) == [], "a skipped item does not come back to the one who skipped it"
    _, held = queue.undo(ada, q.id, 0, hold=1)
    assert held[0].id == q.id
    queue.skip(ada, q.id, 1)
    (other,) = queue.next(bob)
    assert other.item_id == q.item_id
    with pytest.raises(Conflict) as refused:
        queue.undo(ada, q.id, 1)
    assert refused.value.code == "slot_taken"


def test_a_lease_that_ran_out_goes_to_somebody_else(make_project, database, clock):
    project = make_project(database, items=1)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue(clock=clock)
    (q,) = queue.next(ada)
    clock.now += 299
    assert queue.next(bob) == []
    queue.renew(ada)
    clock.now += 299
    assert queue.next(bob) == [], "renewed"
    clock.now += 2
    (taken,) = queue.next(bob)
    assert taken.item_id == q.item_id
    assert taken.id != q.id
    with pytest.raises(Conflict) as refused:
        queue.answer(ada, q.id, 0, None, 1.0)
    assert refused.value.code == "lease_lost"
    queue.answer(bob, taken.id, 0, None, 1.0)


def test_a_lease_has_run_out_at_the_very_moment_it_ends(make_project, database, clock):
    """Protects the boundary: `lease_until` is the first moment at which somebody else may have the question."""
    project = make_project(database, items=1)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue(clock=clock)
    (held,) = queue.next(ada)
    clock.now = held.lease_until - 0.001
    assert queue.next(bob) == []
    clock.now = held.lease_until
    assert [taken.item_id for taken in queue.next(bob)] == [held.item_id]


def test_a_late_answer_counts_while_nobody_else_has_the_slot(make_project, database, clock):
    project = make_project(database, items=2)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue(clock=clock)
    held = queue.next(ada, hold=2)
    clock.now += 1000
    assert [q.id for q in queue.next(ada, hold=2)] == [q.id for q in held], "unclaimed: still the same questions"
    clock.now += 1000
    (first,) = queue.next(bob)  # takes one of the two that ran out
    lost = next(q for q in held if q.item_id == first.item_id)
    kept = next(q for q in held if q.item_id != first.item_id)
    stored, _ = queue.answer(ada, kept.id, 0, None, 1.0)
    assert stored.kind == "answer"
    with pytest.raises(Conflict):
        queue.answer(ada, lost.id, 0, None, 1.0)


def test_a_late_answer_does_not_count_beside_another_voice_on_the_item(make_project, database, clock):
    project = make_project(database, items=1, overlap=2)
    ada, bob, cy = people(project, "ada", "bob", "cy")
    queue = project.queue(clock=clock)
    (old,) = queue.next(ada)
    clock.now += 1000
    queue.next(bob)
    clock.now += 1
    queue.next(cy)  # both slots are out now, and run out one after the other
    clock.now += 1000
    (new,) = queue.next(ada)
    assert new.id != old.id
    with pytest.raises(Conflict) as refused:
        queue.answer(ada, old.id, 0, None, 1.0)
    assert refused.value.code == "lease_lost"
    queue.answer(ada, new.id, 0, None, 1.0)


def test_overlap_is_that_many_different_people(make_project, database):
    project = make_project(database, items=3, overlap=2)
    ids = people(project, "a", "b", "c")
    queue = project.queue()
    for who in ids:
        while held := queue.next(who):
            queue.answer(who, held[0].id, 0, None, 1.0)
    with project.store.read() as connection:
        voices = connection.execute(
            select(Question.item_id, func.count(func.distinct(Question.annotator_id))).group_by(Question.item_id)
        ).all()
        states = connection.execute(select(Item.state).distinct()).scalars().all()
    assert sorted(count for _, count in voices) == [2, 2, 2]
    assert states == ["done"]


def test_gold_items_are_asked_of_everybody_and_of_nobody_twice(make_project, database):
    project = make_project(database, items=40, gold=3, gold_every=2)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue()
    for who in (ada, bob):
        for _ in range(18):
            (q,) = queue.next(who)
            queue.answer(who, q.id, 0, None, 1.0)
    with project.store.read() as connection:
        rows = connection.execute(
            select(Question.annotator_id, Question.item_id).join(Slot, Slot.id == Question.slot_id).where(Slot.gold)
        ).all()
    assert len(set(rows)) == len(rows)
    assert {who for who, _ in rows} == {ada, bob}


def test_an_expired_gold_slot_is_passed_to_nobody(make_project, database, clock):
    project = make_project(database, items=4, gold=1, gold_every=2)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue(clock=clock, seeds=lambda: 0)  # every question wants to be gold
    (q,) = queue.next(ada)
    clock.now += 1000
    assert len(queue.next(bob, hold=2)) == 2
    assert scalar(project, select(Slot.state).where(Slot.gold, Slot.annotator_id == ada)) == "closed"
    stored, _ = queue.answer(ada, q.id, 0, None, 1.0)
    assert stored.kind == "answer", "late, but nobody else wanted it"


def test_classes_added_while_it_runs_appear_on_the_shortlists(make_project, database):
    project = make_project(database, items=30, classes=3)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    assert set(q.shortlist) == {0, 1, 2}
    add_classes(project, ["new"])
    seen = set()
    for _ in range(25):
        (q,) = queue.next(ada)
        seen |= set(q.names)
        queue.answer(ada, q.id, 0, None, 1.0)
    assert "new" in seen


def test_a_removed_annotators_questions_are_free_again(make_project, database):
    project = make_project(database, items=1)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue()
    queue.next(ada)
    queue.release(ada)
    assert len(queue.next(bob)) == 1


def test_an_undone_skip_takes_nobodys_answer(make_project, database):
    project = make_project(database, items=1)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue()
    (q,) = queue.next(ada)
    queue.skip(ada, q.id, 0)
    (other,) = queue.next(bob)
    queue.answer(bob, other.id, 0, other.shortlist[0], 1.0)
    with pytest.raises(Conflict):
        queue.undo(ada, q.id)
    assert scalar(project, select(Item.state)) == "done"
    assert scalar(project, select(Slot.annotator_id)) == bob


def test_where_to_begin_looking_is_forgotten_after_a_while(make_project, monkeypatch):
    """Protects a slot that becomes visible after one with a higher rank, as may happen on PostgreSQL."""
    project = make_project(items=2)
    (ada,) = people(project, "ada")
    queue = project.queue()
    assert len(queue.next(ada, hold=3)) == 2
    add_items(project, [Source("late", "late", text="?")])
    with project.store.write() as connection:
        connection.execute(update(Slot).where(Slot.state == "free").values(rank=-5))
    assert len(queue.next(ada, hold=3)) == 2, "below the hint, which is fresh"
    monkeypatch.setattr(leases, "HINT_SECONDS", -1.0)
    assert len(queue.next(ada, hold=3)) == 3


def test_the_work_of_a_request_does_not_grow(make_project):
    """The steps of SQLite's virtual machine for an answer with the next question, at 200 and at 20,000 items."""
    steps = []
    for items in (200, 20_000):
        project = make_project(items=items)
        (ada,) = people(project, "ada")
        queue = project.queue()
        (q,) = queue.next(ada)
        for _ in range(100):
            _, (q,) = queue.answer(ada, q.id, 0, None, 1.0, hold=1)
        counted = [0]

        def count(counted=counted):
            counted[0] += 1

        with project.store.write() as connection:  # SQLite's writers share this connection
            connection.connection.driver_connection.set_progress_handler(count, 10)
        for _ in range(20):
            _, (q,) = queue.answer(ada, q.id, 0, None, 1.0, hold=1)
        steps.append(counted[0])
    assert steps[0] > 0
    assert steps[1] <= steps[0] * 1.3


def test_uniform_shortlists_are_uniform():
    chooser, counts = UniformChooser(2), np.zeros((4, 4))
    for seed in range(6000):
        a, b = chooser.choose(1, 4, [], seed).shortlist
        counts[a, b] += 1
    assert np.allclose(counts[~np.eye(4, dtype=bool)] / 6000, 1 / 12, atol=0.015)
    assert chooser.choose(1, 3, [0, 1, 2], 1) is None
    assert chooser.choose(1, 3, [0, 2], 1) == Choice((1,), (1.0,), "uniform", "1")


def test_the_database_itself_refuses_a_second_lease_or_answer(make_project, database):
    project = make_project(database)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    queue.answer(ada, q.id, 0, None, 1.0)
    queue.next(ada)
    columns = "slot_id, item_id, annotator_id, turn, shortlist, policy, policy_version, probabilities, seed, state, "
    columns += "attempt, served_at"
    twice = [
        f"INSERT INTO questions ({columns}) SELECT {columns} FROM questions WHERE state = 'open'",
        "INSERT INTO answers (question_id, attempt, kind, answered_at) SELECT question_id, 0, 'skip', 1 FROM answers",
    ]
    for statement in twice:
        with pytest.raises(Exception, match=r"(?i)unique"), project.store.write() as connection:
            connection.execute(text(statement))

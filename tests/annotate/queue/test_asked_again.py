"""Items that are asked about again: after a None, where the policy wants it, and where answers are taken back."""

from itertools import count

import pytest
from sqlalchemy import func, select

from shortlist.annotate.db.schema import Annotator, Item, Slot
from shortlist.annotate.problems import Conflict
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.chooser import Choice, Front
from shortlist.annotate.queue.queue import Queue

from ..conftest import people
from .conftest import scalar


class AskAgain:
    """A policy that asks on until every class was refused, two at a time, and then gives up."""

    def __init__(self):
        self.front, self.most_held = Front(), 9

    def choose(self, item, num_classes, refused, seed):
        left = [k for k in range(num_classes) if k not in refused][:2]
        return Choice(tuple(left), (1.0,) * len(left), "again", "1") if left else None

    def asks_again(self, num_classes, refused):
        return True


def test_a_late_answer_does_not_count_once_the_slot_is_asked_with_other_classes(make_project, database, clock):
    """Protects the turn: the slot is free again, but somebody has refused the list of the late answer by then."""
    project = make_project(database, items=1, classes=5)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, AskAgain(), clock=clock)
    (old,) = queue.next(ada)
    clock.now += 1000
    (taken,) = queue.next(bob)
    queue.answer(bob, taken.id, 0, None, 1.0)
    assert scalar(project, select(Slot.state)) == "free"
    with pytest.raises(Conflict) as refused:
        queue.answer(ada, old.id, 0, old.shortlist[0], 1.0)
    assert refused.value.code == "lease_lost"
    assert scalar(project, select(Item.state)) == "open"


@pytest.mark.parametrize("seed", [0, 1], ids=["gold", "plain"])
def test_a_late_answer_to_what_was_asked_again_counts(make_project, database, clock, seed):
    """Their own None before it is no other voice."""
    project = make_project(database, items=3, classes=9, gold=1, gold_every=2)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, AskAgain(), gold_every=2, seeds=count(seed, 2).__next__, clock=clock)
    (first,) = queue.next(ada)
    _, (again,) = queue.answer(ada, first.id, 0, None, 1.0, hold=1)
    assert (again.item_id, again.turn) == (first.item_id, 1)
    clock.now += 1000
    assert queue.next(bob)[0].id != again.id, "he sees that her time is up, and is asked about something else"
    stored, _ = queue.answer(ada, again.id, 0, again.shortlist[0], 1.0)
    assert stored.answer == again.shortlist[0]
    assert project.check() == []


def test_a_skip_cannot_be_taken_back_once_somebody_else_has_said_none(make_project, database):
    """The list is answered: a second answer to it would stand beside the first, in one slot."""
    project = make_project(database, items=1, classes=5)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, AskAgain())
    (skipped,) = queue.next(ada)
    queue.skip(ada, skipped.id, 0)
    queue.undo(ada, skipped.id)
    queue.skip(ada, skipped.id, 1)
    (taken,) = queue.next(bob)
    queue.answer(bob, taken.id, 0, None, 1.0)
    for _ in range(2):
        with pytest.raises(Conflict) as refused:
            queue.undo(ada, skipped.id)
        assert refused.value.code == "slot_taken"
        (held,) = queue.next(ada)
        assert held.turn == 1, "and she is asked about what is left"


def test_what_somebody_passed_over_is_theirs_when_their_own_lease_has_run_out(make_project, database, clock):
    """Protects the hint of where to begin looking, which must be forgotten with the lease.

    Ada holds one slot of an item and passes over the other. Her lease runs out and Bob, who may have only that slot
    again, takes it: the other one lies before the place where she would begin to look.
    """
    project = make_project(database, items=1, classes=9, overlap=2)
    ada, bob, dan = people(project, "ada", "bob", "dan")
    queue = Queue(project.store, AskAgain(), clock=clock)
    for who in (bob, dan):
        (question,) = queue.next(who)
        queue.answer(who, question.id, 0, None, 1.0)
    assert len(queue.next(ada, hold=2)) == 1
    clock.now += 1000
    assert len(queue.next(bob)) == 1
    assert len(queue.next(ada)) == 1


def test_a_policy_may_ask_again_without_the_refused_classes(make_project, database):
    project = make_project(database, items=1, classes=5)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, AskAgain())
    shown = []
    for who in (ada, ada, bob):
        (q,) = queue.next(who)
        shown.append(q.shortlist)
        queue.answer(who, q.id, 0, None, 1.0)
    assert shown == [[0, 1], [2, 3], [4]]
    assert queue.next(bob) == []
    assert scalar(project, select(Item.state)) == "closed"


def test_undo_of_a_none_that_was_going_to_be_asked_again(make_project, database):
    project = make_project(database, items=1, classes=5)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, AskAgain())
    (q,) = queue.next(ada)
    queue.answer(ada, q.id, 0, None, 1.0)
    _, held = queue.undo(ada, hold=1)
    assert held[0].shortlist == [0, 1]
    queue.answer(ada, q.id, 1, None, 1.0)
    (next_turn,) = queue.next(bob)
    assert next_turn.shortlist == [2, 3]
    with pytest.raises(Conflict):
        queue.undo(ada, q.id, 1)
    queue.answer(bob, next_turn.id, 0, 3, 1.0)
    assert scalar(project, select(Item.state)) == "done"


def test_undo_of_a_none_that_was_asked_again_of_the_same_person(make_project, database):
    """That is the usual case, and a None by mistake is what people most want back."""
    project = make_project(database, items=1, classes=5)
    (ada,) = people(project, "ada")
    queue = Queue(project.store, AskAgain())
    (first,) = queue.next(ada)
    _, (second,) = queue.answer(ada, first.id, 0, None, 1.0, hold=1)
    _, (third,) = queue.answer(ada, second.id, 0, None, 1.0, hold=1)
    assert [first.shortlist, second.shortlist, third.shortlist] == [[0, 1], [2, 3], [4]]
    _, (again,) = queue.undo(ada, second.id, 0, hold=1)
    assert (again.id, again.attempt) == (second.id, 1)
    _, (again,) = queue.undo(ada, first.id, 0, hold=1)
    assert (again.id, again.attempt) == (first.id, 1)
    with pytest.raises(Conflict):
        queue.answer(ada, third.id, 0, 4, 1.0)
    _, (anew,) = queue.answer(ada, first.id, 1, None, 1.0, hold=1)
    assert anew.shortlist == [2, 3], "what was taken back was not refused"
    queue.answer(ada, anew.id, 0, 2, 1.0)
    assert scalar(project, select(Item.state)) == "done"
    assert queue.next(ada) == []


def test_undo_of_the_none_after_which_an_item_was_closed(make_project, database):
    project = make_project(database, items=1, classes=2)
    (ada,) = people(project, "ada")
    queue = Queue(project.store, AskAgain())
    (q,) = queue.next(ada)
    assert queue.answer(ada, q.id, 0, None, 1.0, hold=1)[1] == []
    assert scalar(project, select(Item.state)) == "closed"
    _, (again,) = queue.undo(ada, hold=1)
    assert (again.id, again.attempt) == (q.id, 1)
    queue.answer(ada, q.id, 1, 1, 1.0)
    assert scalar(project, select(Item.state)) == "done"


def test_all_answers_of_somebody_are_taken_back_and_asked_again(make_project, database):
    project = make_project(database, items=150, classes=5, overlap=2, gold=3, gold_every=2)
    sly, bob, cem = people(project, "sly", "bob", "cem")
    queue = project.queue()
    for who in (sly, bob):
        while held := queue.next(who):
            queue.answer(who, held[0].id, 0, held[0].shortlist[0], 1.0)
    given = scalar(project, select(Annotator.answers).where(Annotator.id == sly))
    assert given == 153
    assert scalar(project, select(func.count()).where(Item.state == "done")) == 150
    assert queue.take_back(sly) == given
    assert queue.take_back(sly) == 0
    status = Stats(project.store).status()
    assert status["progress"] == {"done": 150, "total": 300}
    assert (status["items"], status["items_done"]) == (150, 0)
    assert [who["answers"] for who in status["annotators"]] == [0, 153, 0]
    assert [who["gold"] for who in status["annotators"]] == [0, 3, 0]
    while held := queue.next(cem):
        queue.answer(cem, held[0].id, 0, None, 1.0)
    assert Stats(project.store).status()["progress"] == {"done": 300, "total": 300}
    assert project.store.check() == []


def test_a_none_of_theirs_that_others_went_on_from_is_taken_back_as_well(make_project, database):
    project = make_project(database, items=1, classes=5)
    sly, bob = people(project, "sly", "bob")
    queue = Queue(project.store, AskAgain())
    for who in (sly, sly):
        (q,) = queue.next(who)
        queue.answer(who, q.id, 0, None, 1.0)
    (q,) = queue.next(bob)
    assert q.shortlist == [4]
    assert queue.take_back(sly) == 2
    _, (again,) = queue.answer(bob, q.id, 0, None, 1.0, hold=1)
    assert again.shortlist == [0, 1], "nobody has refused these"


def test_a_gold_item_is_asked_about_again_as_any_other(make_project, database):
    """Else whoever sees another item after None knows that it was gold, takes None back and looks again."""
    project = make_project(database, items=9, classes=8, gold=1, gold_every=2)
    (ada,) = people(project, "ada")
    queue = Queue(project.store, AskAgain(), gold_every=2, seeds=count(0, 2).__next__)  # every question may be gold
    (first,) = queue.next(ada)
    gold = scalar(project, select(Item.id).where(Item.gold.is_not(None)))
    assert first.item_id == gold
    seen, question = [first.shortlist], first
    while len({k for shown in seen for k in shown}) < 8:
        _, (question,) = queue.answer(ada, question.id, 0, None, 1.0, hold=1)
        assert (question.item_id, question.turn) == (gold, len(seen))
        seen.append(question.shortlist)
    assert sum(map(len, seen)) == 8, "nothing that was refused comes again, the gold class no more than others"
    _, (again,) = queue.undo(ada, question.id - 1, 0, hold=1)
    assert (again.item_id, again.attempt) == (gold, 1)
    _, (question,) = queue.answer(ada, again.id, 1, again.shortlist[0], 1.0, hold=1)
    assert question.item_id != gold
    row = Stats(project.store).status()["annotators"][0]
    assert (row["answers"], row["gold"], row["nones"]) == (len(seen) - 1, len(seen) - 1, 0)
    assert project.store.check() == []


def test_where_nothing_is_asked_again_gold_is_not(make_project, database):
    project = make_project(database, items=9, classes=8, gold=1, gold_every=2)
    (ada,) = people(project, "ada")
    queue = project.queue(seeds=count(0, 2).__next__)
    (first,) = queue.next(ada)
    _, (second,) = queue.answer(ada, first.id, 0, None, 1.0, hold=1)
    assert second.item_id != first.item_id


def all_gold(project, chooser=None):
    """A queue in which every question may be about a gold item."""
    return Queue(project.store, chooser or AskAgain(), gold_every=2, seeds=count(0, 2).__next__)


def test_a_gold_item_is_asked_about_again_where_the_policy_is_done_with_the_next_item(make_project, database):
    project = make_project(database, items=3, classes=8, gold=1, gold_every=2)
    (ada,) = people(project, "ada")
    chooser, done = AskAgain(), set()
    choose = chooser.choose
    chooser.choose = lambda item, *given: None if item in done else choose(item, *given)
    queue = all_gold(project, chooser)
    (gold,) = queue.next(ada)
    done |= {1, 2}
    _, (again,) = queue.answer(ada, gold.id, 0, None, 1.0, hold=1)
    assert (again.item_id, again.turn) == (gold.item_id, 1)
    with project.store.read() as connection:
        states = dict(connection.execute(select(Item.id, Item.state)).all())
    assert states == {1: "closed", 2: "closed", 3: "open", gold.item_id: "open"}


def test_a_gold_item_of_which_no_class_is_left_costs_the_policy_none_of_its_front(make_project, database):
    project = make_project(database, items=5, classes=2, gold=1, gold_every=2)
    (ada,) = people(project, "ada")
    queue = all_gold(project)
    (gold,) = queue.next(ada)
    queue.chooser.front.put(4)
    _, (after,) = queue.answer(ada, gold.id, 0, None, 1.0, hold=1)
    assert after.item_id == 4
    assert queue.leases.chooser.front.head(0, 9) == []
    assert scalar(project, select(Slot.state).where(Slot.gold)) == "closed"


def test_a_gold_item_is_asked_about_again_where_nothing_else_is_left(make_project, database):
    """Else the last gold question could be told by what follows it."""
    project = make_project(database, items=1, classes=8, gold=1, gold_every=2)
    ada, bob = people(project, "ada", "bob")
    (gold,) = all_gold(project).next(ada)
    queue = Queue(project.store, AskAgain(), gold_every=2, seeds=count(1, 2).__next__)
    (taken,) = queue.next(bob)
    assert taken.item_id != gold.item_id
    _, (again,) = queue.answer(ada, gold.id, 0, None, 1.0, hold=1)
    assert (again.item_id, again.turn) == (gold.item_id, 1)
    assert set(again.shortlist).isdisjoint(gold.shortlist)
    assert queue.answer(ada, again.id, 0, again.shortlist[0], 1.0, hold=1)[1] == []


@pytest.mark.parametrize("seed", [0, 1], ids=["gold", "plain"])
def test_what_somebody_skipped_is_not_asked_again_when_they_say_none_again(make_project, database, seed):
    """Gold or not: they undo the None that led to what they skipped, and say None once more."""
    project = make_project(database, items=4, classes=8, gold=1, gold_every=2)
    (ada,) = people(project, "ada")
    queue = Queue(project.store, AskAgain(), gold_every=2, seeds=count(seed, 2).__next__)
    (first,) = queue.next(ada)
    assert scalar(project, select(Item.gold).where(Item.id == first.item_id)) == (None if seed else 0)
    _, (again,) = queue.answer(ada, first.id, 0, None, 1.0, hold=1)
    assert again.item_id == first.item_id
    queue.skip(ada, again.id, 0)
    queue.undo(ada, first.id, 0)
    _, (after,) = queue.answer(ada, first.id, 1, None, 1.0, hold=1)
    assert after.item_id != first.item_id

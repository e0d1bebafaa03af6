"""A policy that changes its mind: what it had closed is open again for everybody; and people who are not there."""

from itertools import count

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Item, Slot
from shortlist.annotate.problems import NotFound
from shortlist.annotate.project.audit import CommandLine
from shortlist.annotate.project.erasing import erase_person
from shortlist.annotate.queue.chooser import Choice, Front
from shortlist.annotate.queue.queue import Queue

from ..conftest import people
from .conftest import scalar


class Moody:
    """A policy that asks about everything or about nothing, as it pleases."""

    def __init__(self):
        self.front, self.most_held, self.asks, self.refused = Front(), 9, True, []

    def choose(self, item, num_classes, refused, seed):
        left = [k for k in range(num_classes) if k not in refused][:2]
        return Choice(tuple(left), (1.0,) * len(left), "moody", "1") if self.asks else None

    def asks_again(self, num_classes, refused):
        self.refused.append((num_classes, list(refused)))
        return len(refused) < 4


def test_a_closed_item_that_is_wanted_again_is_open_for_all_its_slots(make_project, database):
    project = make_project(database, items=1, overlap=2)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, policy := Moody())
    policy.asks = False
    assert queue.next(ada) == []
    assert scalar(project, select(Item.state)) == "closed"
    policy.asks = True
    assert queue.next(ada) == [], "it is asked about when the policy says so"
    policy.front.put(scalar(project, select(Item.id)))
    assert len(queue.next(ada)) == 1
    assert scalar(project, select(Item.state)) == "open"
    assert len(queue.next(bob)) == 1, "at the front for the first alone"


def test_the_front_is_looked_through_behind_what_is_done_and_what_somebody_has_answered(make_project, database):
    """More than is looked up at once: ten items are done and leave it, thirty are answered by ada and not by bob."""
    project = make_project(database, items=45, overlap=2)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, policy := Moody())

    def answer_one(who):
        (q,) = queue.next(who)
        queue.answer(who, q.id, 0, 0, 1.0)
        return q.item_id

    answered = [answer_one(ada) for _ in range(40)]
    policy.front = Front(answered[:10])
    assert [answer_one(bob) for _ in range(10)] == answered[:10], "in the order of the front"
    with project.store.read() as connection:
        rest = sorted(set(connection.execute(select(Item.id)).scalars()) - set(answered))
    policy.front = Front([*answered, rest[-1]])
    assert answer_one(ada) == rest[-1]
    assert answer_one(bob) == answered[10]
    assert policy.front.head(0, 99) == answered[11:]


@pytest.mark.parametrize("away", ["take back", "erase"])
def test_an_answer_that_is_taken_back_opens_the_item_that_was_closed_since(make_project, database, away):
    project = make_project(database, items=1, overlap=2)
    sly, bob, cem = people(project, "sly", "bob", "cem")
    queue = Queue(project.store, policy := Moody())
    (q,) = queue.next(sly)
    queue.answer(sly, q.id, 0, 0, 1.0)
    policy.asks = False
    assert queue.next(bob) == []
    assert scalar(project, select(Item.state)) == "closed"
    assert (queue.take_back(sly) if away == "take back" else erase_person(project, sly, CommandLine())) == 1
    assert scalar(project, select(Item.state)) == "open"
    policy.asks = True
    for who in (bob, cem):
        (q,) = queue.next(who)
        queue.answer(who, q.id, 0, 0, 1.0)
    assert scalar(project, select(Item.state)) == "done"
    assert away == "erase" or queue.settled == 2
    assert project.store.check() == []


def test_after_answers_were_taken_back_the_question_is_at_its_next_attempt(make_project, database):
    project = make_project(database, items=1)
    (ada,) = people(project, "ada")
    queue = Queue(project.store, Moody())
    (q,) = queue.next(ada)
    first, _ = queue.answer(ada, q.id, 0, 0, 1.0)
    queue.take_back(ada)
    again, _ = queue.answer(ada, q.id, 0, 0, 1.0)
    assert (again.id, again.superseded) == (first.id, True), "sent again: it was stored, and is taken back all the same"
    assert scalar(project, select(Item.state)) == "open"
    queue.answer(ada, q.id, 1, 1, 1.0)  # late, but nobody else was asked
    assert scalar(project, select(Item.state)) == "done"


def test_an_answer_that_is_undone_counts_no_more(make_project, database):
    project = make_project(database, items=1)
    (ada,) = people(project, "ada")
    queue = Queue(project.store, Moody())
    (q,) = queue.next(ada)
    queue.answer(ada, q.id, 0, 1, 1.0)
    assert (scalar(project, select(Item.state)), queue.settled) == ("done", 1)
    queue.undo(ada)
    assert (scalar(project, select(Item.state)), queue.settled) == ("open", 0)
    assert project.store.check() == []


def test_the_policy_hears_of_all_that_was_refused_of_an_item(make_project, database):
    """By whomever, and in order; of what another slot was answered it hears nothing."""
    project = make_project(database, items=1, overlap=2)
    ada, bob, cem = people(project, "ada", "bob", "cem")
    queue = Queue(project.store, policy := Moody())
    for who in (ada, bob, cem):
        (q,) = queue.next(who)
        queue.answer(who, q.id, 0, None, 1.0)
    assert policy.refused == [(6, [0, 1]), (6, [0, 1]), (6, [0, 1, 2, 3])]


def test_who_is_not_there_is_told_so(make_project, database):
    queue = Queue(make_project(database).store, Moody())
    for ask in (queue.next, queue.undo, queue.release, queue.take_back, queue.renew):
        with pytest.raises(NotFound) as refused:
            ask(77)
        assert refused.value.code == "no_annotator", ask


def test_an_item_that_was_made_gold_is_not_taken_from_whom_it_measures(make_project, database):
    """The policy, which does not know yet that it is gold, wants it: one person was given the other's own slot."""
    project = make_project(database, items=2, gold=1, gold_every=2)
    ada, bob = people(project, "ada", "bob")
    queue = Queue(project.store, policy := Moody(), gold_every=2, seeds=count().__next__)
    (gold,) = queue.next(ada)
    queue.skip(ada, gold.id, 0)
    policy.front.put(gold.item_id)
    (held,) = queue.next(bob)
    assert held.item_id != gold.item_id
    with project.store.read() as connection:
        owners = connection.execute(select(Slot.annotator_id).where(Slot.gold).order_by(Slot.id)).scalars().all()
    assert owners == [ada]

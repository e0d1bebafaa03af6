"""What the chooser shows after a training, and which item comes first."""

from dataclasses import replace

import numpy as np
from sqlalchemy import select, update

from shortlist.annotate.db.schema import Item, Question, Slot
from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import LivePlan, live_plan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import Source

from ..conftest import people
from .conftest import WORDS, answer_all, truth


def test_before_the_first_publication_lists_are_uniform_and_none_is_asked_again(words, tmp_path):
    project = words(count=3)
    chooser = LiveChooser(tmp_path, LivePlan(size=2))
    assert not chooser.refresh()
    choice = chooser.choose(1, 6, [1], seed=3)
    assert (choice.policy, choice.inclusion) == ("uniform", (2 / 5, 2 / 5))
    assert 1 not in choice.shortlist
    assert chooser.asks_again(6, [0, 1, 2, 3])
    assert not chooser.asks_again(6, [0, 1, 2, 3, 4]), "it is the class left"
    (ada,) = people(project, "ada")
    asked = answer_all(project, chooser, ada)
    shown = {}
    for question in asked:
        assert not shown.setdefault(question.item_id, set()) & set(question.shortlist), "refused classes are left out"
        shown[question.item_id] |= set(question.shortlist)
    assert {item: truth(project, q) for q in asked for item in [q.item_id]}.keys() == shown.keys()


def test_the_model_chooses_after_a_training(words):
    project = words()
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3, names=False)  # beside names it would be taken for unproven for longer
    trainer = Trainer(project, plan)
    assert trainer.step(), "the order of the items is published before any answer"
    chooser = LiveChooser(project.live, plan)
    assert chooser.refresh()
    answer_all(project, chooser, ada, most=40)
    assert trainer.step()
    assert not trainer.step(), "nothing new"
    assert chooser.refresh()
    assert not chooser.refresh()
    later = answer_all(project, chooser, ada)
    with project.store.read() as connection:
        rows = {row["id"]: row for row in connection.execute(select(Question)).mappings()}
        states = set(connection.execute(select(Item.state)).scalars())
    assert states == {"done"}
    assert np.mean([truth(project, q) in q.shortlist for q in later]) > 0.8
    assert np.mean([len(q.shortlist) for q in later]) < 2.5
    for question in later:
        row = rows[question.id]
        assert (row["policy"], row["policy_version"]) == ("adaptive", chooser.loaded.snapshot.policy_version)
        assert row["probabilities"] == [1.0] * len(row["shortlist"])
        again = chooser.choose(question.item_id, 6, [], row["seed"])
        assert row["turn"] > 0 or list(again.shortlist) == row["shortlist"], (
            "most likely first; the seed gives it again"
        )


def test_epsilon_is_mixed_in_and_its_probabilities_stored(words):
    project = words()
    (ada,) = people(project, "ada")
    plan = LivePlan(policy="top", size=2, epsilon=0.5)
    trainer = Trainer(project, plan)
    trainer.step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    answer_all(project, chooser, ada, most=30)
    with project.store.read() as connection:
        first = [row for row in connection.execute(select(Question)).mappings() if row["turn"] == 0]
    found = {p for row in first for p in row["probabilities"]}
    expected = {0.5 + 0.5 * 2 / 6, 0.5 * 2 / 6}
    assert all(min(abs(p - e) for e in expected) < 1e-9 for p in found)
    assert len(found) == 2


def test_items_and_classes_added_later_are_asked_at_once_and_learned_next(words):
    project = words(count=12)
    (ada,) = people(project, "ada")
    plan = LivePlan(size=2)
    trainer = Trainer(project, plan)
    trainer.step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    add_items(project, [Source("text 12", "text 12", text="cat mouse")])
    assert chooser.choose(13, 6, [], 1).policy == "uniform"
    assert trainer.step(), "more items: everything from the start"
    assert chooser.refresh()
    assert chooser.choose(13, 6, [], 1).policy == "adaptive"
    add_classes(project, ["newt"])
    assert chooser.choose(13, 7, [], 1).policy == "uniform"
    assert trainer.step()
    assert chooser.refresh()
    assert chooser.choose(13, 7, [], 1).policy == "adaptive"
    answer_all(project, chooser, ada)


def test_where_mistakes_are_modelled_sure_items_are_closed(words):
    project = words(overlap=2)
    ada, bob = people(project, "ada", "bob")
    plan = live_plan(project.settings, "top")
    trainer = Trainer(project, plan)
    trainer.step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    answer_all(project, chooser, ada)
    trainer.step()
    chooser.refresh()
    answer_all(project, chooser, bob)
    with project.store.read() as connection:
        states = list(connection.execute(select(Slot.state).where(Slot.number == 1)).scalars())
    assert states.count("closed") > 30, "one answer is enough where the model agrees"


def test_an_undone_answer_is_forgotten_and_its_item_asked(words):
    project = words(count=24)
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3)
    trainer = Trainer(project, plan)
    trainer.step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    asked = answer_all(project, chooser, ada, most=20)
    trainer.trained_at = -1e9
    assert trainer.step()
    chooser.refresh()
    questions = trainer.loop.state.questions
    queue = project.queue(chooser)
    last = asked[-1]
    queue.undo(ada, last.id)
    trainer.trained_at = -1e9
    assert trainer.step()
    assert trainer.loop.state.questions == questions - 1
    (held,) = queue.next(ada)
    assert held.id == last.id
    queue.answer(ada, held.id, held.attempt, None, 1.0)
    answer_all(project, chooser, ada)
    with project.store.read() as connection:
        assert "closed" not in set(connection.execute(select(Item.state)).scalars())


def test_what_the_trainer_wants_comes_first_and_closed_items_are_opened_again(words, database):
    project = words(database, count=40)
    ada, bob = people(project, "ada", "bob")
    plan = LivePlan(size=3, names=False)
    Trainer(project, plan).step()
    chooser = LiveChooser(project.live, plan)
    queue = project.queue(chooser)
    (before,) = queue.next(ada)
    assert chooser.refresh()
    wanted = [int(row) + 1 for row in chooser.loaded.snapshot.order]
    assert len(wanted) == 40, "all of them, the typical ones first"
    wanted.remove(before.item_id)
    with project.store.write() as connection:
        connection.execute(update(Slot).where(Slot.item_id == wanted[0]).values(state="closed"))
        connection.execute(update(Item).where(Item.id == wanted[0]).values(state="closed"))
    held = []
    for _ in range(5):
        (question,) = queue.next(bob, hold=3)
        held.append(question.item_id)
        queue.answer(bob, question.id, 0, question.shortlist[0], 1.0)
    assert held == wanted[:5], "at the start one in hand, whatever is asked for"
    with project.store.read() as connection:
        assert set(connection.execute(select(Item.state)).scalars()) == {"open", "done"}


def test_after_the_start_more_may_be_fetched_ahead(words):
    project = words()
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3, names=False)
    trainer = Trainer(project, plan)
    trainer.step()
    chooser = LiveChooser(project.live, plan)
    assert chooser.most_held == 1, "nothing is known yet"
    chooser.refresh()
    queue = project.queue(chooser)
    while chooser.most_held == 1:
        assert len(answer_all(project, chooser, ada, most=1)) == 1
        trainer.took = 0.0  # rested
        assert trainer.step(), "at the start every answer is worth a training"
        chooser.refresh()
    assert not np.isin(trainer.loop.first, trainer.loop.open_items()).any()
    assert len(queue.next(ada, hold=3)) == 3


def test_a_none_is_asked_again_before_anything_else(words, database):
    project = words(database, count=40)
    ada, bob = people(project, "ada", "bob")
    plan = LivePlan(size=2)
    Trainer(project, plan).step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    queue = project.queue(chooser)
    (first,), (other,) = queue.next(ada), queue.next(bob)
    queue.answer(ada, first.id, 0, None, 1.0)
    queue.skip(bob, other.id, 0)
    (again,) = queue.next(bob)
    assert again.item_id == first.item_id
    assert not set(again.shortlist) & set(first.shortlist)
    (later,) = queue.next(ada)
    assert later.item_id not in (first.item_id, other.item_id), "a skip goes to the end"


def test_all_is_asked_once_each_also_without_a_newer_publication(words, database):
    project = words(database, count=150)
    plan = LivePlan(size=6)
    Trainer(project, plan).step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    wanted = [int(row) + 1 for row in chooser.loaded.snapshot.order]
    queue, asked = project.queue(chooser), []
    crowd = people(project, *(f"p{i}" for i in range(7)))
    while held := [(who, queue.next(who)) for who in crowd]:
        for who, questions in held:
            for question in questions:
                asked.append(question.item_id)
                queue.answer(who, question.id, 0, question.shortlist[0], 1.0)
        if not any(questions for _, questions in held):
            break
    assert asked == wanted


def test_a_gold_question_leaves_the_wanted_item_in_front(words, database):
    project = words(database, count=40)
    add_items(project, [Source("known", "known", text=WORDS[0], gold="class 0")])
    (ada,) = people(project, "ada")
    plan = LivePlan(size=6)
    Trainer(project, plan).step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    wanted = int(chooser.loaded.snapshot.order[0]) + 1
    queue = project.queue(chooser, seeds=iter([10, 11]).__next__)
    (gold,) = queue.next(ada)
    assert gold.item_id == 41
    queue.answer(ada, gold.id, 0, None, 1.0)
    assert [question.item_id for question in queue.next(ada)] == [wanted]


def test_somebody_who_spoke_about_all_wanted_items_gets_others_soon(words, database):
    project = words(database, count=400, overlap=2)
    ada, bob = people(project, "ada", "bob")
    plan = live_plan(project.settings, "top")
    Trainer(project, plan).step()
    chooser = LiveChooser(project.live, plan)
    queue = project.queue(chooser)
    for _ in range(300):
        (question,) = queue.next(ada)
        queue.answer(ada, question.id, 0, question.shortlist[0], 1.0)
    assert chooser.refresh(), "it wants all of them, also those that ada spoke about"
    (question,) = queue.next(ada)
    (other,) = queue.next(bob)
    assert other.item_id == int(chooser.loaded.snapshot.order[0]) + 1
    assert question.item_id != other.item_id


def test_nobody_is_shown_again_what_they_have_just_refused(words):
    """Also where mistakes are modelled, and the model is all but sure of a class: somebody's slip said so."""
    project = words(overlap=2)
    ada, bob = people(project, "ada", "bob")
    plan = live_plan(project.settings, "adaptive")
    Trainer(project, plan).step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    model = chooser.loaded.snapshot.model
    sure = replace(model, bias=np.log(np.array([0.998, *[0.0004] * 5], np.float32)))
    chooser.loaded = replace(chooser.loaded, snapshot=replace(chooser.loaded.snapshot, model=sure))
    queue = project.queue(chooser)
    (first,) = queue.next(ada)
    assert first.shortlist == [0]
    refused, question = [0], first
    while len(refused) < 6:
        queue.answer(ada, question.id, 0, None, 1.0)
        (question,) = queue.next(ada)
        assert question.item_id == first.item_id, "None is asked again at once"
        assert not set(question.shortlist) & set(refused)
        refused += question.shortlist
    queue.answer(ada, question.id, 0, None, 1.0)
    (other,) = queue.next(ada)
    assert other.item_id != first.item_id, "somebody who refused every class is done with the item"
    assert queue.next(bob)[0].shortlist == [0], "somebody else is asked as if nobody had refused it"

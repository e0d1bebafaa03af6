"""The live loop: what the chooser shows, what the trainer learns, and the two with a real server and robots."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select, update

from shortlist.annotate.db.schema import Item, Question, Slot
from shortlist.annotate.live.answer_log import AnswerLog, Given, rounds
from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.items import check_live, kind_of, read_project
from shortlist.annotate.live.plan import HISTORY, LivePlan, live_plan
from shortlist.annotate.live.supervisor import supervising
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source
from shortlist.annotate.project.stats import Stats
from shortlist.errors import InputError
from shortlist.policies.loop import EXPECTED_GOLD

from ..conftest import people

WORDS = ["cat mouse fur", "dog bark fur", "emu egg feather", "fly wing buzz", "gnu horn grass", "hen egg coop"]


@pytest.fixture
def words(make_project):
    """A project of texts that give their class away: item i is of class i % 6."""

    def make(database=None, count=60, **settings):
        project = make_project(database, items=0, **settings)
        texts = [f"{WORDS[i % 6]} number{i}" for i in range(count)]
        add_items(project, [Source(f"text {i}", f"text {i}", text=text) for i, text in enumerate(texts)])
        return project

    return make


def truth(project, question):
    with project.store.read() as connection:
        name = connection.execute(select(Item.name).where(Item.id == question.item_id)).scalar_one()
    return int(name.split()[1]) % 6


def answer_all(project, chooser, who, most=10_000):
    """Ask and answer rightly until nothing is left; the questions."""
    queue, asked = project.queue(chooser), []
    while len(asked) < most and (held := queue.next(who)):
        (question,) = held
        right = truth(project, question)
        queue.answer(who, question.id, question.attempt, right if right in question.shortlist else None, 1.0)
        asked.append(question)
    return asked


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_the_plan_comes_from_the_project_and_from_what_is_said_now():
    plain = Settings("t", 4)
    assert live_plan(plain) is None
    assert live_plan(plain, "uniform") is None
    found = live_plan(plain, "top", 0.1)
    assert found is not None
    assert (found.policy, found.size, found.epsilon, found.mistakes) == ("top", 4, 0.1, False)
    kept = Settings("t", 4, overlap=2, live={"policy": "adaptive", "l2": 0.3})
    found = live_plan(kept, test="digits")
    assert found is not None
    assert (found.policy, found.l2, found.mistakes, found.test) == ("adaptive", 0.3, True, "digits")
    assert live_plan(kept, "uniform") is None
    assert LivePlan.parse(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    "bad", [{"policy": "best"}, {"epsilon": 2.0}, {"l2": 0}, {"size": "many"}, {"colour": 1}, {"size": 0}]
)
def test_a_bad_plan_is_refused_in_one_line(bad):
    with pytest.raises(InputError) as refused:
        LivePlan.parse({"policy": "adaptive", **bad})
    assert "\n" not in str(refused.value)


def test_options_of_the_policy_without_a_policy_are_refused():
    with pytest.raises(InputError, match="--policy"):
        live_plan(Settings("t", 3), epsilon=0.1)


# -- the chooser -------------------------------------------------------------------------------------------------------


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


# -- reading the log ---------------------------------------------------------------------------------------------------


def test_rounds_give_each_item_at_most_once():
    given = [Given(7, (1, 2), -1), Given(8, (0,), 0), Given(7, (3,), -1, typed=4), Given(9, (1,), 1)]
    found = [tuple(array.tolist() for array in part) for part in rounds(given, {7: 0, 8: 1}, 5)]
    assert found == [
        ([0, 1], [[1, 2], [0, 5]], [2, 1], [-1, 0], [-1, -1]),
        ([0], [[3]], [1], [-1], [4]),
    ]


def test_the_log_gives_what_is_new_and_all_after_an_undo(make_project, database):
    project = make_project(database, items=6)
    (ada,) = people(project, "ada")
    queue, log = project.queue(), AnswerLog()

    def read():
        with project.store.read() as connection:
            found, again = log.read(connection)
        return len(found), again

    def answer():
        (question,) = queue.next(ada)
        queue.answer(ada, question.id, question.attempt, None, 1.0)

    assert read() == (0, False)
    answer()
    answer()
    assert read() == (2, False)
    answer()
    (question,) = queue.next(ada)
    queue.skip(ada, question.id, 0)
    assert read() == (1, False)
    assert read() == (0, False)
    answer()
    queue.undo(ada)
    assert read() == (0, False), "what came and went in between is nothing"
    answer()
    read()
    queue.undo(ada)
    assert read() == (3, True)


# -- items as features -------------------------------------------------------------------------------------------------


def test_gold_items_are_scored_on_and_not_asked_about(make_project):
    project = make_project(items=0)
    add_items(project, [Source(f"i{i}", f"i{i}", text=WORDS[i % 6]) for i in range(30)])
    known = [Source(f"g{i}", f"g{i}", text=WORDS[i % 6], gold=f"class {i % 6}") for i in range(12)]
    add_items(project, known)
    with project.store.read() as connection:
        items = read_project(connection, project.media, 0, None)
    assert items.ids == list(range(1, 31))
    assert items.y_score.tolist() == [i % 6 for i in range(12)]
    assert len(items.x_score) == 12
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3)
    trainer = Trainer(project, plan)
    trainer.step()
    with project.store.read() as connection:
        names = dict(connection.execute(select(Item.id, Item.name)).all())
    queue = project.queue(seeds=iter(range(1, 10**6)).__next__)
    for _ in range(30):
        (question,) = queue.next(ada)
        right = int(names[question.item_id][1:]) % 6
        queue.answer(ada, question.id, 0, right if right in question.shortlist else None, 1.0)
    trainer.trained_at = -1e9
    trainer.step()
    line = json.loads((project.live / HISTORY).read_text().splitlines()[-1])
    assert line["scored_on"] == "gold"
    assert line["accuracy"] > 0.6
    assert line["answers"] == 30
    assert line["questions"] < 30, "gold answers are not trained on"


def test_images_of_any_size_and_sounds_not(make_project, tmp_path):
    from PIL import Image

    project = make_project(items=0)
    for i, size in enumerate([(40, 30), (64, 64), (10, 90)]):
        Image.new("RGB", size, (50 * i, 0, 0)).save(tmp_path / f"{i}.png")
    add_items(project, [Source(f"{i}.png", f"{i}.png", path=tmp_path / f"{i}.png") for i in range(3)])
    with project.store.read() as connection:
        items = read_project(connection, project.media, 0, None)
    assert items.x.shape == (3, 2)  # no more than the items minus one
    with project.store.write() as connection:
        connection.execute(update(Item).where(Item.id == 1).values(kind="audio"))
    with project.store.read() as connection, pytest.raises(InputError, match="texts, or all images"):
        kind_of(connection)


def test_features_of_ones_own_are_joined_by_item(make_project, tmp_path):
    project = make_project(items=6)
    with project.store.read() as connection:
        names = list(connection.execute(select(Item.name).order_by(Item.id)).scalars())
    vectors = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    np.savez(tmp_path / "v.npz", x=vectors[::-1], items=names[::-1])
    plan = live_plan(Settings("t", 3), "adaptive", features=str(tmp_path / "v.npz"))
    assert plan is not None
    check_live(project, plan)
    with project.store.read() as connection:
        items = read_project(connection, project.media, 0, None, plan.features)
    centred = vectors - vectors.mean(axis=0)
    np.testing.assert_allclose(items.x, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-5)
    np.savez(tmp_path / "v.npz", x=vectors[1:], items=names[1:])
    with pytest.raises(InputError, match="no features of 1 of the 6 items"):
        check_live(project, plan)
    with pytest.raises(InputError, match=r"unknown features 'tfid': did you mean 'tfidf'|'tfid' are not for image"):
        check_live(project, LivePlan(features="tfid"))
    unfinished = live_plan(Settings("t", 3), "adaptive", features="tfidf+")
    assert unfinished is not None
    with pytest.raises(InputError, match=r"nothing beside a \+ in 'tfidf\+'"):
        check_live(project, unfinished)
    assert LivePlan.parse({"features": 400}) == LivePlan(), "a number in old projects"


# -- thread and process ------------------------------------------------------------------------------------------------


def wait_for(ready, seconds=120.0):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


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


def test_gold_answers_set_the_rates_of_mistakes(make_project):
    project = make_project(items=0, overlap=2, gold_every=2)
    add_items(project, [Source(f"i{i}", f"i{i}", text=WORDS[i % 6]) for i in range(60)])
    known = [Source(f"g{i}", f"g{i}", text=WORDS[i % 6], gold=f"class {i % 6}") for i in range(300)]
    add_items(project, known)
    (ada,) = people(project, "ada")
    with project.store.read() as connection:
        names = dict(connection.execute(select(Item.id, Item.name)).all())
    queue = project.queue(seeds=iter(range(2, 10**6, 2)).__next__)  # every question is a gold one
    dice, missed, shown = np.random.default_rng(0), 0, 0
    for _ in range(150):
        (question,) = queue.next(ada)
        right = int(names[question.item_id][1:]) % 6
        miss = dice.random() < 0.3
        shown += right in question.shortlist
        missed += right in question.shortlist and miss
        queue.answer(ada, question.id, 0, right if right in question.shortlist and not miss else None, 1.0)
    plan = live_plan(project.settings, "top")
    trainer = Trainer(project, plan)
    trainer.step()
    found = trainer.loop.state.mistakes
    expected = plan.loop_settings().mistakes
    assert found.miss == pytest.approx((missed + EXPECTED_GOLD * expected.miss) / (shown + EXPECTED_GOLD))
    assert 0.001 <= found.slip < expected.slip, "never exactly 0"
    assert trainer.loop.state.questions == 0, "gold is not trained on"
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    assert chooser.loaded.snapshot.mistakes == found


def test_the_trainer_is_started_again_after_a_kill_and_stopped_with_the_server(words):
    project = words(count=30)
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3)
    with supervising(project, plan) as supervisor:
        supervisor.start()
        wait_for(lambda: supervisor.chooser.loaded is not None)
        version = supervisor.chooser.loaded.snapshot.version
        first = supervisor.trainer
        first.kill()
        answer_all(project, supervisor.chooser, ada, most=20)
        wait_for(lambda: supervisor.chooser.loaded.snapshot.version > version)
        assert supervisor.trainer is not first
        wait_for(
            lambda: any(
                m["name"] == "resolved" and m["answers"] >= 20 for m in Stats(project.store).status()["measures"]
            )
        )
        last = supervisor.trainer
    assert last.poll() is not None


@pytest.mark.parametrize("moment", ["loop.fit", "saved.snapshot._write_arrays"])
def test_a_trainer_killed_in_the_middle_of_a_training_loses_nothing(words, moment):
    """kill -9 while it trains, or while it publishes: the next one finds what this one would have found."""
    project = words()
    (ada,) = people(project, "ada")
    plan = LivePlan(size=3)
    trainer = Trainer(project, plan)
    trainer.step()
    chooser = LiveChooser(project.live, plan)
    chooser.refresh()
    answer_all(project, chooser, ada, most=50)
    Trainer(project, plan).step()
    chooser.refresh()
    expected = chooser.loaded.snapshot
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom shortlist.annotate.live.plan import LivePlan\n"
        "from shortlist.annotate.live.trainer import Trainer\nfrom shortlist.annotate.project.project import Project\n"
        "import shortlist.policies.loop, shortlist.policies.saved.snapshot\n"
        "place, name = sys.argv[2].rsplit('.', 1)\nmodule = sys.modules['shortlist.policies.' + place]\n"
        "work = getattr(module, name)\n"
        "def die(*args, **kwargs):\n    work(*args, **kwargs)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "setattr(module, name, die)\n"
        "Trainer(Project.open(Path(sys.argv[1])), LivePlan(size=3)).step()\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(project.folder), moment]).returncode == -signal.SIGKILL
    assert not chooser.refresh(), "nothing half-written is taken in"
    again = Trainer(project, plan)
    again.step()
    assert again.answers == 50
    assert chooser.refresh()
    found = chooser.loaded.snapshot
    np.testing.assert_array_equal(found.model.weight, expected.model.weight)
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_array_equal(found.answers.table(), expected.answers.table())
    assert len(list(project.live.glob("features-*.npy"))) == 1, "what was left behind is swept up"


def test_the_trainer_ends_when_the_server_is_killed(words):
    project = words(count=10)
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom shortlist.annotate.live.plan import LivePlan\n"
        "from shortlist.annotate.live.supervisor import Supervisor\n"
        "from shortlist.annotate.project.project import Project\n"
        "p = Project.open(Path(sys.argv[1])); s = Supervisor(p, LivePlan(size=3))\n"
        "s.start()\n"
        "while s.chooser.loaded is None: time.sleep(0.05)\n"
        "print(s.trainer.pid, 'torch' in sys.modules, 'scipy' in sys.modules, flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(project.folder)], stdout=subprocess.PIPE, text=True)
    pid, torch, scipy = process.stdout.readline().split()
    assert (torch, scipy) == ("False", "False")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_for(lambda: not _alive(int(pid)), 20)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_robots_label_digits_live(tmp_path):
    """A short version of benchmarks/annotate_live.py: the command, robots through the API, the curve."""
    from PIL import Image

    from shortlist.annotate.demo import load_digits
    from shortlist.annotate.robots import Manner, reader, run_crowd

    from ..running import Server, free_port

    digits, names = load_digits(), list("0123456789")
    plan = LivePlan(size=3, l2=0.03, test="digits")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for i in range(300):
        Image.fromarray(digits.x[i]).save(pictures / digits.names[i])
    folder = tmp_path / "project"
    with Project.create(folder, Settings("digits", 3, live=plan.to_dict())) as project:
        add_classes(project, names)
        add_items(project, [Source(n, n, path=pictures / n) for n in digits.names[:300]], strict=True)
        auth = People(project)
        tokens = [auth.make_token("robot", auth.invite(f"robot {i}")[0]) for i in range(6)]
    server = Server(folder, free_port())
    try:
        server.wait()
        history = folder / "live" / HISTORY
        wait_for(history.exists)
        known = {p.tobytes(): names[k] for p, k in zip(digits.x, digits.y, strict=True)}
        run_crowd(f"http://127.0.0.1:{server.port}", tokens, reader(known), Manner(0.05, 0, 0))
        lines = lambda: [json.loads(line) for line in history.read_text().splitlines()]  # noqa: E731
        wait_for(lambda: lines()[-1]["resolved"] > 0.98)
        with Project.open(folder) as project:
            wait_for(lambda: Stats(project.store).status()["measures"])
    finally:
        server.process.terminate()
        server.process.wait(20)
        server.process.stdout.close()
    last = lines()[-1]
    assert last["accuracy"] > 0.85
    assert last["reads"] < 0.5 * 300 * 10, "full labels read all ten"
    assert len(lines()) > 2

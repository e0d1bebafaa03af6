"""The score of a live project: a sample of its items is asked about like the others, and the model never sees it."""

import json

import numpy as np
import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Item
from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import HISTORY, LivePlan, live_plan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.project import Settings
from shortlist.annotate.project.score import FEW, SCORE, read_score
from shortlist.annotate.project.sources import Source
from shortlist.data import Split
from shortlist.errors import InputError

from ..conftest import people
from ..test_annotate_commands import run

WORDS = ["cat mouse fur", "dog bark fur", "emu egg feather", "fly wing buzz", "gnu horn grass", "hen egg coop"]
PLAN = LivePlan(size=3, names=False)


def sources(start, stop):
    """Texts that mostly give their class, i % 6, away."""
    texts = [f"{WORDS[(i + (i % 7 == 0)) % 6]} number{i}" for i in range(start, stop)]
    return [Source(f"text {i}", f"text {i}", text=text) for i, text in enumerate(texts, start)]


@pytest.fixture
def project(make_project):
    made = make_project(items=0)
    add_items(made, sources(0, 120))
    return made


def train(trainer):
    trainer.trained_at = -1e9
    trainer.step()


def history(project):
    return [json.loads(line) for line in (project.live / HISTORY).read_text().splitlines()]


def label(project, trainer, who, count):
    """Ask and answer rightly, training now and then; the items asked about."""
    chooser = LiveChooser(project.live, trainer.plan)
    queue, asked = project.queue(chooser), []
    with project.store.read() as connection:
        names = dict(connection.execute(select(Item.id, Item.name)).all())
    while len(asked) < count:
        if len(asked) % 10 == 0:
            train(trainer)
            chooser.refresh()
        if not (held := queue.next(who)):
            break
        right = int(names[held[0].item_id].split()[1]) % 6
        queue.answer(who, held[0].id, 0, right if right in held[0].shortlist else None, 1.0)
        asked.append(held[0].item_id)
    train(trainer)
    return asked


def test_the_sample_is_asked_about_in_between_and_not_learned_from(project, make_site):
    (ada,) = people(project, "ada")
    trainer = Trainer(project, PLAN)
    asked = label(project, trainer, ada, 90)
    sample = trainer.loop.audit.rows
    assert len(sample) == 12
    mine = [item for item in asked if trainer.rows[item] in sample]
    assert 5 <= len(mine) <= 25  # one in ten; after None the same item is asked about again at once
    assert not np.isin(sample, trainer.loop.state.informative).any()
    early = read_score(project.live)
    assert 0 < early["items"] < early["size"] == 12
    assert (early["answers"], early["corrected"]) == (90, False)
    assert early["items"] < FEW
    assert {line["score"] for line in history(project)} == {None}, "no point of the curve rests on so few items"
    label(project, trainer, ada, 10_000)
    score = read_score(project.live)
    assert (score["items"], score["undecided"]) == (12, 0)
    assert score["low"] < score["accuracy"] < score["high"]
    assert history(project)[-1]["score"] == score["accuracy"]
    truth = np.array([(item - 1) % 6 for item in trainer.items.ids])
    assert score["accuracy"] == np.mean(trainer.loop.model.predict(trainer.items.x[sample]) == truth[sample])
    said = f"{score['accuracy']:.1%} right ({score['low']:.1%} to {score['high']:.1%}) by 12 of 12 sampled items"
    assert said in run("status", project.folder)
    assert json.loads(run("status", project.folder, "--json"))["score"] == score


def test_a_new_trainer_says_the_same_and_an_undo_forgets_nothing(project):
    (ada,) = people(project, "ada")
    trainer = Trainer(project, PLAN)
    label(project, trainer, ada, 60)
    before = read_score(project.live)
    again = Trainer(project, PLAN)
    train(again)
    score = read_score(project.live)
    assert [score[name] for name in ("items", "size", "answers")] == [before[n] for n in ("items", "size", "answers")]
    moments = [questions for questions, _ in again.loop.audit.past]
    assert len(moments) == 5  # what the model was after a third, a half, two thirds of the answers is seen again
    assert moments == sorted(moments)
    project.queue().undo(ada)
    train(again)
    after = [questions for questions, _ in again.loop.audit.past]
    assert after == sorted(after)
    assert {*moments} - {*after} == {60}
    assert after[-1] == 59


def test_items_of_known_class_are_not_in_the_sample(project):
    trainer = Trainer(project, PLAN)
    train(trainer)
    first = trainer.items.ids[trainer.loop.audit.rows[0]]
    mark_known(project, {f"text {first - 1}": "class 0"})
    train(trainer)
    assert trainer.rows[first] not in trainer.loop.audit.rows
    assert trainer.rows[first] in trainer.loop.state.informative


def test_sampled_items_behind_new_ones_are_said_to_be_answered(project):
    """After items were added, of a sample that was answered only its beginning was spoken of."""
    (ada,) = people(project, "ada")
    trainer = Trainer(project, PLAN)
    label(project, trainer, ada, 10_000)
    score = read_score(project.live)
    assert (score["items"], score["asked"], score["size"]) == (12, 12, 12)
    add_items(project, sources(120, 150))
    train(trainer)
    score = read_score(project.live)
    asked = {trainer.items.ids[row] for row in trainer.loop.audit.rows if trainer.loop.state.asked[row]}
    assert score["asked"] == len(asked) == 11 > score["items"]
    assert score["size"] == 15


def test_items_added_later_may_be_in_the_sample(project):
    trainer = Trainer(project, PLAN)
    train(trainer)
    before = {trainer.items.ids[row] for row in trainer.loop.audit.rows}
    add_items(project, sources(120, 360))
    train(trainer)
    after = {trainer.items.ids[row] for row in trainer.loop.audit.rows}
    assert len(after) == 36
    assert len(before & after) > 6  # most stay: a place is decided by the item's own random number


@pytest.mark.parametrize("plan", [LivePlan(size=3, score=False), LivePlan(size=3, test="digits")])
def test_without_a_sample_all_is_learned_from(project, plan, monkeypatch):
    monkeypatch.setattr("shortlist.annotate.live.items._test_data", lambda *_: Split([WORDS[0]], np.array([0])))
    (ada,) = people(project, "ada")
    trainer = Trainer(project, plan)
    (project.live / SCORE).write_text("{}")
    label(project, trainer, ada, 10)
    assert len(trainer.loop.audit.rows) == 0
    assert not (project.live / SCORE).exists()
    assert len(trainer.loop.state.informative) > 0


def test_a_project_too_small_for_a_score_learns_from_all_items(make_project):
    project = make_project(items=0)
    add_items(project, sources(0, 99))
    (ada,) = people(project, "ada")
    trainer = Trainer(project, PLAN)
    label(project, trainer, ada, 30)
    assert len(trainer.loop.audit.rows) == 0
    assert "too early" not in run("status", project.folder), "it would never be late enough"
    add_items(project, sources(99, 100))
    train(trainer)
    assert len(trainer.loop.audit.rows) == FEW


def test_the_score_is_on_unless_told_otherwise():
    assert LivePlan.parse({"policy": "adaptive"}).score
    assert live_plan(Settings("t", 4), "adaptive", score=False) == LivePlan("adaptive", 4, score=False)
    with pytest.raises(InputError, match="--no-score belong"):
        live_plan(Settings("t", 4), score=False)


def test_a_damaged_score_is_none(tmp_path):
    assert read_score(tmp_path) is None
    for content in ("", "[1]", '{"accuracy": 1}'):
        (tmp_path / SCORE).write_text(content)
        assert read_score(tmp_path) is None

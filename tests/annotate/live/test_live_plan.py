"""What the live loop starts from: its plan, the log of answers, and items as features."""

import json

import numpy as np
import pytest
from sqlalchemy import select, update

from shortlist.annotate.db.schema import Item
from shortlist.annotate.live.answer_log import AnswerLog, Given, rounds
from shortlist.annotate.live.items import check_live, kind_of, read_project
from shortlist.annotate.live.plan import HISTORY, LivePlan, live_plan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.project import Settings
from shortlist.annotate.project.sources import Source
from shortlist.errors import InputError

from ..conftest import people
from .conftest import WORDS

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


def test_a_picture_that_is_missing_on_the_disk_is_said_and_the_rest_is_learned_from(make_project, tmp_path, caplog):
    """The trainer ended, and was started again for ever."""
    from PIL import Image

    project = make_project(items=0)
    for i in range(5):
        Image.new("L", (8, 8), 40 * i).save(tmp_path / f"{i}.png")
    sources = [
        Source(f"{i}.png", f"{i}.png", path=tmp_path / f"{i}.png", gold="class 1" if i == 4 else None) for i in range(5)
    ]
    add_items(project, sources)
    with project.store.read() as connection:
        files = list(connection.execute(select(Item.file).order_by(Item.id)).scalars())
    for lost in (1, 4):
        (project.media / files[lost]).unlink()
    trainer = Trainer(project, LivePlan(size=3))
    assert trainer.step()
    assert [trainer.items.ids, len(trainer.items.x), len(trainer.items.x_score)] == [[1, 2, 3, 4], 4, 1]
    assert [record.getMessage() for record in caplog.records] == [
        f"trainer: {some} pictures missing, such as {name}: the model takes them for black ones"
        for some, name in (("1 of 4", "1.png"), ("1 of 1", "4.png"))
    ]
    for file in files:
        (project.media / file).unlink(missing_ok=True)
    with pytest.raises(InputError, match="every picture is missing"):
        Trainer(project, LivePlan(size=3)).step()


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

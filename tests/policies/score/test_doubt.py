import numpy as np

from shortlist.labels import NONE
from shortlist.policies import Loop, LoopSettings
from shortlist.policies.score.doubt import FOLDS, LEAST_ITEMS, hard_to_believe


def answered(blobs, wrong):
    """A loop on which every item was answered by a list of one, some wrongly."""
    loop = Loop(blobs.x, blobs.num_classes, LoopSettings(), seed=0)
    said = blobs.y.copy()
    said[wrong] = (said[wrong] + 1) % blobs.num_classes
    rows = np.arange(len(said))
    loop.record(rows, said[:, None].astype(np.int32), np.ones(len(said), np.int64), said)
    return loop, said


def test_wrong_answers_come_first(blobs):
    wrong = np.random.default_rng(0).permutation(len(blobs.y))[:20]
    loop, said = answered(blobs, wrong)
    found = loop.doubts()
    assert np.isin(found.rows[:10], wrong).all()
    assert np.isin(found.rows[:20], wrong).mean() > 0.6
    assert (np.diff(found.margin) <= 0).all()
    assert (found.margin > 0).all()
    np.testing.assert_array_equal(found.said, said[found.rows])
    assert (found.said != found.believed).all()
    assert (found.believed[:10] == blobs.y[found.rows[:10]]).mean() > 0.8
    np.testing.assert_allclose(found.chance + found.margin <= 1 + 1e-6, True)


def test_no_answer_is_judged_by_a_model_that_saw_it():
    """Random features, as many as items: a model learns its own answers by heart and would believe all of them."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((60, 200)).astype(np.float32)
    y = rng.integers(0, 3, 60)
    found = hard_to_believe(x, np.eye(3, dtype=np.float32)[y], y, np.arange(60), l2=1e-3, seed=0)
    assert len(found.rows) > 25  # two thirds of blind guesses are wrong


def test_known_classes_and_open_items_are_not_judged(blobs):
    loop = Loop(blobs.x, blobs.num_classes, LoopSettings(), seed=0)
    known = np.arange(0, len(blobs.y), 2)
    loop.know(known, (blobs.y[known] + 1) % blobs.num_classes)
    lists = np.full((1, 1), (blobs.y[1] + 1) % blobs.num_classes, np.int32)
    loop.record(np.array([1]), lists, np.ones(1, np.int64), np.array([NONE]))
    assert not len(loop.doubts().rows)


def test_few_answers_say_nothing(blobs):
    loop = Loop(blobs.x, blobs.num_classes, LoopSettings(), seed=0)
    assert not len(loop.doubts().rows)
    few = np.arange(LEAST_ITEMS - FOLDS)
    loop.record(few, blobs.y[few, None].astype(np.int32), np.ones(len(few), np.int64), blobs.y[few])
    assert not len(loop.doubts().rows)

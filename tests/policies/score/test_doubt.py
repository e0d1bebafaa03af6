import numpy as np

from shortlist.labels import NONE
from shortlist.policies import Loop, LoopSettings
from shortlist.policies.score.doubt import FOLDS, LEAST_ITEMS, cross_fitted, hard_to_believe


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
    logits = cross_fitted(x, np.eye(3, dtype=np.float32)[y], np.arange(60), l2=1e-3, seed=0)
    assert (logits.argmax(axis=1) == y).mean() < 0.6  # two thirds of blind guesses are wrong


def test_a_model_that_knows_nothing_doubts_nothing():
    """Features that say nothing, and enough of them to be sure all the same."""
    rng = np.random.default_rng(0)
    x = 3 * rng.standard_normal((100, 50)).astype(np.float32)
    y = rng.integers(0, 8, 100)
    found = hard_to_believe(x, np.eye(8, dtype=np.float32)[y], y, np.arange(100), l2=1e-6, seed=0)
    assert not len(found.rows)


def lines(rng, y, places, spread):
    """One feature: the place of its class, and some noise; and one that is always 1."""
    x = np.array(places)[y] + rng.normal(0, spread, len(y))
    return np.stack([x, np.ones_like(x)], axis=1).astype(np.float32)


def test_a_model_that_cannot_say_what_it_is_instead_says_nothing():
    """Classes 0 to 2 cannot be told apart, class 3 can: who said 3 there is wrong, but what is right is not known."""
    rng = np.random.default_rng(4)
    y = np.where(rng.random(3000) < 0.5, 3, rng.integers(0, 3, 3000))
    said, slips = y.copy(), np.nonzero(y < 3)[0][:1]
    said[slips] = 3
    other = np.nonzero(y == 3)[0][:1]
    said[other] = 0  # here the right one is known
    x = lines(rng, y, [-2.0, -2.0, -2.0, 2.0], 0.1)
    found = hard_to_believe(x, np.eye(4, dtype=np.float32)[said], said, np.arange(3000), l2=1e-3, seed=0)
    assert set(found.rows) == set(other)


def test_a_modest_model_is_heard_as_a_sure_one():
    """A strong penalty keeps every chance near that of the others: what it knows is told by how often it is right."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 4, 800)
    said, slips = y.copy(), np.arange(4)
    said[slips] = (said[slips] + 2) % 4
    x = np.eye(4, dtype=np.float32)[y] + rng.normal(0, 0.05, (800, 4)).astype(np.float32)
    found = hard_to_believe(x, np.eye(4, dtype=np.float32)[said], said, np.arange(800), l2=2.0, seed=0)
    assert set(found.rows) == set(slips)


def test_most_doubts_are_slips_where_classes_overlap():
    """An answer that is only less likely than another is no slip: classes that overlap are taken for each other."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 1000)
    x = lines(rng, y, [-1.0, 1.0], 0.7)
    said, slips = y.copy(), rng.permutation(1000)[:20]
    said[slips] = 1 - said[slips]
    found = hard_to_believe(x, np.eye(2, dtype=np.float32)[said], said, np.arange(1000), l2=1e-3, seed=0)
    less_likely = np.mean((x[:, 0] > 0) != said)
    assert less_likely > 0.08
    assert 0 < len(found.rows) < 0.03 * 1000
    assert np.isin(found.rows, slips).mean() > 0.5
    assert (found.chance < 0.002).all()


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

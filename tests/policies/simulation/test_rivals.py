"""What else people would do: type, ask active learning, show conformal sets."""

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.policies import LoopSettings, TimeModel
from shortlist.policies.simulation.rivals import active_learning, cheapest_threshold, conformal_sets, type_ahead
from shortlist.policies.simulation.simulate import full_labels

SETTINGS = LoopSettings(retrain_every=100, l2=0.03)


def test_typing_has_the_models_of_full_labels_at_its_own_cost(blobs):
    full = full_labels(blobs, SETTINGS, seed=0, shares=(0.5, 1.0))
    typed = type_ahead(full, TimeModel(1.0, 0.25, 2.75))
    n = len(blobs.y)
    assert [(p.reads, p.seconds) for p in typed.points] == [(3 * (n // 2), 4.5 * (n // 2)), (3 * n, 4.5 * n)]
    assert [p.accuracy for p in typed.points] == [p.accuracy for p in full.points]


def test_active_learning_reads_full_lists_and_asks_every_item_once(blobs):
    curve = active_learning(blobs, SETTINGS, seed=0)
    end, n = curve.points[-1], len(blobs.y)
    assert (end.questions, end.reads, end.resolved) == (n, 12 * n, 1.0)
    assert end.seconds == pytest.approx(SETTINGS.time.seconds(blobs.y + 1).sum())


def test_conformal_sets_resolve_every_item_for_less_than_full_lists(blobs):
    curve = conformal_sets(blobs, SETTINGS, seed=0)
    end, n = curve.points[-1], len(blobs.y)
    assert (end.resolved, end.correct) == (1.0, 1.0)
    assert n <= end.questions < 1.6 * n
    assert n <= end.reads < 0.7 * 12 * n


def test_a_budget_is_kept(blobs):
    for rival in (active_learning, conformal_sets):
        assert rival(blobs, SETTINGS, seed=0, budget=700).points[-1].reads <= 700
        with pytest.raises(InputError, match="not enough for one full list"):
            rival(blobs, SETTINGS, seed=0, budget=11)


def test_the_threshold_leaves_out_the_right_class_at_the_rate_that_was_cheapest():
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(10), 4000).astype(np.float32)
    y = np.array([rng.choice(10, p=row / row.sum()) for row in chances.astype(np.float64)])
    time = TimeModel(1.0, 0.25)
    least = cheapest_threshold(chances[:2000], y[:2000], time)
    own = chances[np.arange(4000), y]
    rates = [np.mean(own[2000:] < least)]
    assert 0.0 <= rates[0] <= 0.53

    def cost(value):
        sizes = np.maximum((chances[2000:] >= value).sum(axis=1), 1)
        rank = (chances[2000:] > own[2000:, None]).sum(axis=1) + 1
        missed = time.seconds(sizes) + time.seconds((10 - sizes) / 2)
        return np.where(own[2000:] >= value, time.seconds(rank), missed).mean()

    others = [np.quantile(own[:2000], level) for level in (0.02, 0.1, 0.2, 0.3, 0.4, 0.5)]
    assert cost(least) <= min(map(cost, others)) * 1.03
    assert cheapest_threshold(chances[:0], y[:0], time) == 0.0

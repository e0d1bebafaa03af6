"""The accuracy by all held-out answers: exact over every list, and as precise as it says."""

from itertools import combinations

import numpy as np
import pytest
import torch

from shortlist.labels import NONE, StochasticLabels
from shortlist.training.evaluation import HeldAnswers, estimate, score_answers


def held_out(y: np.ndarray, said: np.ndarray, K: int, size: int, seed: int) -> tuple[StochasticLabels, torch.Tensor]:
    labels = StochasticLabels.draw(y, num_classes=K, size=size, seed=seed)
    return labels, torch.nn.functional.one_hot(torch.from_numpy(said), K).double()


@pytest.mark.parametrize(("K", "size"), [(2, 1), (4, 1), (4, 2), (4, 3), (6, 3), (6, 5)])
def test_none_items_say_the_accuracy_exactly(K: int, size: int) -> None:
    """Over every list that makes the answer None: 0 misses for a right prediction, 1 for a wrong one."""
    lists = [shown for shown in combinations(range(K), size) if 0 not in shown]
    labels = StochasticLabels.from_lists(lists, [NONE] * len(lists), K)
    held = HeldAnswers.of(labels, True)
    for said in range(K):
        logits = torch.eye(K)[said].repeat(len(lists), 1)
        *_, missed = held.sums(logits, torch.softmax(logits, -1)).tolist()
        assert missed / len(lists) == pytest.approx(float(said != 0))
        one_by_one = [(K - 1) / size * (said in shown) for shown in lists]
        spread = (K - 1) / size * (said != 0) - (said != 0)  # p ((K - 1) / l - p) at p = 0 and 1
        assert np.var(one_by_one) == pytest.approx(spread)


@pytest.mark.parametrize("size", [3, 5, 9])
def test_the_standard_error_is_the_spread_over_many_draws(size: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 400)
    said = np.where(rng.random(400) < 0.8, y, (y + rng.integers(1, 10, 400)) % 10)
    found, errors, answered_only = [], [], []
    for seed in range(300):
        rows = np.random.default_rng(seed).integers(0, 400, 400)
        labels, logits = held_out(y[rows], said[rows], 10, size, seed)
        scores = score_answers(logits, labels, lambda z: z, uniform=True)
        assert scores.estimate is not None
        found.append(scores.estimate.accuracy)
        errors.append(scores.estimate.error)
        answered_only.append(scores.accuracy)
    truth = float((y == said).mean())
    assert np.mean(found) == pytest.approx(truth, abs=4 * np.std(found) / 300**0.5)
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.15)
    gain = np.std(found) / np.std(answered_only)
    assert gain < (0.95 if size == 9 else 0.87)  # None items lower the error, the more of them the more


def test_by_inverse_variance() -> None:
    """Two parts with their variances at the error rate of the whole, weighted by hand."""
    value, error = estimate(right=160, answered=200, missed=50.0, none=300, ratio=3.0) or (0.0, 0.0)
    p = 1 - value
    variances = np.array([p * (1 - p) / 200, p * (3 - p) / 300])
    weights = 1 / variances / (1 / variances).sum()
    assert weights @ np.array([0.8, 1 - 50 / 300]) == pytest.approx(value, abs=1e-4)
    assert error == pytest.approx((1 / (1 / variances).sum()) ** 0.5, rel=0.02)


def test_edges() -> None:
    assert estimate(0, 0, 0.0, 0, 0.0) is None
    right, error = estimate(50, 50, 0.0, 50, 1.8) or (0.0, 0.0)
    assert right == 1.0
    assert 0 < error < 0.02  # not known better than to an item
    assert (estimate(0, 10, 0.0, 0, 0.0) or (1.0, 0.0))[0] == pytest.approx(0.0)
    assert (estimate(3, 4, 0.0, 0, 0.0) or (0.0, 0.0))[0] == pytest.approx(0.75)


def test_lists_that_were_not_drawn_uniformly_say_nothing_of_the_kind() -> None:
    labels, logits = held_out(np.arange(10), np.arange(10), 10, 5, 0)
    assert score_answers(logits, labels, lambda z: z).estimate is None

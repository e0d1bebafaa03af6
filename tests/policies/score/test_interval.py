import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from shortlist.policies.score.interval import estimate


def _counts(right: int, wrong: int, undecided: int = 0) -> tuple[float, float, float]:
    a = np.array([1.0] * right + [0.0] * wrong + [1.0] * undecided)
    b = np.array([0.0] * right + [1.0] * wrong + [0.3] * undecided)
    return estimate(a, b, np.arange(len(a)) >= right + wrong)


@given(st.integers(1, 60), st.integers(1, 60))
@settings(max_examples=30)
def test_certain_items_give_the_share_and_jeffreys_interval(right, wrong):
    accuracy, low, high = _counts(right, wrong)
    assert accuracy == pytest.approx(right / (right + wrong))
    expected = beta.ppf([0.025, 0.975], right + 0.5, wrong + 0.5)
    np.testing.assert_allclose([low, high], expected, atol=2e-3)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=30)
def test_undecided_items_are_counted_both_ways(right, wrong, undecided):
    if not right + wrong + undecided:
        return
    _, low, high = _counts(right, wrong, undecided)
    assert low == pytest.approx(_counts(right, wrong + undecided)[1] if right else 0)
    assert high == pytest.approx(_counts(right + undecided, wrong)[2] if wrong else 1)


def test_with_nothing_wrong_everything_may_be_right():
    assert _counts(9, 0)[2] == 1
    assert _counts(0, 9)[1] == 0


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Every outcome of 60 items, weighed by its probability."""
    n = 60
    low, high = np.array([_counts(k, n - k)[1:] for k in range(n + 1)]).T
    truths = np.linspace(0.3, 0.95, 66)
    held = [binom.pmf(np.arange(n + 1), n, truth) @ ((low <= truth) & (truth <= high)) for truth in truths]
    assert 0.94 < np.mean(held) < 0.96
    assert min(held) > 0.9


def test_mistakes_of_known_rates_are_allowed_for():
    """A right class is refused in a tenth of the cases, a wrong one taken in a twentieth: the plain share is off."""
    rng, n = np.random.default_rng(0), 3000
    is_right = rng.random(n) < 0.8
    confirmed = np.where(is_right, rng.random(n) < 0.9, rng.random(n) < 0.05)
    right, wrong = np.where(confirmed, 0.9, 0.1), np.where(confirmed, 0.05, 0.95)
    accuracy, low, high = estimate(right, wrong, np.zeros(n, bool))
    assert abs(confirmed.mean() - 0.8) > 0.05
    assert accuracy == pytest.approx(is_right.mean(), abs=0.02)
    assert low < 0.8 < high
    assert high - low < 0.05

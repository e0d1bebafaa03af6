import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import theory
from shortlist.errors import InputError
from shortlist.labels import NONE

CLASSES = range(2, 8)


def posterior_and_losses(K, seed=0):
    rng = np.random.default_rng([seed, K])
    return rng.dirichlet(np.ones(K)), rng.normal(2, 3, K)


# -- bias --------------------------------------------------------------------------------------------------------------


def test_smoothing_at_ten_classes():
    assert [round(theory.smoothing(10, size), 2) for size in (8, 5, 3)] == [0.11, 0.44, 0.67]
    assert [round(theory.paper_smoothing(10, size), 2) for size in (8, 5, 3)] == [0.40, 0.81, 0.91]
    assert theory.smoothing(10, 9) == theory.smoothing(10, 10) == 0


@pytest.mark.parametrize("K", CLASSES)
def test_paper_smoothing_is_the_smoothing_of_the_paper_weights(K):
    """With classes equally frequent the normalised weights are (1 - epsilon) p + epsilon / K."""
    for size in range(1, K + 1):
        p, _ = posterior_and_losses(K)
        prior = np.append(np.full(K, size / K**2), 1 - size / K)
        weights = theory.paper_weights(p, prior, size)
        epsilon = theory.paper_smoothing(K, size)
        np.testing.assert_allclose(weights / weights.sum(), theory.smooth(p, epsilon), atol=1e-12)


@pytest.mark.parametrize("K", CLASSES)
def test_equal_smoothing_by_enumeration(K):
    """The mean of L_s over answered items plus that of the None loss over None items, over every list and class."""
    p, _ = posterior_and_losses(K)
    for size in range(1, K + 1):
        weights, shares = np.zeros((2, K)), np.zeros(2)
        for chance, shown, answer in theory.outcomes(p, size):
            hidden = [j for j in range(K) if j not in shown]
            part = int(answer == theory.NONE)
            shares[part] += chance
            for j in hidden if part else [answer]:
                weights[part, j] += chance / (len(hidden) if part else 1)
        whole = sum(weights[part] / shares[part] for part in (0, 1) if shares[part])
        epsilon = theory.paper_smoothing(K, size, equal=True)
        np.testing.assert_allclose(whole / whole.sum(), theory.smooth(p, epsilon), atol=1e-12)
    assert round(theory.paper_smoothing(10, 8, equal=True), 3) == 0.278


@given(st.integers(2, 8), st.floats(0, 0.99), st.randoms(use_true_random=False))
def test_unsmooth_undoes_smooth(K, epsilon, random):
    raw = np.array([random.random() for _ in range(K)]) + 1e-9
    p = raw / raw.sum()
    smoothed = theory.smooth(p, epsilon)
    assert smoothed.argmax() == p.argmax()
    np.testing.assert_allclose(theory.unsmooth(smoothed, epsilon), p, atol=1e-9)


def test_unsmooth_cuts_off_below_zero():
    got = theory.unsmooth([[0.5, 0.45, 0.05], [1 / 3] * 3], 0.6)  # the floor is 0.2
    np.testing.assert_allclose(got, [[0.3 / 0.55, 0.25 / 0.55, 0], [1 / 3] * 3])
    for epsilon in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="epsilon"):
            theory.unsmooth([0.5, 0.5], epsilon)


# -- variance ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", CLASSES)
def test_outcomes_are_the_mechanism(K):
    for size in range(1, K + 1):
        p, _ = posterior_and_losses(K)
        found = list(theory.outcomes(p, size))
        assert sum(weight for weight, *_ in found) == pytest.approx(1)
        assert {shortlist for _, shortlist, _ in found} == set(itertools.combinations(range(K), size))
        assert sum(weight for weight, _, answer in found if answer == NONE) == pytest.approx(1 - size / K)


@pytest.mark.parametrize("K", CLASSES)
def test_variance_by_formula_is_variance_by_enumeration(K):
    for size, estimator in itertools.product(range(1, K + 1), theory.ESTIMATORS):
        for seed in range(3):
            p, L = posterior_and_losses(K, seed)
            want = theory.variance_by_enumeration(estimator, p, L, size)
            assert theory.variance(estimator, p, L, size) == pytest.approx(want, rel=1e-10, abs=1e-10)


def test_enumeration_by_hand():
    """K = 3, l = 1, y = 0 for sure: shown {0}: L_0; {1}: mean of L_0, L_2, or L_0 + L_2 - L_1; {2} alike."""
    p, L = [1.0, 0, 0], [1.0, 2, 6]
    total = [1, (1 + 6) / 2, (1 + 2) / 2]
    unbiased = [1, 1 + 6 - 2, 1 + 2 - 6]
    assert np.mean(unbiased) == 1
    assert theory.variance_by_enumeration("total", p, L, 1) == pytest.approx(np.var(total))
    assert theory.variance_by_enumeration("unbiased", p, L, 1) == pytest.approx(np.var(unbiased))
    assert theory.variance_by_enumeration("ordinary", p, L, 1) == 0


def test_unbiasedness_costs_variance():
    p, L = posterior_and_losses(7)
    for size in range(1, 6):
        assert theory.variance("unbiased", p, L, size) > theory.variance("total", p, L, size)


def test_variance_keeps_its_digits():
    p, L = posterior_and_losses(6)
    got = theory.variance("unbiased", p, L + 1e8, 2)
    assert got == pytest.approx(theory.variance("unbiased", p, L, 2), rel=1e-5)


@pytest.mark.parametrize("size", [2, 3])
def test_unknown_estimators_are_refused(size):
    with pytest.raises(InputError, match="unknown estimator 'unbias': did you mean 'unbiased'"):
        theory.variance("unbias", [0.5, 0.5, 0], [1, 2, 3], size)
    with pytest.raises(InputError, match="unknown estimator"):
        theory.variance_by_enumeration("unbias", [0.5, 0.5, 0], [1, 2, 3], size)
    with pytest.raises(InputError, match="sees the true class"):
        theory.item_value("ordinary", [1, 2, 3], (0,), NONE)


# -- the bound ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "size"), [(10, 3), (10, 9), (10, 10), (2, 1)])
def test_bounds_as_printed(K, size):
    p, Lf, R, phi, N, delta = 0.12, 1.5, 0.03, 2.5, 4000, 0.05
    rest = {"num_classes": K, "size": size, "p_max": p, "lipschitz": Lf, "rademacher": R, "loss_max": phi}
    root = math.sqrt(2 * math.log(4 / delta) / N)
    answered, none = theory.lemma_bounds(**rest, n=N, delta=delta)
    assert answered == pytest.approx(2 * p * Lf * R + p * phi * root)
    assert none == pytest.approx(2 * p * (K - size) * Lf * R + p * (K - size) * phi * root)
    printed = 4 * p * (K - size + 1) * Lf * R + 2 * p * phi * root + 2 * p * (K - size) * phi * root
    assert theory.excess_risk_bound(**rest, n=N, delta=delta) == pytest.approx(printed)
    without_model = rest | {"rademacher": 0.0}
    ratio = theory.excess_risk_bound(**without_model, n=N, delta=delta) / theory.excess_risk_bound(
        **without_model, n=4 * N, delta=delta
    )
    assert ratio == pytest.approx(2)  # O(1 / sqrt N)
    for bad in ({"n": 0, "delta": delta}, {"n": N, "delta": 0.0}, {"n": N, "delta": 1.0}):
        with pytest.raises(InputError, match="n and delta"):
            theory.lemma_bounds(**rest, **bad)


# -- information and cost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", CLASSES)
def test_information_is_the_entropy_of_the_answer(K):
    for size in range(1, K + 1):
        uniform = np.full(K, 1 / K)
        assert theory.information(K, size) == pytest.approx(theory.information_of(uniform, range(size)))
        # and the entropy lost: log2 K before, 0 after an answer, log2(K - l) after a None
        left = (1 - size / K) * math.log2(K - size) if size < K else 0
        assert theory.information(K, size) == pytest.approx(math.log2(K) - left)


def test_information_of_a_list_under_a_posterior():
    p = [0.5, 0.25, 0.25, 0.0]
    assert theory.information_of(p, [0]) == pytest.approx(1)
    assert theory.information_of(p, [0, 1]) == pytest.approx(1.5)
    assert theory.information_of(p, [0, 1, 2]) == pytest.approx(1.5)
    assert theory.information_of(p, [3]) == 0
    assert theory.information_of(p, [0, 1, 2, 3]) == pytest.approx(1.5)


def test_information_of_the_findings():
    assert round(theory.information(77, 8), 2) == 0.79


@pytest.mark.parametrize("K", CLASSES)
def test_expected_reads_by_enumeration(K):
    """Every ordered list, every true class: people stop at the right one, or read to the end."""
    for size in range(1, K + 1):
        reads = [
            order.index(y) + 1 if y in order else size
            for order in itertools.permutations(range(K), size)
            for y in range(K)
        ]
        assert theory.expected_reads(K, size) == pytest.approx(np.mean(reads))


@pytest.mark.parametrize(("K", "size"), [(10, 0), (10, 11), (1, 1)])
def test_sizes_that_cannot_be_are_refused(K, size):
    for call in (theory.smoothing, theory.information, theory.expected_reads):
        with pytest.raises(InputError, match="size: expected 1 <= size"):
            call(K, size)

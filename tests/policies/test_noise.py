import itertools
from dataclasses import astuple, replace

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies.noise import (
    Log,
    Mistakes,
    estimate_by_em,
    estimate_from_gold,
    likelihood,
    simulate_answers,
    simulate_typing,
)

RATES = Mistakes(0.15, 0.1, 0.2)


def _table(mistakes, lists, sizes, answer, K, typed=None):
    return likelihood(mistakes, Log(np.arange(len(answer)), lists, sizes, answer, typed), K)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("mistakes", [Mistakes(), Mistakes(0.05, 0.02), RATES], ids=str)
def test_the_chances_of_all_answers_add_up_to_one(size, mistakes):
    K = 4
    for shortlist in itertools.permutations(range(K), size):
        answers = np.array([*shortlist, NONE])
        lists = np.tile(np.array(shortlist, np.int32), (len(answers), 1))
        table = _table(mistakes, lists, np.full(len(answers), size), answers, K)
        np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("size", [1, 3, 4])
def test_likelihood_is_what_is_simulated(size):
    K, n = 4, 200_000
    rng = np.random.default_rng(size)
    lists = np.tile(np.arange(size, dtype=np.int32), (n, 1))
    sizes = np.full(n, size)
    for y in range(K):
        answer = simulate_answers(rng, lists, sizes, np.full(n, y), K, RATES)
        for a in [*range(size), NONE]:
            chance = _table(RATES, lists[:1], sizes[:1], np.array([a]), K)[0, y]
            assert np.mean(answer == a) == pytest.approx(chance, abs=0.005), (y, a)


def test_without_mistakes_the_likelihood_is_the_candidates():
    lists = np.array([[2, 0, -1], [1, 3, 2]], np.int32)
    table = _table(Mistakes(), lists, np.array([2, 3]), np.array([0, NONE]), 5)
    assert table.astype(int).tolist() == [[1, 0, 0, 0, 0], [1, 0, 0, 0, 1]]


def test_a_typed_class_is_a_label_whatever_the_list_says():
    lists, sizes = np.array([[2, 0], [2, 0], [2, 0]], np.int32), np.array([2, 2, 2])
    answer, typed = np.array([NONE, 0, NONE]), np.array([3, 0, NONE])
    table = _table(Mistakes(0.1, 0.2, typed=0.3), lists, sizes, answer, 4, typed)
    assert table[0] == pytest.approx([0.1, 0.1, 0.1, 0.7])
    assert table[1] == pytest.approx([0.7, 0.1, 0.1, 0.1])
    assert table[2] == pytest.approx([0.1, 0.8, 0.1, 0.8]), "nobody typed: None"
    sure = _table(Mistakes(), lists, sizes, answer, 4, typed)
    assert sure.tolist() == [[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 1]]


def test_typing_is_simulated_and_its_rate_found():
    K, makes = 8, Mistakes(0.1, 0.05, typed=0.2)
    log, truth = _log(20_000, K, makes, 3)
    rng = np.random.default_rng(4)
    typed = simulate_typing(rng, log.answer, truth[log.items], K, 0.5, makes)
    missed, wrote = log.answer == NONE, typed != NONE
    assert not (wrote & ~missed).any(), "only where the list was answered with None"
    assert wrote.sum() / missed.sum() == pytest.approx(0.5, abs=0.02)
    assert np.mean(typed[wrote] != truth[log.items][wrote]) == pytest.approx(0.2, abs=0.02)
    found = estimate_from_gold(replace(log, typed=typed), truth[log.items], K)
    assert found.typed == pytest.approx(0.2, abs=0.02)
    # None is None, typed or not: leaving the typed ones out would find twice as many strays
    assert replace(found, typed=0) == replace(estimate_from_gold(log, truth[log.items], K), typed=0)
    assert estimate_from_gold(log, truth[log.items], K).typed == pytest.approx(0.05, abs=0.015), "as often as slips"


def _log(n: int, K: int, mistakes: Mistakes, seed: int, repeats: int = 1):
    rng = np.random.default_rng(seed)
    items = np.repeat(np.arange(n), repeats)
    truth = rng.integers(0, K, n)
    lists = np.argsort(rng.random((len(items), K)), axis=1)[:, :4].astype(np.int32)
    sizes = np.full(len(items), 4)
    answer = simulate_answers(rng, lists, sizes, truth[items], K, mistakes)
    return Log(items, lists, sizes, answer), truth


def test_rates_from_gold_items_and_anchoring_from_lists_without_the_answer():
    log, truth = _log(20_000, 8, RATES, 0)
    found = estimate_from_gold(log, truth[log.items], 8)
    assert found.miss == pytest.approx(0.15, abs=0.015)
    assert found.slip == pytest.approx(0.1, abs=0.015)
    assert found.anchor == pytest.approx(0.2, abs=0.02)
    plain, truth = _log(20_000, 8, Mistakes(0.15, 0.1), 1)
    assert estimate_from_gold(plain, truth[plain.items], 8).anchor < 0.015


def test_gold_of_very_many_classes_takes_the_memory_of_its_answers():
    """And not that of a table of all classes by all classes: 8 TB."""
    K = 1_000_000
    log = Log(np.arange(2), np.array([[5, 9], [K - 1, 3]], np.int32), np.array([2, 2]), np.array([5, NONE]))
    found = estimate_from_gold(log, np.array([5, K - 1]), K)
    assert (found.miss, found.slip) == (pytest.approx(1 / 3), 0)


def test_rates_from_repeats_without_gold():
    K = 8
    log, truth = _log(2_000, K, Mistakes(0.05, 0.02), 2, repeats=6)
    beliefs = np.full((2_000, K), 0.4 / (K - 1))
    beliefs[np.arange(2_000), truth] = 0.6
    found = estimate_by_em(log, beliefs, K, start=Mistakes(0.2, 0.2))
    assert found.miss == pytest.approx(0.05, abs=0.012)
    assert found.slip == pytest.approx(0.02, abs=0.008)
    assert found.anchor < 0.01


@pytest.mark.parametrize("bad", [(-0.1, 0, 0), (0.6, 0.6, 0), (0, 0.6, 0.6), (0, 0, 2)])
def test_bad_rates(bad):
    with pytest.raises(InputError, match="miss, slip, anchor and typed"):
        Mistakes(*bad)


def test_expected_rates_count_like_answers_that_came_before():
    lists = np.array([[0, 1], [0, 1]], np.int32)
    log = Log(np.array([0, 1]), lists, np.array([2, 2]), np.array([NONE, 0]))
    expected = Mistakes(miss=0.1, slip=0.2, anchor=0.1)
    found = estimate_from_gold(log, np.array([0, 3]), 4, prior=9, expected=expected)
    assert found.miss == pytest.approx((1 + 9 * 0.1) / (1 + 9))
    assert found.slip == pytest.approx((0 + 9 * 0.2) / (1 + 9))
    assert found.slip + found.anchor == pytest.approx((1 + 9 * 0.3) / (1 + 9))
    beliefs = np.eye(4)[[0, 3]]
    again = estimate_by_em(log, beliefs, 4, prior=9, expected=expected, rounds=1)
    assert astuple(again) == pytest.approx(astuple(found))

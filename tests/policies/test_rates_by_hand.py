"""Rates of mistakes learned by loops over items, questions and classes: what each answer counts, gold or not."""

import math
from dataclasses import astuple

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.labels import NONE
from shortlist.policies.noise import (
    ENOUGH,
    ENOUGH_GOLD,
    EXPECTED,
    EXPECTED_GOLD,
    RARE,
    Log,
    Mistakes,
    estimate_by_em,
    learn_rates,
    rectangle,
    simulate_answers,
)

K = 5
EXPECT, START = Mistakes(0.1, 0.04, 0.02), Mistakes(0.2, 0.1, 0.05, 0.1)


def chance(rates, y, shortlist, answer, typed):
    """P(answer | y), as the first lines of `policies.noise` have it."""
    if typed != NONE:
        return 1 - rates.typed if typed == y else rates.typed / (K - 1)
    size = len(shortlist)
    miss, slip = rates.miss * (size < K), rates.slip * (size > 1)
    if y in shortlist:
        return miss if answer == NONE else 1 - miss - slip if answer == y else slip / (size - 1)
    stray = rates.slip + rates.anchor
    return 1 - stray if answer == NONE else stray / size


def posteriors(rates, beliefs, questions):
    found = []
    for item, belief in enumerate(beliefs):
        terms = [
            max(belief[y], 1e-12) * math.prod(max(chance(rates, y, *q[1:]), 1e-12) for q in questions if q[0] == item)
            for y in range(K)
        ]
        found.append([term / sum(terms) for term in terms])
    return found


def rates_of(posterior, questions, prior):
    """Each kind of mistake among the answers that could have been one, with the expected ones before them."""
    missed, slipped, strayed, mistyped = ([share * prior, prior] for share in (EXPECT.miss, EXPECT.slip, 0.06, 0))
    for item, shortlist, answer, typed in questions:
        p = posterior[item]
        here = sum(p[k] for k in shortlist)
        if len(shortlist) < K:
            missed[0] += here * (answer == NONE)
            missed[1] += here
            strayed[0] += (1 - here) * (answer != NONE)
            strayed[1] += 1 - here
        if len(shortlist) > 1:
            slipped[0] += (here - p[answer]) if answer != NONE else 0
            slipped[1] += here
        if typed != NONE:
            mistyped[0] += 1 - p[typed]
            mistyped[1] += 1
    miss, slip, stray = (min(a / b, 0.5) for a, b in (missed, slipped, strayed))
    typed = (mistyped[0] + prior * slip) / mistyped[1]
    return Mistakes(miss, slip, max(stray - slip, 0), min(typed, 0.5))


def by_hand(beliefs, questions, rounds, prior):
    rates = START
    for _ in range(rounds):
        rates = rates_of(posteriors(rates, beliefs, questions), questions, prior)
    return rates


def asked(count, items, seed, *, typing=True):
    """Questions of sizes 1 to K, some items asked about twice, some classes typed."""
    rng = np.random.default_rng(seed)
    truth, rows = rng.integers(0, K, items), rng.integers(0, items, count)
    lists, sizes = rectangle([rng.permutation(K)[: 1 + i % K].tolist() for i in range(count)], K)
    answer = simulate_answers(rng, lists, sizes, truth[rows], K, Mistakes(0.2, 0.1, 0.1))
    typed = np.where((answer == NONE) & (rng.random(count) < 0.4 * typing), rng.integers(0, K, count), NONE)
    questions = [(int(row), lists[i, : sizes[i]].tolist(), int(answer[i]), int(typed[i])) for i, row in enumerate(rows)]
    beliefs = rng.dirichlet(np.ones(K), items)
    return Log(rows, lists, sizes, answer, typed), questions, beliefs, truth


@pytest.mark.parametrize("rounds", [1, 4])
def test_expectation_maximisation_by_loops(rounds):
    log, questions, beliefs, _ = asked(80, 30, seed=1)
    found = estimate_by_em(log, beliefs, K, start=START, rounds=rounds, prior=3.0, expected=EXPECT)
    assert astuple(found) == pytest.approx(astuple(by_hand(beliefs.tolist(), questions, rounds, 3.0)), rel=1e-9)


def learned(log, beliefs, gold, truth):
    return learn_rates(log, lambda rows: beliefs[rows], (gold, truth), K, start=START, expected=EXPECT)


def test_with_little_gold_its_answers_are_items_of_their_own_among_all():
    """Items asked about and gold ones are numbered each for themselves, and must not be taken for one another."""
    log, questions, beliefs, _ = asked(ENOUGH - 10, 300, seed=2)  # some are not asked about: their beliefs play no part
    gold, golden, _, classes = asked(ENOUGH_GOLD - 1, ENOUGH_GOLD - 1, seed=3)
    sure = np.eye(K)[classes]
    found = learned(log, beliefs, gold, classes[gold.items])
    # each answer on gold is of an item that is known: one class, however often it was asked about
    alone = [(300 + i, *question[1:]) for i, question in enumerate(golden)]
    everything = np.concatenate([beliefs, sure[gold.items]]).tolist()
    assert astuple(found) == pytest.approx(astuple(by_hand(everything, questions + alone, 5, EXPECTED)), rel=1e-4)


def test_enough_answers_are_enough_whether_gold_or_not():
    log, _, beliefs, _ = asked(ENOUGH - 10, 300, seed=2)
    gold, _, _, classes = asked(10, 20, seed=3)
    assert learned(log, beliefs, gold, classes[gold.items]) is not None
    fewer = gold[np.arange(10) < 9]
    assert learned(log, beliefs, fewer, classes[fewer.items]) is None


def test_with_enough_gold_it_alone_is_counted():
    log, _, beliefs, _ = asked(400, 300, seed=2)
    gold, golden, _, classes = asked(ENOUGH_GOLD, 20, seed=3)
    sure = [[float(k == y) for k in range(K)] for y in classes]
    want = rates_of(sure, golden, EXPECTED_GOLD)
    assert astuple(learned(log, beliefs, gold, classes[gold.items])) == pytest.approx(astuple(want))
    assert min(want.miss, want.slip, want.typed) > RARE


def test_one_item_with_two_answers_among_others_is_refused():
    lists, sizes = rectangle([[0, 1], [2], [3, 4]], K)
    log = Log(np.array([7, 2, 7]), lists, sizes, np.array([0, NONE, 4]))
    with pytest.raises(InputError, match="item 7 has two answers in one call"):
        log.check(10, K)
    Log(np.array([7, 2, 8]), lists, sizes, np.array([0, NONE, 4])).check(10, K)

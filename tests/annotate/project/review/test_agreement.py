"""Krippendorff's alpha against his own example and a loop over all pairs; what counts as a value."""

import random
from collections import Counter
from itertools import permutations

import pytest

from shortlist.annotate.project.review.agreement import (
    REFUSED,
    alpha,
    by_class,
    confusion,
    over_time,
    pairs,
    read_units,
)

from ...conftest import people

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), C: four observers, twelve units, nominal 0.743
EXAMPLE = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def example():
    rows = [line.split() for line in EXAMPLE.strip().splitlines()]
    return [{who: int(row[u]) for who, row in enumerate(rows) if row[u] != "."} for u in range(12)]


def naive(units):
    """By the definition: over all ordered pairs of values within units, and of all values that can be paired."""
    units = [unit for unit in units if len(unit) > 1]
    total = sum(map(len, units))
    differ = sum((a != b) / (len(unit) - 1) for unit in units for a, b in permutations(unit.values(), 2))
    counts = Counter(value for unit in units for value in unit.values())
    expected = sum(counts[a] * counts[b] for a in counts for b in counts if a != b) / (total * (total - 1))
    return 1 - differ / total / expected


def test_the_published_example():
    found = alpha(example())
    assert found.value == pytest.approx(0.743, abs=5e-4)
    assert found.items == 11, "a unit with one value cannot be paired"
    assert found.low < 0.743 < found.high


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_the_definition_says(seed):
    dice = random.Random(seed)
    units = [{who: dice.randrange(4) for who in range(dice.randint(1, 5))} for _ in range(40)]
    assert alpha(units, rounds=10).value == pytest.approx(naive(units))


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """Two people who say the truth with 0.8, else anything: alpha is 0.64 in the limit."""
    covered = 0
    for seed in range(60):
        dice = random.Random(seed)

        def say(truth, dice=dice):
            return truth if dice.random() < 0.8 else dice.randrange(4)

        units = [{who: say(truth) for who in (1, 2)} for truth in (dice.randrange(4) for _ in range(150))]
        found = alpha(units, rounds=200, seed=seed)
        covered += found.low <= 0.64 <= found.high
    assert covered >= 52


def test_nothing_to_say_is_none():
    assert alpha([]) is None
    assert alpha([{1: 0}, {1: 1}]) is None
    assert alpha([{1: 0, 2: 0}]) is None, "with one value everything is expected"


def test_a_none_counts_where_the_list_held_what_another_gave(make_project):
    project = make_project(items=1, overlap=4, size=3, classes=4)
    queue = project.queue(seeds=iter(range(1, 100)).__next__)
    first, *others = people(project, "a", "b", "c", "d")
    (q,) = queue.next(first)
    picked = q.shortlist[0]
    queue.answer(first, q.id, 0, picked, 1.0)
    expected = {first: picked}
    for who in others:
        (q,) = queue.next(who)
        queue.answer(who, q.id, 0, None, 1.0)
        if picked in q.shortlist:
            expected[who] = REFUSED
    with project.store.read() as connection:
        units, _ = read_units(connection)
    assert units == ([expected] if len(expected) > 1 else [])


def test_who_and_what_differs():
    units = [{1: 0, 2: 0, 3: 1}, {1: 0, 2: 1}, {2: 1, 3: 1}]
    assert pairs(units) == [(1, 2, 2, 1), (1, 3, 1, 0), (2, 3, 2, 1)]
    assert confusion(units) == {(0, 0): 1, (0, 1): 3, (1, 1): 1}


def test_by_class_and_over_time():
    good, bad = [{1: k % 2, 2: k % 2} for k in range(40)], [{1: 2 + k % 2, 2: 3 - k % 2} for k in range(40)]
    found = by_class(good + bad)
    assert found[0].value == pytest.approx(1)
    assert found[2].value < 0
    times = over_time(good + bad, [float(k) for k in range(80)])
    assert [at for at, _ in times] == [19.0, 39.0, 59.0, 79.0]
    assert times[0][1].value > 0.9 > 0 > times[-1][1].value

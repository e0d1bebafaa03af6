"""Lists shown before a merge or a retirement, against a loop over every class that the item may have been of."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.annotate.db.class_map import ClassMap

K = 5
NOTHING = ClassMap({}, {})
MAPS = {
    "merge": ClassMap({1: 0}, {1: 10.0}),
    "merge of merged": ClassMap({1: 0, 0: 2}, {1: 10.0, 0: 10.0}),
    "retire": ClassMap({3: None}, {3: 10.0}),
    "both": ClassMap({1: 0, 3: None}, {1: 10.0, 3: 10.0}),
    "merge, then retire": ClassMap({1: 0, 0: None}, {1: 10.0, 0: 10.0}),
}


def lists():
    return [shown for size in range(1, K + 1) for shown in combinations(range(K), size)]


def naive(classes: ClassMap, shown: tuple[int, ...], answer: int | None) -> set[int]:
    """The classes of today that an item may be of: those of every old class that would have been answered so."""
    if answer is not None and classes.now(answer) is None:
        answer = None  # of no use any more: the rest of the list was refused
    possible = {y for y in range(K) if (y if y in shown else None) == answer}
    return {classes.now(y) for y in possible} - {None}


@pytest.mark.parametrize("name", MAPS)
def test_what_is_still_possible_is_what_a_loop_over_the_old_classes_says(name):
    classes = MAPS[name]
    current = {k for k in range(K) if k not in classes.into}
    for shown in lists():
        for answer in (None, *shown):
            seen = classes.read(shown, [0.5] * len(shown), answer, typed=False, served_at=1.0)
            left = current - set(seen.shortlist) if seen.picked is None else {seen.picked}
            assert left == naive(classes, shown, answer), (shown, answer)
            assert set(seen.shortlist) <= current
            assert seen.picked is None or seen.picked in seen.shortlist


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_answers_weighted_by_their_inclusion_stay_unbiased(name, size):
    """Over all uniform lists, an item of any old class that is still in use weighs 1 in its class of today."""
    classes = MAPS[name]
    every = [shown for shown in lists() if len(shown) == size]
    for old in range(K):
        weight = 0.0
        for shown in every:
            answer = old if old in shown else None
            seen = classes.read(shown, [size / K] * size, answer, typed=False, served_at=1.0)
            if seen.picked is not None:
                assert seen.picked == classes.now(old)
                weight += 1 / seen.inclusion[seen.shortlist.index(seen.picked)] / len(every)
        assert weight == pytest.approx(0 if classes.now(old) is None else 1)


def test_after_a_merge_one_part_is_the_whole_class():
    classes = ClassMap({1: 0, 0: 2}, {1: 10.0, 0: 20.0})
    between = classes.read([0, 4], [0.5, 0.5], None, typed=False, served_at=15.0)
    assert between.shortlist == [4], "2 was not shown, and is a part of what 0 is in now"
    assert classes.read([0, 2], [0.5, 0.4], None, typed=False, served_at=15.0).shortlist == [2]
    assert classes.read([2, 4], [0.5, 0.5], None, typed=False, served_at=25.0).shortlist == [2, 4]


def test_a_typed_class_is_that_of_today_and_picks_nothing():
    classes = MAPS["both"]
    assert classes.read([0, 4], [0.5, 0.5], 1, typed=True, served_at=1.0) == ([4], [0.5], None, 0)
    assert classes.read([4], [0.5], 3, typed=True, served_at=1.0) == ([4], [0.5], None, None)
    assert classes.read([], [], 1, typed=True, served_at=1.0) == ([], [], None, 0)
    assert classes.read([4, 1], [0.5, 0.3], 1, typed=True, served_at=1.0) == ([4, 0], [0.5, 0.3], 0, 0)


@given(st.lists(st.integers(0, K - 1), unique=True), st.booleans())
def test_nothing_changes_where_nothing_has(shown, none):
    answer = None if none or not shown else shown[0]
    assert NOTHING.read(shown, [0.1] * len(shown), answer, typed=False, served_at=0.0) == (
        shown,
        [0.1] * len(shown),
        answer,
        None,
    )

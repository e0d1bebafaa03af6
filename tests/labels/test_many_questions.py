"""Joining hundreds of questions in the order they came in; lists in any form."""

import numpy as np
import pandas as pd
import pytest

from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels, join


def test_of_equal_picks_the_last_wins_among_hundreds_of_items():
    """Against a dictionary. An unstable sort would still be right for a few rows."""
    rng = np.random.default_rng(0)
    names = [f"item {i}" for i in range(150)]
    items, answer = rng.permutation(names * 2), rng.integers(0, 4, 300)
    labels = StochasticLabels.from_lists([[0, 1, 2, 3]] * 300, answer, 4, class_names=list("abcd"), items=items)
    latest = dict(zip(items.tolist(), answer.tolist(), strict=True))
    _, joined = join(labels, names)
    assert joined.answer.tolist() == [latest[name] for name in names]
    assert joined.class_names == tuple("abcd")


def test_parts_of_different_numbers_of_classes_are_not_put_together():
    parts = [StochasticLabels.draw([0, 1], num_classes=K, size=1, seed=0) for K in (4, 3)]
    with pytest.raises(InputError, match="part 1 has other classes than part 0"):
        StochasticLabels.concatenate(parts)


@pytest.mark.parametrize(
    "lists",
    [
        np.array([[0, 1], [2, 0]]),
        ((0, 1), (2, 0)),
        [iter([0, 1]), iter([2, 0])],
        pd.Series([[0, 1], [2, 0]]),
        pd.Series([[0, 1], [2, 0]]).to_numpy(),  # one dimension, of lists
    ],
    ids=["table", "tuples", "iterators", "series", "array of lists"],
)
def test_the_same_lists_in_any_form(lists):
    labels = StochasticLabels.from_lists(lists, [1, NONE], 3)
    assert [labels.shortlist(row).tolist() for row in (0, 1)] == [[0, 1], [2, 0]]

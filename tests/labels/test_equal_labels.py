"""Labels are equal if everything about them is; counts per class have one entry per class, whatever was answered."""

import numpy as np
import pytest

from shortlist.labels import NONE, StochasticLabels

BASE = {
    "shortlists": [[0, 1], [2]],
    "answer": [0, NONE],
    "num_classes": 3,
    "class_names": None,
    "items": ["x", "y"],
    "inclusion": [0.5, 0.5, 1.0],
}


def labels(**changes) -> StochasticLabels:
    return StochasticLabels.from_lists(**{**BASE, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"num_classes": 4},
        {"class_names": ["a", "b", "c"]},
        {"answer": [1, NONE]},
        {"shortlists": [[0], [1, 2]]},  # the same classes one after another, cut at another place
        {"shortlists": [[0, 1], [1]]},
        {"shortlists": [[1, 0], [2]]},
        {"items": ["x", "z"]},
        {"items": None},
        {"inclusion": [0.5, 0.5, 0.9]},
        {"inclusion": [0.5, 0.5, np.nan]},
        {"inclusion": None},
    ],
    ids=str,
)
def test_labels_that_differ_in_one_thing_are_not_equal(changes):
    assert labels() == labels()
    assert labels() != labels(**changes)
    assert labels(**changes) == labels(**changes)


def test_an_inclusion_that_is_not_known_anywhere_is_none():
    assert labels(inclusion=[np.nan] * 3) == labels(inclusion=None)


def test_counts_have_a_place_for_classes_that_nobody_picked():
    five = labels(num_classes=5)
    assert five.prior.tolist() == [0.5, 0, 0, 0, 0, 0.5]
    assert five.summary().answers_per_class.tolist() == [1, 0, 0, 0, 0]
    without_none = labels(num_classes=5, answer=[0, 2])
    assert without_none.prior.tolist() == [0.5, 0, 0.5, 0, 0, 0]


def test_no_labels_at_all():
    nobody = labels().subset([])
    assert nobody.padded().shape == (0, 0)
    assert nobody.prior.tolist() == [0, 0, 0, 0]


def test_one_size_is_named():
    assert "classes, size 2, None" in repr(labels(shortlists=[[0, 1], [2, 1]], inclusion=None))

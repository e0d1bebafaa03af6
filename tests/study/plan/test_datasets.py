"""The datasets of the study: their parts, and what is not the paper's setting."""

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.study.plan import datasets


def test_a_quick_part():
    assert len(datasets.load("digits-quick").train) == 1_437  # less than a quick part has
    assert len(datasets.load("digits-quick").test) == 360
    part = "1,437 of 1,437 training and 360 of 360 test items"
    assert datasets.study_dataset("digits-quick").note == f"not in the paper: scikit-learn's 8x8 digits; {part}"
    part = "4,000 of 60,000 training and 1,000 of 10,000 test items"
    assert datasets.study_dataset("fashion-quick").note == f"not the paper's setting: {part}"


def test_kuzushiji_small():
    try:
        small = datasets.load("kuzushiji-small")
    except InputError as error:
        pytest.skip(f"the official test images are not here: {error}")
    assert (len(small.train), len(small.test), small.num_classes) == (8_000, 2_000, 10)
    assert not set(small.train.items) & set(small.test.items)
    assert np.bincount(small.train.y).min() > 700


def test_only_the_papers_data_is_held_against_it():
    assert datasets.paper_title("fashion") == "Fashion"
    for name in ("kuzushiji-small", "digits", "fashion-quick"):
        assert datasets.paper_title(name) is None
        assert "not" in datasets.study_dataset(name).note

"""Weights in a search for settings: those of the training reach the training, those of the scores are checked."""

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.training.answers import draw_labels
from shortlist.training.config import RunConfig
from shortlist.training.selection import tune
from shortlist.training.task import hold_out

from .conftest import CPU, blobs

CONFIG = RunConfig(size=2, epochs=6, batch_size=16, lr=0.1, holdout=0.3, seed=3)
DATA = blobs(count=120)
LABELS = draw_labels(DATA, CONFIG.size, CONFIG.seed)


def row_of(**weights):
    return tune(DATA, CONFIG, {"lr": [0.1]}, labels=LABELS, engine=CPU, **weights).best_row


def test_items_that_count_nothing_in_training_are_not_learned():
    """Class 0 unlearned: its held-out answers are all got wrong, which were right."""
    _, held = hold_out(LABELS, CONFIG.holdout, CONFIG.seed)
    of_class_0 = np.where(LABELS.answer == 0, 1.0, 0.0)
    assert of_class_0[held].sum() > 0
    assert row_of(weight=of_class_0).accuracy > 0.8
    without = np.where(LABELS.candidates[:, 0], 0.0, 1.0)  # neither picked nor possible
    assert row_of(weight=of_class_0, train_weight=without).accuracy == 0


def test_as_many_answers_decide_as_were_held_out():
    result = tune(DATA, CONFIG, {"lr": [0.1]}, labels=LABELS, engine=CPU)
    _, held = hold_out(LABELS, CONFIG.holdout, CONFIG.seed)
    assert (result.held_items, result.held_answered) == (36, LABELS.answered[held].sum())


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_that_are_none_are_refused(bad):
    weight = np.ones(120)
    weight[7] = bad
    with pytest.raises(InputError, match="weight: expected 120 numbers of at least 0, one per label"):
        row_of(weight=weight)

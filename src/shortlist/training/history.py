"""What is known after each epoch of a run, and the mean of the last ten that is reported beside the last one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

LAST = 10
"""Epochs in the mean that is reported beside the last one."""


@dataclass(frozen=True)
class EpochScores:
    """What is known after an epoch; None where there is nothing to score on."""

    epoch: int
    risk: float
    seconds: float
    validation_accuracy: float | None = None
    validation_log_likelihood: float | None = None
    test_accuracy: float | None = None


def mean_of_last(
    history: Sequence[EpochScores], score: Literal["test_accuracy", "validation_accuracy"] = "test_accuracy"
) -> float | None:
    """The mean score of the last ten epochs; None where one of them has no score."""
    values = [getattr(row, score) for row in history[-LAST:]]
    known = [value for value in values if value is not None and np.isfinite(value)]
    return float(np.mean(known)) if known and len(known) == len(values) else None

"""What is known after each epoch of a run, and the mean of the last ten that is reported beside the last one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shortlist.errors import InputError

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
    validation_estimate: float | None = None
    """The accuracy that all held-out answers speak for, None among them (`evaluation`); uniform lists only."""
    validation_error: float | None = None
    """Its standard error."""

    @property
    def held_out_score(self) -> float:
        """What epochs are compared by: the accuracy of uniform lists, of other lists the likelihood of the answers."""
        score = self.validation_log_likelihood if self.validation_estimate is None else self.validation_estimate
        return -math.inf if score is None or math.isnan(score) else score


def saved_epoch(history: Sequence[EpochScores], keep: str) -> EpochScores:
    """The epoch whose weights a run with this `keep` ends with; of equals the first."""
    return max(history, key=lambda row: row.held_out_score) if keep == "best" else history[-1]


def mean_of_last(
    history: Sequence[EpochScores],
    score: Literal["test_accuracy", "validation_accuracy", "validation_estimate"] = "test_accuracy",
) -> float | None:
    """The mean score of the last ten epochs; None where one of them has no score."""
    values = [getattr(row, score) for row in history[-LAST:]]
    known = [value for value in values if value is not None and np.isfinite(value)]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def check_score_every(epochs: int) -> None:
    """Refuse fewer than 1 epoch between scores."""
    if epochs < 1:
        raise InputError(f"score_every: expected at least 1, got {epochs}")


def score_due(epoch: int, epochs: int, score_every: int) -> bool:
    """Whether this epoch of `epochs` is scored: every `score_every`-th is, and all that `mean_of_last` takes in."""
    return epoch % score_every == 0 or epoch > epochs - LAST

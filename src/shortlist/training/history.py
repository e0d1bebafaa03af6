"""The scores of a run after each epoch, and the mean of the last ten that is reported beside the last one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shortlist.errors import InputError

LAST = 10
"""How many epochs are in that mean."""


@dataclass(frozen=True)
class EpochScores:
    """The scores after an epoch; None where there is nothing to score on."""

    epoch: int
    risk: float
    seconds: float
    validation_accuracy: float | None = None
    validation_log_likelihood: float | None = None
    test_accuracy: float | None = None
    validation_estimate: float | None = None
    """The accuracy estimated from all held-out answers, None included (`evaluation`); for uniform lists only."""
    validation_error: float | None = None
    """Its standard error."""

    @property
    def held_out_score(self) -> float:
        """What epochs are compared by: the estimated accuracy for uniform lists, else the likelihood of the answers."""
        score = self.validation_log_likelihood if self.validation_estimate is None else self.validation_estimate
        return -math.inf if score is None or math.isnan(score) else score


def saved_epoch(history: Sequence[EpochScores], keep: str) -> EpochScores:
    """The epoch whose weights a run with this `keep` ends with; the first if several are best."""
    return max(history, key=lambda row: row.held_out_score) if keep == "best" else history[-1]


def mean_of_last(
    history: Sequence[EpochScores],
    score: Literal["test_accuracy", "validation_accuracy", "validation_estimate"] = "test_accuracy",
) -> float | None:
    """The mean score of the last ten epochs; None if one of them has no score."""
    values = [getattr(row, score) for row in history[-LAST:]]
    known = [value for value in values if value is not None and np.isfinite(value)]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def check_score_every(epochs: int) -> None:
    """Refuse less than 1 epoch between scores."""
    if epochs < 1:
        raise InputError(f"score_every: expected at least 1, got {epochs}")


def score_due(epoch: int, epochs: int, score_every: int) -> bool:
    """Whether this epoch of `epochs` is scored: every `score_every`-th is, and all in `mean_of_last`."""
    return epoch % score_every == 0 or epoch > epochs - LAST

"""How good a trained model is on items whose classes are known, as model cards and `shortlist evaluate` state it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import UNLABELLED
from shortlist.errors import InputError
from shortlist.training.evaluation import calibration_error


@dataclass(frozen=True)
class Measures:
    """Scores of predictions against true classes."""

    items: int
    accuracy: float
    calibration_error: float
    log_loss: float
    """Mean -log of the probability given to the true class."""
    by_class: dict[str, float | None]
    """Accuracy on the items of each class; None if there are none."""
    items_by_class: NDArray[np.int64]
    """(K,)."""
    confusion: NDArray[np.int64]
    """(n, 3) class i, class j, and how many items of i were taken for j, sorted; pairs without items are left out."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, fit for JSON, without the confusion matrix."""
        return {
            "accuracy": self.accuracy,
            "items": self.items,
            "calibration_error": self.calibration_error,
            "log_loss": self.log_loss,
            "by_class": self.by_class,
        }

    def taken_for(self) -> dict[str, dict[str, int]]:
        """The confusion matrix as class -> class that it was taken for -> items."""
        names, found = list(self.by_class), dict[str, dict[str, int]]()
        for i, j, items in self.confusion.tolist():
            found.setdefault(names[i], {})[names[j]] = items
        return found


def measure(probabilities: NDArray[np.float64], y: NDArray[np.int64], class_names: Sequence[str]) -> Measures:
    """Score (N, K) probabilities; items of unknown class are left out."""
    known = y != UNLABELLED
    probabilities, y = probabilities[known], y[known]
    if not len(y):
        raise InputError("no item has a known class, so there is nothing to score")
    K = len(class_names)
    chosen = probabilities.argmax(1)
    pairs, counts = np.unique(y * K + chosen, return_counts=True)  # nearly all of the K x K pairs have no item
    totals, right = np.bincount(y, minlength=K), np.bincount(y[chosen == y], minlength=K)
    share = np.maximum(probabilities[np.arange(len(y)), y], np.finfo(np.float32).tiny)
    return Measures(
        items=len(y),
        accuracy=float(np.mean(chosen == y)),
        calibration_error=calibration_error(probabilities, y),
        log_loss=float(-np.log(share).mean()),
        by_class={name: float(right[k] / totals[k]) if totals[k] else None for k, name in enumerate(class_names)},
        items_by_class=totals,
        confusion=np.column_stack([pairs // K, pairs % K, counts]),
    )

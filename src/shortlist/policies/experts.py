"""Experts: sources other than the model that know something about the items' classes. Needs numpy only.

    belief(y) = softmax(logits / temperature + sum over experts of weight x score)(y)

Temperature and weights are fitted together on answers that neither model nor experts had seen (`calibration.fit_pool`).
So the weight of an expert that knows nothing goes to 0, and every expert fades as the model learns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError
from shortlist.policies.linear import Linear

Matrix = NDArray[np.float32]
IntArray = NDArray[np.int64]

LEAST_PROBABILITY = 1e-4
"""Probabilities are raised to this: a model that is sure of the wrong class must not rule out the right one."""
HUGE = 1e12
"""Squares of larger scores overflow float32 when they are summed; masked logits are often -3.4e38."""


class Expert(Protocol):
    """Scores the classes of items."""

    @property
    def weight(self) -> float:
        """The weight of its scores before any answer has tested them."""

    def scores(self, rows: IntArray) -> Matrix:
        """(B, K) one score per class, the larger, the likelier; a constant row says nothing."""


@dataclass(frozen=True)
class LinearExpert:
    """Scores that are linear in the items' features, so that no (N, K) table is kept."""

    x: Any
    """(N, D) float32, dense or scipy CSR."""
    model: Linear
    weight: float = 1.0

    def scores(self, rows: IntArray) -> Matrix:
        """(B, K)."""
        return self.model.logits(self.x[rows])


@dataclass(frozen=True)
class TableExpert:
    """Scores from elsewhere: a zero-shot model, a language model, a model trained before."""

    table: Matrix
    """(N, K), finite."""
    weight: float = 1.0

    def scores(self, rows: IntArray) -> Matrix:
        """(B, K)."""
        found: Matrix = self.table[rows]
        return found


@dataclass(frozen=True)
class FavouriteExpert:
    """A score of 1 for the one class that a source holds likeliest, 0 for the others."""

    favourite: IntArray
    """(N,) that class, or -1 where there is none."""
    num_classes: int
    weight: float = 2.0

    def scores(self, rows: IntArray) -> Matrix:
        """(B, K)."""
        found: Matrix = (self.favourite[rows, None] == np.arange(self.num_classes)).astype(np.float32)
        return found


def experts_from_scores(scores: ArrayLike) -> tuple[Expert, Expert]:
    """Two experts from an (N, K) table of numbers on any scale, NaN where there is none.

    One gives the scores themselves, the other says which class has the largest. Models misjudge most how far the first
    class is ahead of the rest, so each expert gets a weight of its own.

    If no number is below 0 and no row adds up to more than 1, they are probabilities, and their logarithms are the
    scores; other numbers are scores already. From each score the mean of its row is taken away, and what is left is
    divided by its root mean square over the table. A missing number becomes 0, the mean of its row: it speaks neither
    for the class nor against it.
    """
    given = np.array(scores, np.float32)
    if given.ndim != 2:
        raise InputError(f"scores: expected a table of items by classes, got shape {given.shape}")
    if np.isinf(given).any():
        row, column = (int(place[0]) for place in np.nonzero(np.isinf(given)))
        raise InputError(f"scores: item {row}, class {column} is infinite, expected a number or nothing")
    there = ~np.isnan(given)
    if np.abs(given[there]).max(initial=0) > HUGE:
        given = given.astype(np.float64)
    sums = np.where(there, given, 0).sum(axis=1)
    if not (given[there] < 0).any() and (sums <= 1 + 1e-3).all():
        given = np.log(np.maximum(given, LEAST_PROBABILITY))
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    mean = np.where(there, given, 0).sum(axis=1, keepdims=True) / count
    table = np.where(there, given - mean, 0).astype(given.dtype)
    spread = float(np.sqrt(np.square(table[there]).mean())) if there.any() else 0.0
    table = (table / given.dtype.type(max(spread, 1e-6))).astype(np.float32)
    best = np.where(there, given, -np.inf).argmax(axis=1)
    return TableExpert(table), FavouriteExpert(np.where(there.any(axis=1), best, -1), given.shape[1])


def weighted_scores(experts: Sequence[Expert], weights: Sequence[float], rows: IntArray) -> Matrix | float:
    """(B, K) the sum of weight x score; the number 0 if no expert has a weight above 0."""
    total: Matrix | float = 0.0
    for expert, weight in zip(experts, weights, strict=True):
        if weight > 0:
            total = total + np.float32(weight) * expert.scores(rows)
    return total

"""Experts: what knows something about the classes beside the model, before or while people answer. Needs numpy only.

The belief in a class is log-linear: logits / temperature + the sum of weight x score over the experts. Temperature and
weights are fitted together on answers that nobody had seen (`calibration.fit_pool`), so an expert that knows nothing
goes to weight 0, and every expert fades as the model learns.
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
"""A model that is sure of the wrong class must not rule out the right one."""
HUGE = 1e12
"""Above this the squares of scores overflow float32 when they are summed: masked logits are often -3.4e38."""


class Expert(Protocol):
    """Scores the classes of items."""

    @property
    def weight(self) -> float:
        """How much its scores count before any answer has tested them."""

    def scores(self, rows: IntArray) -> Matrix:
        """(B, K) the larger, the likelier; a constant row says nothing."""


@dataclass(frozen=True)
class LinearExpert:
    """Scores that are linear in the items' features: nothing of size N x K is kept."""

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
    """The one class that somebody holds likeliest: 1 for it, 0 for the others."""

    favourite: IntArray
    """(N,) a class, or -1 where there is none."""
    num_classes: int
    weight: float = 2.0

    def scores(self, rows: IntArray) -> Matrix:
        """(B, K)."""
        found: Matrix = (self.favourite[rows, None] == np.arange(self.num_classes)).astype(np.float32)
        return found


def experts_from_scores(scores: ArrayLike) -> tuple[Expert, Expert]:
    """What numbers of any scale say, NaN where there is none: the scores themselves, and which class is their largest.

    Two experts, because how far the first is ahead of the rest is what models misjudge most; each finds its own weight.
    Rows of numbers from 0 to 1 that add up to at most 1 are probabilities, and their logarithms are scores. Other
    numbers are scores already. They are divided by their spread within a row. A missing number is taken for the row's
    mean: it speaks neither for the class nor against it.
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
    """(B, K) the sum of weight x score; 0 where there is no expert of any weight."""
    total: Matrix | float = 0.0
    for expert, weight in zip(experts, weights, strict=True):
        if weight > 0:
            total = total + np.float32(weight) * expert.scores(rows)
    return total

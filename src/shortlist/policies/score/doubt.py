"""Answers that a model finds hard to believe: worth a second look. Needs numpy and scipy.

A model agrees with what it was trained on, so each answer is judged by one that was trained on other items only
(cross-fitting, as in confident learning: Northcutt, Jiang and Chuang, 2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.labels import NONE
from shortlist.policies.beliefs import HeldOut, Matrix, softmax
from shortlist.policies.experts import Expert
from shortlist.policies.linear import fit
from shortlist.policies.noise import IntArray

FOLDS = 3
LEAST_ITEMS = 30
"""Answered items below which a third of them says nothing."""

MOST_JUDGED = 50_000
"""Answers that are judged at once: more take too long."""


@dataclass(frozen=True)
class Doubts:
    """Answers that a model trained without them does not share, the hardest to believe first."""

    rows: IntArray
    said: IntArray
    """The class that was answered."""
    believed: IntArray
    """The class that the model holds likeliest."""
    chance: NDArray[np.float64]
    """P(the class answered), by that model."""
    margin: NDArray[np.float64]
    """P(the class believed) - `chance`: from 0 (as likely) to 1."""


def hard_to_believe(x: Any, weights: Matrix, answer: IntArray, rows: IntArray, *, l2: float, seed: int) -> Doubts:
    """Which of these items' answers a model that has not seen them holds less likely than another class.

    Args:
        x: (N, D) the features of all items.
        weights: (B, K) P(the answers of each item | y).
        answer: (B,) the class answered, NONE where there is none: learned from, not judged.
        rows: (B,) the items.
        l2: the penalty, in units of one item's loss.
        seed: of the parts.
    """
    chances = softmax(cross_fitted(x, weights, rows, l2=l2, seed=seed))
    judged = np.nonzero(answer != NONE)[0]
    chances, said = chances[judged], answer[judged]
    chance, believed = chances[np.arange(len(judged)), said].astype(np.float64), chances.argmax(axis=1)
    margin = chances.max(axis=1, initial=0).astype(np.float64) - chance
    order = np.argsort(-margin, kind="stable")
    order = order[margin[order] > 0]
    return Doubts(rows[judged[order]], said[order], believed[order], chance[order], margin[order])


def cross_fitted(x: Any, weights: Matrix, rows: IntArray, *, l2: float, seed: int) -> Matrix:
    """(B, K) logits for each item by a model that was trained on others; 0 where there are too few to train on."""
    logits = np.zeros(weights.shape, np.float32)
    part = np.random.Generator(np.random.PCG64([seed, 8])).permutation(len(rows)) % FOLDS
    for fold in range(FOLDS) if len(rows) >= LEAST_ITEMS else ():
        others, own = part != fold, part == fold
        model = fit(x[rows[others]], weights[others], l2=l2 / others.sum(), max_iterations=60)
        logits[own] = model.logits(x[rows[own]])
    return logits


def held_out_known(
    x: Any, weights: Matrix, rows: IntArray, experts: Sequence[Expert], *, l2: float, seed: int
) -> HeldOut:
    """Known classes as answers that neither the model nor the experts had seen.

    They tell what each expert counts beside a model of such classes: one that misleads does not hold that up.
    """
    scores = tuple(expert.scores(rows) for expert in experts)
    logits = cross_fitted(x, weights, rows, l2=l2, seed=seed)
    return HeldOut(logits, scores, np.ones_like(weights), weights.astype(np.float64))

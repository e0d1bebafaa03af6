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
from shortlist.policies.beliefs import Matrix, softmax
from shortlist.policies.calibration import HeldOut, fit_temperature
from shortlist.policies.experts import Expert
from shortlist.policies.linear import fit
from shortlist.policies.noise import IntArray

FOLDS = 3
LEAST_ITEMS = 30
"""With fewer answered items a model of two thirds of them says nothing about the rest."""
MOST_JUDGED = 50_000
"""Answers that are judged at once; more would take too long."""
KNOWS = 0.5
"""The model must agree with this share of the answers before it may doubt any."""
DOUBTFUL = 0.002
"""Answers of a smaller probability are in doubt: people pick a given wrong class about that often (one slip in 50
answers, ten names on a list), so such an answer is as likely a slip as right. Of simulated answers in doubt about two
in five are wrong (docs/annotate-live.md)."""
SURE = 0.5
"""The class believed instead must have a larger probability than this: it is likelier than all others together."""
FITTED = 2000
"""The temperature is fitted to about so many answers."""


@dataclass(frozen=True)
class Doubts:
    """Answers that a model trained without them takes for slips, the least credible first."""

    rows: IntArray
    said: IntArray
    """The class that was answered."""
    believed: IntArray
    """The class that the model holds likeliest."""
    chance: NDArray[np.float64]
    """P(the class answered), by that model."""
    margin: NDArray[np.float64]
    """P(the class believed) - `chance`."""


def hard_to_believe(x: Any, weights: Matrix, answer: IntArray, rows: IntArray, *, l2: float, seed: int) -> Doubts:
    """The answers that a model which has not seen them takes for slips; none while it knows too little.

    An answer a is doubted if p(a) < DOUBTFUL and max_y p(y) > SURE, p being calibrated on the answers themselves.

    Args:
        x: (N, D) the features of all items.
        weights: (B, K) P(the answers of each item | y).
        answer: (B,) the class answered; items with NONE are learned from, but not judged.
        rows: (B,) the items.
        l2: the penalty, in units of one item's loss.
        seed: draws the parts for cross-fitting.
    """
    logits, judged = cross_fitted(x, weights, rows, l2=l2, seed=seed), np.nonzero(answer != NONE)[0]
    logits, said = logits[judged], answer[judged]
    some = slice(None, None, 1 + len(judged) // FITTED)
    answered = np.full((len(said[some]), logits.shape[1]), DOUBTFUL, np.float32)  # or slips would make it modest
    answered[np.arange(len(answered)), said[some]] = 1
    chances = softmax(logits / np.float32(fit_temperature(logits[some], np.ones_like(answered), answered)))
    chance, believed = chances[np.arange(len(judged)), said].astype(np.float64), chances.argmax(axis=1)
    likeliest = chances.max(axis=1, initial=0).astype(np.float64)
    knows = len(judged) > 0 and np.mean(believed == said) >= KNOWS
    found = np.nonzero((chance < DOUBTFUL) & (likeliest > SURE) & knows)[0]
    margin = likeliest - chance
    order = found[np.argsort(-margin[found], kind="stable")]
    return Doubts(rows[judged[order]], said[order], believed[order], chance[order], margin[order])


def cross_fitted(x: Any, weights: Matrix, rows: IntArray, *, l2: float, seed: int) -> Matrix:
    """(B, K) logits of each item by a model that was trained on others; 0 if there are too few items."""
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

    The experts' weights are fitted to them, so that a misleading expert does not hold up a model of known classes.
    """
    scores = tuple(expert.scores(rows) for expert in experts)
    logits = cross_fitted(x, weights, rows, l2=l2, seed=seed)
    return HeldOut(logits, scores, np.ones_like(weights), weights.astype(np.float64))

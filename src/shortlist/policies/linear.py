"""A linear softmax trained by the likelihood of the answers: fast, warm-started, exact gradients in numpy.

The loop retrains often, so this is its own small trainer. An item's answers are a row of weights w over the classes,
P(answers | y) up to a factor: one-hot where answered, 1 on the candidates where None, anything between where mistakes
are modelled. The loss of an item is -log sum_y w_y p_y, its gradient in the logits p - r with r = w p / sum(w p).
Large problems are cut into chunks of items that stay in the cache, on all cores.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.policies.answers import Answers
from shortlist.policies.beliefs import softmax
from shortlist.policies.threads import LARGE, spread

Matrix = NDArray[np.float32]
CELLS = 1 << 20
"""Logits held at a time by each thread: memory does not grow with N times K."""
PARTS = 8
"""Large sums are always made in this many parts, so that the result does not depend on the number of cores."""
TINY = 1e-30
FAR = 1e20
"""Sums of exponentials between 1 / FAR and FAR leave room in float32 for classes that are FAINT beside others."""
CROWDED = 0.1
"""Where the classes not shown have less than this share of a sum, they are summed anew: a difference would be noise."""
FAINT = 1e-12
"""Answers that a model finds less likely than this are computed in logarithms."""


@dataclass(frozen=True)
class Linear:
    """logits = x @ weight + bias."""

    weight: Matrix
    bias: Matrix

    @classmethod
    def zeros(cls, features: int, num_classes: int) -> "Linear":
        """Knows nothing: every class as likely as any other."""
        return cls(np.zeros((features, num_classes), np.float32), np.zeros(num_classes, np.float32))

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.bias)

    def logits(self, x: Any) -> Matrix:
        """(B, K)."""
        scores: Matrix = np.asarray(x @ self.weight, np.float32)
        scores += self.bias
        return scores

    def probabilities(self, x: Any, temperature: float = 1.0) -> Matrix:
        """(B, K) softmax(logits / temperature)."""
        return softmax(self.logits(x) / np.float32(temperature))

    def predict(self, x: Any) -> NDArray[np.int64]:
        """(B,) the most likely class, in chunks."""
        n, work = x.shape[0], x.shape[0] * self.weight.size
        parts = spread(lambda rows: self.logits(x[rows]).argmax(axis=1), chunks(n, self.num_classes), work)
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


def chunks(rows: int, num_classes: int, start: int = 0) -> Iterator[slice]:
    """Slices of rows, from `start` on, whose logits fit in CELLS."""
    step = max(1, CELLS // max(num_classes, 1))
    for first in range(start, rows, step):
        yield slice(first, min(first + step, rows))


def fit(
    x: Any,
    weights: Answers | NDArray[np.floating],
    *,
    l2: float,
    start: Linear | None = None,
    max_iterations: int = 60,
    tolerance: float = 1e-4,
    match: bool = False,
) -> Linear:
    """Minimise mean_i -log sum_y w_iy p_iy + (l2 / 2) |W|^2 by L-BFGS.

    With None answers the loss is not convex, so `start` matters: warm-start from the last round.

    Args:
        x: (N, D) float32, dense or scipy CSR.
        weights: (N, K) w >= 0, each row's largest 1; as `Answers`, or all of them.
        l2: the penalty on W, per item.
        start: where to start; zeros (uniform probabilities) otherwise.
        max_iterations: of L-BFGS.
        tolerance: stop when no entry of the gradient is larger, relative to 1 / K.
        match: the weights are probabilities to be matched, mean_i -sum_y w_iy log p_iy, instead of answers.
    """
    from scipy.optimize import minimize

    if x.shape[0] != len(weights):
        raise InputError(f"{x.shape[0]} items need as many rows of weights, got {len(weights)}")
    num_features = x.shape[1]
    num_classes = weights.num_classes if isinstance(weights, Answers) else weights.shape[1]
    start = start or Linear.zeros(num_features, num_classes)
    if not len(weights):
        return start
    if not match and not isinstance(weights, Answers):
        weights = Answers.from_table(weights)
    transposed = x.T.tocsr() if hasattr(x, "tocsr") else x.T

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table = (flat * unit).astype(np.float32).reshape(num_features + 1, num_classes)
        loss, gradient = _loss(x, transposed, weights, Linear(table[:-1], table[-1]))
        gradient[:-1] += l2 * table[:-1]
        penalty = 0.5 * l2 * float(np.square(table[:-1], dtype=np.float64).sum())
        return loss + penalty, unit * gradient.ravel().astype(np.float64)

    first = np.vstack([start.weight, start.bias[None]])
    # L-BFGS tries a first step of length 1, whatever the weights are: count in steps that fit
    unit = _first_step(x, weights, first) if 2 * len(weights) * first.size >= LARGE else 1.0
    options = {"maxiter": max_iterations, "maxcor": 8, "gtol": unit * tolerance / num_classes, "ftol": 1e-7}
    found = minimize(objective, first.ravel().astype(np.float64) / unit, jac=True, method="L-BFGS-B", options=options)
    table = (found.x * unit).reshape(num_features + 1, num_classes).astype(np.float32)
    return Linear(table[:-1], table[-1])


def _first_step(x: Any, weights: Answers | NDArray[np.floating], table: Matrix) -> float:
    """Half of how far it is down the slope to where it is level, by its curvature, as a part of the items shows it.

    Half, because the slope of a part is steeper than that of all.
    """
    part = slice(0, len(weights) // PARTS)
    some, theirs = x[part], weights[part]

    def slope(table: Matrix) -> Matrix:
        return _loss(some, some.T, theirs, Linear(table[:-1], table[-1]))[1]

    here = slope(table)
    steep = float(np.linalg.norm(here))
    if not steep:
        return 1.0
    down = here / np.float32(steep)
    bend = steep - float(np.vdot(slope(table - down), down))
    farthest = max(float(np.linalg.norm(table)), 1.0)  # the slope may not bend up at all: it is not convex
    return 0.5 * min(steep / bend, farthest) if bend > 0 else 1.0


def _loss(x: Any, transposed: Any, weights: Answers | NDArray[np.floating], model: Linear) -> tuple[float, Matrix]:
    """The mean loss and its (D + 1, K) gradient, chunk by chunk; an array of weights is to be matched."""
    n, work = len(weights), 2 * len(weights) * model.weight.size

    def part_of(rows: range) -> tuple[float, Matrix]:
        total = 0.0
        gradient = np.zeros((x.shape[1] + 1, model.num_classes), np.float32)
        for chunk in chunks(rows.stop, model.num_classes, rows.start):
            scores = model.logits(x[chunk])
            if isinstance(weights, Answers):
                total += _pull_to_answers(scores, weights[chunk], lambda lost: model.logits(x[chunk][lost]))  # noqa: B023
            else:
                total += _pull_to_match(scores, weights[chunk])
            gradient[:-1] += transposed[:, chunk] @ scores
            gradient[-1] += scores.sum(axis=0)
        return total, gradient

    count = PARTS if work >= LARGE else 1
    cuts = np.linspace(0, n, count + 1).astype(int).tolist()
    found = spread(part_of, [range(*ends) for ends in itertools.pairwise(cuts)], work)
    gradient = sum((part for _, part in found[1:]), start=found[0][1])
    gradient /= np.float32(n)
    return sum(total for total, _ in found) / n, gradient


def _pull_to_match(scores: Matrix, weights: NDArray[np.floating]) -> float:
    """Make logits, in place, the gradient of the loss in them, and return the loss."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores += np.float32(TINY)  # a class that is to be matched never has probability 0
    scores /= scores.sum(axis=1, keepdims=True)
    loss = -float((weights * np.log(scores)).sum(dtype=np.float64))
    scores -= weights
    return loss


def _pull_to_answers(scores: Matrix, answers: Answers, logits: Callable[[NDArray[np.int64]], Matrix]) -> float:
    """The same for answers: p - w p / sum(w p) is p times one number per item, but for the exceptions.

    Args:
        scores: (B, K) logits.
        answers: of the same items.
        logits: those of some of these items anew.
    """
    rows, own = answers.rows, (answers.rows, answers.classes)
    sums = _exponentials(scores, logits)
    shown = scores[own]
    hidden = sums - np.bincount(rows, shown, len(sums))
    crowded = np.nonzero((answers.rest > 0) & (hidden < CROWDED * sums))[0]
    if len(crowded):  # the difference of two sums that are nearly equal is noise
        scores[own] = 0
        hidden[crowded] = scores[crowded].sum(axis=1)
    evidence = (answers.rest * hidden + np.bincount(rows, shown * answers.values, len(sums))) / sums
    lost = np.nonzero(evidence < FAINT)[0]
    evidence[lost] = 1
    scores *= ((1 - answers.rest / evidence) / sums).astype(np.float32)[:, None]
    scores[own] = shown * (1 - answers.values / evidence[rows]) / sums[rows]
    surprise = np.log(evidence)
    if len(lost):
        again = logits(lost)
        likely, surprise[lost] = _faint(
            again, np.concatenate([answers[slice(i, i + 1)].table() for i in lost.tolist()])
        )
        scores[lost] = softmax(again) - likely
    return -float(surprise.sum())


def _exponentials(scores: Matrix, logits: Callable[[NDArray[np.int64]], Matrix]) -> NDArray[np.float32]:
    """Make logits, in place, proportional to probabilities, and return their sums.

    Only rows whose logits are so large that it matters are shifted by their largest: each pass over the table counts.
    """
    with np.errstate(over="ignore"):
        np.exp(scores, out=scores)
        sums: NDArray[np.float32] = scores.sum(axis=1)
    far = np.nonzero(~((sums > 1 / FAR) & (sums < FAR)))[0]  # NaN among them
    if len(far):
        again = logits(far)
        scores[far] = np.exp(again - again.max(axis=1, keepdims=True))
        sums[far] = scores[far].sum(axis=1)
    return sums


def _faint(logits: Matrix, weights: NDArray[np.floating]) -> tuple[Matrix, NDArray[np.float64]]:
    """(B, K) w p / sum(w p) and (B,) log sum(w p), where the sum is too small for float32.

    Cut off at the least number, the loss would be flat there while its gradient is not, and no step would be taken:
    a model that was sure of the wrong thing early would stay so for ever.
    """
    scores = logits.astype(np.float64)
    with np.errstate(divide="ignore"):  # a class ruled out weighs nothing
        ruled = scores + np.log(weights, dtype=np.float64)
    own, all_ = (np.logaddexp.reduce(table, axis=1) for table in (ruled, scores))
    return np.exp(ruled - own[:, None]).astype(np.float32), own - all_

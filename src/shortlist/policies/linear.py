"""A linear softmax trained by the likelihood of the answers: fast, warm-started, with exact gradients in numpy.

The loop retrains often, so it has this small trainer of its own. With p = softmax(x W + b):

    loss of an item            -log sum_y w_y p_y,  w_y = P(the item's answers | y) up to a factor
    its gradient in the logits p - r,  r_y = w_y p_y / sum_k w_k p_k

w is one-hot where a class was answered, 1 on the candidates after None, and anything between where mistakes are
modelled. Large problems are cut into chunks of items that stay in the cache, and spread over all cores.
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
"""Logits that a thread holds at a time, so that memory does not grow with N times K."""
PARTS = 8
"""Large sums are always made in this many parts, so that the result does not depend on the number of cores."""
TINY = 1e-30
"""Added to probabilities whose logarithm is taken."""
FAR = 1e20
"""Sums of exponentials from 1 / FAR to FAR leave room in float32 for classes of a FAINT share."""
CROWDED = 0.1
"""If the classes not shown have less than this share of a sum, they are added up anew: a difference would be noise."""
FAINT = 1e-12
"""If an item's answers are less likely than this under the model, its loss is computed in logarithms."""


@dataclass(frozen=True)
class Linear:
    """logits = x @ weight + bias."""

    weight: Matrix
    bias: Matrix

    @classmethod
    def zeros(cls, features: int, num_classes: int) -> "Linear":
        """A model that knows nothing: every class is as likely as any other."""
        return cls(np.zeros((features, num_classes), np.float32), np.zeros(num_classes, np.float32))

    @property
    def num_classes(self) -> int:
        """K, the number of classes."""
        return len(self.bias)

    def logits(self, x: Any) -> Matrix:
        """(B, K) x @ weight + bias."""
        scores: Matrix = np.asarray(x @ self.weight, np.float32)
        scores += self.bias
        return scores

    def probabilities(self, x: Any, temperature: float = 1.0) -> Matrix:
        """(B, K) softmax(logits / temperature)."""
        return softmax(self.logits(x) / np.float32(temperature))

    def predict(self, x: Any) -> NDArray[np.int64]:
        """(B,) the most likely class of each item, computed in chunks."""
        n, work = x.shape[0], x.shape[0] * self.weight.size
        parts = spread(lambda rows: self.logits(x[rows]).argmax(axis=1), chunks(n, self.num_classes), work)
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


def chunks(rows: int, num_classes: int, start: int = 0) -> Iterator[slice]:
    """Slices of the rows from `start` on, each with at most CELLS logits."""
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
    """Minimise (1/N) sum_i -log sum_y w_iy p_iy + (l2 / 2) |W|^2 by L-BFGS.

    With None answers the loss is not convex, so `start` matters: start from the last round's model.

    Args:
        x: (N, D) float32, dense or scipy CSR.
        weights: (N, K) w >= 0, the largest of each row being 1; as `Answers` or as a full table.
        l2: the penalty on W, beside the mean loss of an item.
        start: where to start; at zero (uniform probabilities) if not given.
        max_iterations: at most so many steps of L-BFGS.
        tolerance: stop when no entry of the gradient is larger than this / K.
        match: the weights are probabilities that the model is to match: the loss is (1/N) sum_i -sum_y w_iy log p_iy.
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
    # L-BFGS tries a first step of length 1 whatever the scale of the problem: scale it so that this step fits
    unit = _first_step(x, weights, first) if 2 * len(weights) * first.size >= LARGE else 1.0
    options = {"maxiter": max_iterations, "maxcor": 8, "gtol": unit * tolerance / num_classes, "ftol": 1e-7}
    found = minimize(objective, first.ravel().astype(np.float64) / unit, jac=True, method="L-BFGS-B", options=options)
    table = (found.x * unit).reshape(num_features + 1, num_classes).astype(np.float32)
    return Linear(table[:-1], table[-1])


def _first_step(x: Any, weights: Answers | NDArray[np.floating], table: Matrix) -> float:
    """Half the Newton step along steepest descent: g / (2 u^T H u), with g = |gradient| and u its unit vector.

    An eighth of the items is enough to tell. Half, because the slope of a part is steeper than that of all items.
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
    farthest = max(float(np.linalg.norm(table)), 1.0)  # the loss is not convex: it may hardly bend upwards
    return 0.5 * min(steep / bend, farthest) if bend > 0 else 1.0


def _loss(x: Any, transposed: Any, weights: Answers | NDArray[np.floating], model: Linear) -> tuple[float, Matrix]:
    """The mean loss and its (D + 1, K) gradient, chunk by chunk; weights that are a table are to be matched."""
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
    """Turn the logits, in place, into p - w, the gradient of -sum_y w_y log p_y; return the sum of the losses."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores += np.float32(TINY)  # log p stays finite
    scores /= scores.sum(axis=1, keepdims=True)
    loss = -float((weights * np.log(scores)).sum(dtype=np.float64))
    scores -= weights
    return loss


def _pull_to_answers(scores: Matrix, answers: Answers, logits: Callable[[NDArray[np.int64]], Matrix]) -> float:
    """Turn the logits, in place, into p - r, the gradient of -log sum_y w_y p_y; return the sum of the losses.

    With e = sum_k w_k p_k, p_y - r_y = p_y (1 - w_y / e). All classes that an item's answers do not tell apart share
    one w, so this is p times one number per item, and only the exceptions are computed one by one.

    Args:
        scores: (B, K) logits.
        answers: the answers of the same items.
        logits: computes the logits of some of these items again.
    """
    rows, own = answers.rows, (answers.rows, answers.classes)
    sums = _exponentials(scores, logits)
    shown = scores[own]
    hidden = sums - np.bincount(rows, shown, len(sums))
    crowded = np.nonzero((answers.rest > 0) & (hidden < CROWDED * sums))[0]
    if len(crowded):  # the difference of two nearly equal sums is noise
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
    """Turn the logits, in place, into numbers proportional to the probabilities, and return the sum of each row.

    Only rows whose logits are too far from 0 are shifted by their largest one: every pass over the table takes time.
    """
    with np.errstate(over="ignore"):
        np.exp(scores, out=scores)
        sums: NDArray[np.float32] = scores.sum(axis=1)
    far = np.nonzero(~((sums > 1 / FAR) & (sums < FAR)))[0]  # includes NaN
    if len(far):
        again = logits(far)
        scores[far] = np.exp(again - again.max(axis=1, keepdims=True))
        sums[far] = scores[far].sum(axis=1)
    return sums


def _faint(logits: Matrix, weights: NDArray[np.floating]) -> tuple[Matrix, NDArray[np.float64]]:
    """(B, K) r = w p / sum(w p) and (B,) log sum(w p), for sums that are too small for float32.

    If the sum were cut off at a least value, the loss would be flat there while its gradient is not, and no step would
    be taken: a model that was sure of the wrong class early on would stay so for ever.
    """
    scores = logits.astype(np.float64)
    with np.errstate(divide="ignore"):  # a class ruled out weighs nothing
        ruled = scores + np.log(weights, dtype=np.float64)
    own, all_ = (np.logaddexp.reduce(table, axis=1) for table in (ruled, scores))
    return np.exp(ruled - own[:, None]).astype(np.float32), own - all_

"""How sure a model may be and how much each expert counts, by answers that none of them had seen.

The answers that come in after a training are held out from it by nature, and cost nothing extra.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.beliefs import FEW, FloatArray, Matrix, log_chance, softmax, update

TEMPERATURES = np.exp(np.linspace(np.log(0.3), np.log(4.0), 40))
"""The temperatures that are tried for a model without experts."""
MEMORY = 0.5
"""An earlier round of answers counts half as much as the one after it, until it counts for less than `FORGOTTEN`."""
FORGOTTEN = 0.05
STEADY = (10.0, 0.05)
"""How strongly the log of the temperature, and each weight, are held where they were: as by so many answers."""
RANGE = (0.25, 16.0)
"""The range of temperatures where there are experts."""
UNPROVEN = 16.0
"""The temperature of a model beside experts until answers have tested it: one of 50 is far too sure."""
PLENTY = 1 << 23
"""Numbers (answers times classes) that are held at once: of more answers the latest do as well."""


@dataclass(frozen=True)
class HeldOut:
    """Answers that came in since a training, as the model and the experts saw their items beforehand."""

    logits: Matrix
    """(B, K) of the model."""
    scores: tuple[Matrix, ...]
    """(B, K) of each expert."""
    before: Matrix
    """(B, K) P(earlier answers of the item | y)."""
    answer_likelihood: FloatArray
    """(B, K) P(this answer | y, shown)."""

    def __len__(self) -> int:
        return len(self.logits)

    def __getitem__(self, kept: NDArray[np.bool_]) -> "HeldOut":
        scores = tuple(part[kept] for part in self.scores)
        return HeldOut(self.logits[kept], scores, self.before[kept], self.answer_likelihood[kept])

    @classmethod
    def joined(cls, parts: "Sequence[HeldOut]") -> "HeldOut":
        """One after another."""
        columns = zip(*((part.logits, part.before, part.answer_likelihood) for part in parts), strict=True)
        logits, before, likelihoods = (np.concatenate(column) for column in columns)
        scores = tuple(np.concatenate(column) for column in zip(*(part.scores for part in parts), strict=True))
        return cls(logits, scores, before, likelihoods)


@dataclass(frozen=True)
class Pool:
    """How model and experts are weighed: logits / temperature + sum of weight x score."""

    temperature: float
    weights: tuple[float, ...]


class Calibration:
    """The pool of a model and its experts, fitted to answers as they come.

    Args:
        weights: how much each expert counts before any answer has tested it.
    """

    def __init__(self, weights: tuple[float, ...]) -> None:
        self.pool = Pool(UNPROVEN if weights else 1.0, weights)
        self._new: list[HeldOut] = []
        self._rounds: list[tuple[HeldOut, float]] = []

    def hold_out(self, new: HeldOut) -> None:
        """Keep answers for the next fitting, of very many the latest."""
        self._new.append(new)
        while len(self._new) > 1 and sum(part.logits.size for part in self._new[1:]) >= PLENTY:
            del self._new[0]

    def begin(self, known: HeldOut) -> None:
        """Fit to items whose class was known before the first question."""
        self._rounds = [(known, 1.0)]
        self.pool = fit_pool(self._rounds, self.pool)

    def fit(self, least: int) -> HeldOut | None:
        """Fit to the answers held out since the last fitting, and return them; None while they are fewer than that."""
        if sum(map(len, self._new)) < least:
            return None
        new, self._new = HeldOut.joined(self._new), []
        if self.pool.weights:
            kept = [(held, count * MEMORY) for held, count in self._rounds if count * MEMORY >= FORGOTTEN]
            self._rounds = [*kept, (new, 1.0)]
            self.pool = fit_pool(self._rounds, self.pool)
        else:
            fitted = fit_temperature(new.logits, new.before, new.answer_likelihood)
            # half way in log space: a round of answers is a small sample
            self.pool = Pool(float(np.sqrt(self.pool.temperature * fitted)), ())
        return new


def fit_temperature(
    logits: NDArray[np.floating], before: NDArray[np.floating], answer_likelihood: NDArray[np.floating]
) -> float:
    """The temperature under which new answers were least surprising to a model that had not seen them.

    Args:
        logits: (B, K) of the model that chose the questions.
        before: (B, K) P(earlier answers of the item | y).
        answer_likelihood: (B, K) P(this answer | y, shown).
    """
    if not len(logits):
        return 1.0
    surprise = []
    for temperature in TEMPERATURES:
        posterior = update(softmax(logits / np.float32(temperature)), before)
        surprise.append(-log_chance(posterior, answer_likelihood).mean())
    return float(TEMPERATURES[int(np.argmin(surprise))])


def fit_pool(rounds: Sequence[tuple[HeldOut, float]], start: Pool) -> Pool:
    """Temperature and weights under which new answers were least surprising, not far from where they were.

    Args:
        rounds: answers that neither the model nor the weights were fitted to when they came, and how much each counts.
        start: the weights until now.
    """
    from scipy.optimize import minimize

    first = np.array([-np.log(start.temperature), *start.weights])
    steady = np.array([STEADY[0], *[STEADY[1]] * len(start.weights)])

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        moved = theta - first
        value, slope = 0.5 * float(steady @ np.square(moved)), steady * moved
        for held, count in rounds:
            surprise, gradient = _surprise(held, theta)
            value, slope = value + count * surprise, slope + count * gradient
        return value, slope

    bounds = [(-np.log(RANGE[1]), -np.log(RANGE[0])), *[(0, None)] * len(start.weights)]
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Pool(float(np.exp(-found[0])), tuple(float(weight) for weight in found[1:]))


def _surprise(held: HeldOut, theta: FloatArray) -> tuple[float, FloatArray]:
    """-log P(answers) and its gradient in log 1 / temperature and the weights."""
    sharpness = np.exp(theta[0])
    with np.errstate(divide="ignore"):
        joint = np.log(held.before, dtype=np.float64) + sharpness * held.logits.astype(np.float64)
    for weight, scores in zip(theta[1:], held.scores, strict=True):
        joint += weight * scores.astype(np.float64)
    joint -= joint.max(axis=1, keepdims=True)
    prior = np.exp(joint)
    prior /= prior.sum(axis=1, keepdims=True)
    posterior = prior * held.answer_likelihood
    chance = np.maximum(posterior.sum(axis=1), FEW)
    posterior /= chance[:, None]
    pull = prior - posterior
    gradient = [sharpness * (pull * held.logits).sum(), *((pull * scores).sum() for scores in held.scores)]
    return -float(np.log(chance).sum()), np.array(gradient)


def knowledge(held: HeldOut, pool: Pool) -> float:
    """How much likelier the answers were under the pool than for somebody who knows nothing, in nats per answer."""
    theta = np.array([-np.log(pool.temperature), *pool.weights])
    nothing = np.full(len(theta), -np.inf)
    nothing[1:] = 0
    return (_surprise(held, nothing)[0] - _surprise(held, theta)[0]) / max(len(held), 1)

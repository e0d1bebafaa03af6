"""How sure a model may be and how much each expert counts, learned from answers that neither had seen.

    prior(y) = softmax(logits(y) / temperature + sum of weight x expert's score(y))

The answers that arrive after a training are held out from it by nature and cost nothing extra. The temperature and the
weights are those under which these answers were least surprising.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.beliefs import FEW, FloatArray, Matrix, log_chance, softmax, update

TEMPERATURES = np.exp(np.linspace(np.log(0.3), np.log(4.0), 40))
"""The temperatures that are tried for a model without experts."""
MEMORY = 0.5
"""An earlier round of answers counts half as much as the one after it, until it counts less than `FORGOTTEN`."""
FORGOTTEN = 0.05
STEADY = (10.0, 0.05)
"""The penalty on moving log temperature, and on moving a weight: (penalty / 2) x (how far it moves)^2, in nats."""
RANGE = (0.25, 16.0)
"""The lowest and highest temperature if there are experts."""
UNPROVEN = 16.0
"""The first temperature of a model beside experts: trained on 50 answers it is far too sure of itself."""
PLENTY = 1 << 23
"""Numbers (answers times classes) that are held at most: of more answers the latest are enough."""


@dataclass(frozen=True)
class HeldOut:
    """Answers that arrived after a training, with what the model and the experts said about their items before."""

    logits: Matrix
    """(B, K) the model's."""
    scores: tuple[Matrix, ...]
    """(B, K) each expert's."""
    before: Matrix
    """(B, K) P(earlier answers of the item | y)."""
    answer_likelihood: FloatArray
    """(B, K) P(this answer | y, classes shown)."""

    def __len__(self) -> int:
        return len(self.logits)

    def __getitem__(self, kept: NDArray[np.bool_]) -> "HeldOut":
        scores = tuple(part[kept] for part in self.scores)
        return HeldOut(self.logits[kept], scores, self.before[kept], self.answer_likelihood[kept])

    @classmethod
    def joined(cls, parts: "Sequence[HeldOut]") -> "HeldOut":
        """Several of them as one."""
        columns = zip(*((part.logits, part.before, part.answer_likelihood) for part in parts), strict=True)
        logits, before, likelihoods = (np.concatenate(column) for column in columns)
        scores = tuple(np.concatenate(column) for column in zip(*(part.scores for part in parts), strict=True))
        return cls(logits, scores, before, likelihoods)


@dataclass(frozen=True)
class Pool:
    """How model and experts are combined: logits / temperature + sum of weight x score."""

    temperature: float
    weights: tuple[float, ...]


class Calibration:
    """Fits the `Pool` of a model and its experts to the answers as they arrive.

    Args:
        weights: each expert's weight before any answer has tested it.
    """

    def __init__(self, weights: tuple[float, ...]) -> None:
        self.pool = Pool(UNPROVEN if weights else 1.0, weights)
        self._new: list[HeldOut] = []
        self._rounds: list[tuple[HeldOut, float]] = []

    def hold_out(self, new: HeldOut) -> None:
        """Keep answers for the next fit; of very many only the latest."""
        self._new.append(new)
        while len(self._new) > 1 and sum(part.logits.size for part in self._new[1:]) >= PLENTY:
            del self._new[0]

    def begin(self, known: HeldOut) -> None:
        """Fit to the items whose class was known before the first question."""
        self._rounds = [(known, 1.0)]
        self.pool = fit_pool(self._rounds, self.pool)

    def fit(self, least: int) -> HeldOut | None:
        """Fit to the answers held out since the last fit, and return them; if there are fewer than `least`, do nothing.

        With experts: `fit_pool` on this round and the earlier ones, each of which counts half as much as the next.
        Without: the geometric mean of the old temperature and the one that suits these answers best.
        """
        if sum(map(len, self._new)) < least:
            return None
        new, self._new = HeldOut.joined(self._new), []
        if self.pool.weights:
            kept = [(held, count * MEMORY) for held, count in self._rounds if count * MEMORY >= FORGOTTEN]
            self._rounds = [*kept, (new, 1.0)]
            self.pool = fit_pool(self._rounds, self.pool)
        else:
            fitted = fit_temperature(new.logits, new.before, new.answer_likelihood)
            # only half way (in log space), as one round of answers is a small sample
            self.pool = Pool(float(np.sqrt(self.pool.temperature * fitted)), ())
        return new


def fit_temperature(
    logits: NDArray[np.floating], before: NDArray[np.floating], answer_likelihood: NDArray[np.floating]
) -> float:
    """The temperature t, out of `TEMPERATURES`, under which new answers were least surprising to a model.

    Minimises mean_i -log sum_y posterior_i(y) P(this answer | y) over t, with posterior_i(y) proportional to
    softmax(logits_i / t)(y) x P(earlier answers of item i | y).

    Args:
        logits: (B, K) of the model that chose the questions and had not seen their answers.
        before: (B, K) P(earlier answers of the item | y).
        answer_likelihood: (B, K) P(this answer | y, classes shown).
    """
    if not len(logits):
        return 1.0
    surprise = []
    for temperature in TEMPERATURES:
        posterior = update(softmax(logits / np.float32(temperature)), before)
        surprise.append(-log_chance(posterior, answer_likelihood).mean())
    return float(TEMPERATURES[int(np.argmin(surprise))])


def fit_pool(rounds: Sequence[tuple[HeldOut, float]], start: Pool) -> Pool:
    """The temperature and weights under which new answers were least surprising, held near their present values.

    With theta = (log 1/temperature, weights), L-BFGS-B minimises

        sum over rounds of count x (-log P(answers | theta)) + sum_j (STEADY_j / 2) (theta_j - start_j)^2

    within `RANGE` and with weights of at least 0.

    Args:
        rounds: answers that the model had not been trained on when they came, and how much each round counts.
        start: the present pool.
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
    """-log P(answers | theta) and its gradient, for theta = (log 1/temperature, weights).

    P(answer of item i) = sum_y prior_i(y) P(this answer | y), prior_i including the item's earlier answers. With the
    posterior q_i after the answer, the gradient in a weight is sum_i sum_y (prior_i(y) - q_i(y)) score_i(y), and in
    log 1/temperature the same with logits / temperature in place of the score.
    """
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
    """How much model and experts knew about new answers, in nats per answer.

    It is the mean of log P(answer) under the pool, less the same for somebody who goes by the item's earlier answers
    alone.
    """
    theta = np.array([-np.log(pool.temperature), *pool.weights])
    nothing = np.full(len(theta), -np.inf)
    nothing[1:] = 0
    return (_surprise(held, nothing)[0] - _surprise(held, theta)[0]) / max(len(held), 1)

"""From a model's logits and an item's answers to what is believed of it: temperature, background, posterior.

Needs numpy only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.answers import Answers

FloatArray = NDArray[np.float64]
Matrix = NDArray[np.float32]

TEMPERATURES = np.exp(np.linspace(np.log(0.3), np.log(4.0), 40))
"""Where the temperature is looked for."""
FEW = 1e-12


def softmax(logits: NDArray[np.floating]) -> Matrix:
    """(..., K) exp, normalised."""
    shifted: Matrix = (logits - logits.max(axis=-1, keepdims=True)).astype(np.float32, copy=False)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted


def background(counts: NDArray[np.integer]) -> Matrix:
    """(K,) what to believe of an item the model knows nothing about: the fewer answers a class has, the likelier.

    >>> background(np.array([0, 1, 9])).round(3).tolist()
    [0.794, 0.198, 0.008]
    """
    rare = 1.0 / np.square(1.0 + np.asarray(counts, np.float64))
    shares: Matrix = (rare / rare.sum()).astype(np.float32)
    return shares


def stray_share(log_model: FloatArray, log_background: FloatArray, resolved: int, *, rounds: int = 30) -> float:
    """The share of items that the background explains, not the model, by expectation maximisation.

    A model that never saw a class answered cannot rank it and would never show it: items of that class would be asked
    in vain for ever. What gives them away are None answers where the model was sure of a hit.

    Args:
        log_model: (B,) log of how likely the model held the answers of each unresolved item before they came.
        log_background: (B,) the same for the background.
        resolved: how many more items were asked and are resolved; they count for the model.
        rounds: of EM.
    """
    share, asked = 0.5, len(log_model) + resolved
    if not asked:
        return 0.0
    for _ in range(rounds):
        share = float(np.clip(stray(log_model, log_background, share).sum() / asked, 1e-6, 0.9))
    return share


def stray(log_model: FloatArray, log_background: FloatArray, share: float) -> FloatArray:
    """(B,) the probability of each item to belong to the background."""
    odds = np.log(share) - np.log1p(-share) + log_background - log_model
    chance: FloatArray = 1 / (1 + np.exp(-np.clip(odds, -60, 60)))
    return chance


def update(probabilities: NDArray[np.floating], answer_likelihood: NDArray[np.floating]) -> Matrix:
    """(B, K) the posterior: probabilities times P(answers | y), normalised; the latter alone where that is 0."""
    joint = probabilities * answer_likelihood
    total = joint.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= 0
    if lost.any():
        joint[lost] = answer_likelihood[lost]
        total = joint.sum(axis=1, keepdims=True)
    joint /= np.maximum(total, FEW)
    return joint.astype(np.float32, copy=False)


def posterior(
    prior: Matrix, answers: Answers, log_model: FloatArray, share: float, rare: Callable[[], Matrix]
) -> Matrix:
    """(B, K) the prior or, as far as the model knows nothing of an item, the background, given the item's answers.

    Args:
        prior: (B, K) of model and experts; may be overwritten.
        answers: of each item.
        log_model: (B,) log of how likely the model held these answers before they came.
        share: of the items that the model knows nothing about.
        rare: (K,) the `background`, asked for if there is such a share.
    """
    likelihoods = None if answers.blank else answers.table()  # most items were never asked about
    found = prior if likelihoods is None else update(prior, likelihoods)
    if share > 0:
        unseen = rare()
        own = stray(log_model, np.log(answers.weighted(unseen) + FEW), share).astype(np.float32)[:, None]
        found *= 1 - own
        found += own * (unseen[None] if likelihoods is None else update(unseen[None], likelihoods))
    return found


def fit_temperature(
    logits: NDArray[np.floating], before: NDArray[np.floating], answer_likelihood: NDArray[np.floating]
) -> float:
    """The temperature under which new answers were least surprising to a model that had not seen them.

    The answers that came in since a model was trained are held out from it by nature, and cost nothing extra.

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


def log_chance(posterior: NDArray[np.floating], answer_likelihood: NDArray[np.floating]) -> FloatArray:
    """(B,) log of how likely the answers were held to be, relative to the class that explains them best."""
    best = np.maximum(answer_likelihood.max(axis=1), FEW)
    chance = (posterior * answer_likelihood).sum(axis=1, dtype=np.float64)
    value: FloatArray = np.log(np.maximum(chance / best, FEW))
    return value


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


MEMORY = 0.5
"""An earlier round of answers counts half as much as the one after it, until it counts for less than `FORGOTTEN`."""
FORGOTTEN = 0.05
STEADY = (10.0, 0.05)
"""How hard the log of the temperature and each weight are held in place, in answers: a round is a small sample."""
RANGE = (0.25, 16.0)
"""Where the temperature is looked for."""


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

"""From what a model says and an item's answers to what is believed of it: prior, background, posterior.

Needs numpy only.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.answers import Answers

FloatArray = NDArray[np.float64]
Matrix = NDArray[np.float32]

FEW = 1e-12
ROUNDS = 30
"""Of expectation maximisation."""


def softmax(logits: NDArray[np.floating]) -> Matrix:
    """(..., K) exp, normalised."""
    shifted: Matrix = (logits - logits.max(axis=-1, keepdims=True)).astype(np.float32, copy=False)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted


def background(counts: NDArray[np.integer]) -> Matrix:
    """(K,) what to believe of an item the model knows nothing about: the fewer answers a class has, the likelier.

    >>> background(np.array([0, 1, 9])).round(3)
    array([0.794, 0.198, 0.008], dtype=float32)
    """
    rare = 1.0 / np.square(1.0 + np.asarray(counts, np.float64))
    shares: Matrix = (rare / rare.sum()).astype(np.float32)
    return shares


def stray_share(log_model: FloatArray, log_background: FloatArray, resolved: int) -> float:
    """The share of items that the background explains, not the model, by expectation maximisation.

    A model that never saw a class answered cannot rank it and would never show it: items of that class would be asked
    in vain for ever. What gives them away are None answers where the model was sure of a hit.

    Args:
        log_model: (B,) log of how likely the model held the answers of each unresolved item before they came.
        log_background: (B,) the same for the background.
        resolved: how many more items were asked and are resolved; they count for the model.
    """
    share, asked = 0.5, len(log_model) + resolved
    if not asked:
        return 0.0
    for _ in range(ROUNDS):
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


def log_chance(posterior: NDArray[np.floating], answer_likelihood: NDArray[np.floating]) -> FloatArray:
    """(B,) log of how likely the answers were held to be, relative to the class that explains them best."""
    best = np.maximum(answer_likelihood.max(axis=1), FEW)
    chance = (posterior * answer_likelihood).sum(axis=1, dtype=np.float64)
    value: FloatArray = np.log(np.maximum(chance / best, FEW))
    return value

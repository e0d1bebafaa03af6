"""What is believed about an item: the model's prior, a background for classes it has not seen, and the posterior.

    prior       p(y) = softmax(logits / temperature + sum of weight x expert's score)
    background  b(y), proportional to 1 / (1 + answers with class y)^2
    posterior   (1 - s) p(y | answers) + s b(y | answers), with s the chance that the model knows nothing about the item

Needs numpy only.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.answers import Answers

FloatArray = NDArray[np.float64]
Matrix = NDArray[np.float32]

FEW = 1e-12
"""Keeps logarithms and quotients finite."""
ROUNDS = 30
"""Rounds of expectation maximisation."""


def softmax(logits: NDArray[np.floating]) -> Matrix:
    """(..., K) exp(logits) / sum of exp(logits), in float32."""
    shifted: Matrix = (logits - logits.max(axis=-1, keepdims=True)).astype(np.float32, copy=False)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted


def background(counts: NDArray[np.integer]) -> Matrix:
    """(K,) what to believe about an item that the model knows nothing about: 1 / (1 + count)^2, normalised.

    The fewer answers a class has, the likelier it is: a class that nobody has picked yet comes first.

    >>> background(np.array([0, 1, 9])).round(3)
    array([0.794, 0.198, 0.008], dtype=float32)
    """
    rare = 1.0 / np.square(1.0 + np.asarray(counts, np.float64))
    shares: Matrix = (rare / rare.sum()).astype(np.float32)
    return shares


def stray_share(log_model: FloatArray, log_background: FloatArray, resolved: int) -> float:
    """The share of strays: items that the background explains better than the model.

    A model cannot rank a class that it has never seen picked, so it would never show that class, and would ask about
    its items in vain for ever. None answers where the model was sure of a hit give such items away.

    The share s is fitted by expectation maximisation, starting from one half:
    s <- (sum over the unresolved items of P(stray | s)) / (unresolved + resolved items), kept in [1e-6, 0.9].

    Args:
        log_model: (B,) for each unresolved item, the log of the chance that the model gave its answers in advance.
        log_background: (B,) the same for the background.
        resolved: how many other items were asked about and are resolved; they count as explained by the model.
    """
    share, asked = 0.5, len(log_model) + resolved
    if not asked:
        return 0.0
    for _ in range(ROUNDS):
        share = float(np.clip(stray(log_model, log_background, share).sum() / asked, 1e-6, 0.9))
    return share


def stray(log_model: FloatArray, log_background: FloatArray, share: float) -> FloatArray:
    """(B,) the chance of each item to be a stray.

    It is s B / (s B + (1 - s) M), with the share s, and with M and B the chances that model and background gave the
    item's answers.
    """
    odds = np.log(share) - np.log1p(-share) + log_background - log_model
    chance: FloatArray = 1 / (1 + np.exp(-np.clip(odds, -60, 60)))
    return chance


def update(probabilities: NDArray[np.floating], answer_likelihood: NDArray[np.floating]) -> Matrix:
    """(B, K) the posterior by Bayes' rule: p(y) P(answers | y), normalised.

    Where that is 0 for every class, P(answers | y) alone, normalised.
    """
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
    """(B, K) the beliefs given each item's answers: (1 - s) x the prior's posterior + s x the background's posterior.

    s is the chance of each item to be a `stray`.

    Args:
        prior: (B, K) the beliefs of model and experts; may be overwritten.
        answers: the answers of each item.
        log_model: (B,) the log of the chance that the model gave these answers before they came.
        share: the share of strays among the items.
        rare: returns the (K,) `background`; called only if the share is above 0.
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
    """(B,) log of sum_y posterior(y) P(answer | y) / max_y P(answer | y): how expected an answer was, 0 at most."""
    best = np.maximum(answer_likelihood.max(axis=1), FEW)
    chance = (posterior * answer_likelihood).sum(axis=1, dtype=np.float64)
    value: FloatArray = np.log(np.maximum(chance / best, FEW))
    return value

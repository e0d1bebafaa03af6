"""From a model's logits and an item's answers to what is believed of it: temperature, background, posterior.

Needs numpy only.
"""

import numpy as np
from numpy.typing import NDArray

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

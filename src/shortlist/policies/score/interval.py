"""The accuracy of a model, with an interval, from what the answers on a sample say about each item. numpy only."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ROUNDS = 200
STEPS = 2000
ACCURACIES: FloatArray = (np.arange(STEPS) + 0.5) / STEPS
LEVEL = 0.95
LEAST = 1e-300


def estimate(right: FloatArray, wrong: FloatArray, undecided: BoolArray) -> tuple[float, float, float]:
    """The accuracy of a model on n items that were asked about, and the ends of its 95 % interval.

    With accuracy a, P(answers of item i) = a right_i + (1 - a) wrong_i. The interval is from the 2.5 % to the 97.5 %
    quantile of the posterior of a under Jeffreys' prior a^-0.5 (1 - a)^-0.5. It holds the truth about as often as it
    says (Brown, Cai and DasGupta, 2001, whose interval it is if every item is certain). For the lower end all undecided
    items count as wrong, for the upper end as right, so nothing is assumed about them. The accuracy itself is the a of
    the largest likelihood.

    Args:
        right: (n,) P(answers | the model's class is the right one).
        wrong: (n,) P(answers | another one is).
        undecided: (n,) whether the answers leave both possible.

    >>> [round(value, 3) for value in estimate(np.array([1.0, 1, 0, 1]), np.array([0.0, 0, 1, 0]), np.zeros(4, bool))]
    [0.75, 0.284, 0.972]
    """
    hits, misses = np.log(ACCURACIES), np.log1p(-ACCURACIES)
    jeffreys = -0.5 * (hits + misses)
    sure = ~undecided
    mixed = np.outer(right[sure], ACCURACIES) + np.outer(wrong[sure], 1 - ACCURACIES)
    decided = jeffreys + np.log(np.maximum(mixed, LEAST)).sum(axis=0)
    count, tail = int(undecided.sum()), (1 - LEVEL) / 2
    all_wrong, all_right = decided + count * misses, decided + count * hits
    # if nothing speaks for (against) the model, an accuracy of 0 (1) cannot be ruled out
    low = _quantile(all_wrong, tail) if (right > wrong)[sure].any() else 0.0
    high = _quantile(all_right, 1 - tail) if (wrong > right)[sure].any() else 1.0
    return _likeliest(right, wrong), low, high


def _likeliest(right: FloatArray, wrong: FloatArray) -> float:
    """The a that maximises the product of a right_i + (1 - a) wrong_i, by expectation maximisation."""
    share = 0.5
    for _ in range(ROUNDS):
        share = float(np.mean(share * right / (share * right + (1 - share) * wrong)))
    return share


def _quantile(log_density: FloatArray, level: float) -> float:
    reached = np.cumsum(np.exp(log_density - log_density.max()))
    return float(np.interp(level, np.concatenate([[0.0], reached / reached[-1]]), np.linspace(0, 1, STEPS + 1)))

"""What the estimators do, in numbers: bias (smoothing), variance, the paper's bound, information and cost of a list.

There are K classes and uniform shortlists of l of them; p is the posterior P(y | x) of one item, L the vector of its
losses. Needs numpy only. The enumerations go over every shortlist and every class, so they are for small K. The
formulas agree with them (tests/test_theory.py) and hold for any K.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError, unknown_name
from shortlist.labels import NONE

__all__ = [
    "excess_risk_bound",
    "expected_reads",
    "information",
    "lemma_bounds",
    "paper_smoothing",
    "paper_weights",
    "smoothing",
    "unsmooth",
    "variance",
]

FloatArray = NDArray[np.float64]
Estimator = Literal["ordinary", "total", "unbiased"]
ESTIMATORS = get_args(Estimator)


# -- bias --------------------------------------------------------------------------------------------------------------


def smoothing(num_classes: int, size: int) -> float:
    """The label smoothing that `total_risk`, Eq. (12), amounts to: epsilon = 1 - l/(K - 1); 0 for l >= K - 1.

    E[total risk] = (1 - epsilon) sum_j p_j L_j + (epsilon / K) sum_j L_j.

    >>> round(smoothing(10, 5), 3)
    0.444
    """
    _check_size(num_classes, size)
    return max(0.0, 1 - size / (num_classes - 1))


def paper_weights(p: ArrayLike, prior: ArrayLike, size: int) -> FloatArray:
    """(K,) the weight of each L_j in `paper_risk`, Eq. (13): its expectation is sum_j weight_j L_j, with

        weight_j = p_j P(s = j) + p_j/K + (1 - p_j)(K - l - 1)/(K(K - 1))

    A uniform list is answered with probability l/K whatever x is, so both means of Eq. (13) go over the same x. At
    l = K nothing is hidden, and only the first term is left.

    Args:
        p: (K,) posterior.
        prior: (K + 1,) P(s), None last.
        size: l.
    """
    posterior, answers = np.asarray(p, np.float64), np.asarray(prior, np.float64)
    K = len(posterior)
    _check_size(K, size)
    if size == K:
        return posterior * answers[:-1]
    none_part: FloatArray = posterior / K + (1 - posterior) * (K - size - 1) / (K * (K - 1))
    return posterior * answers[:-1] + none_part


def paper_smoothing(num_classes: int, size: int, *, equal: bool = False) -> float:
    """The label smoothing that `paper_risk`, Eq. (13), amounts to if all K classes are equally frequent.

    Args:
        num_classes: K.
        size: l.
        equal: for the form of the authors' later code, which adds the means of the two parts without P(s).

    >>> [round(paper_smoothing(10, l), 2) for l in (8, 5, 3)]
    [0.4, 0.81, 0.91]
    """
    K, hidden = num_classes, num_classes - size
    if equal:
        _check_size(K, size)
        return K * (hidden - 1) / (2 * hidden * (K - 1)) if hidden else 0.0
    prior = np.append(np.full(K, size / K**2), 1 - size / K)
    hit, miss = paper_weights(np.eye(K)[0], prior, size)[:2]
    return float(K * miss / (hit + (K - 1) * miss))


def smooth(p: ArrayLike, epsilon: float) -> FloatArray:
    """(..., K) the posterior that a smoothed risk learns: (1 - epsilon) p + epsilon / K."""
    posterior = np.asarray(p, np.float64)
    smoothed: FloatArray = (1 - epsilon) * posterior + epsilon / posterior.shape[-1]
    return smoothed


def unsmooth(p: ArrayLike, epsilon: float) -> FloatArray:
    """(..., K) undo `smooth`; estimates below zero are set to zero, and the rest renormalised.

    >>> unsmooth(smooth([0.7, 0.2, 0.1], 0.4), 0.4).round(6)
    array([0.7, 0.2, 0.1])
    """
    if not 0 <= epsilon < 1:
        raise InputError(f"epsilon: expected 0 <= epsilon < 1, got {epsilon}")
    shrunk = np.asarray(p, np.float64)
    posterior = np.clip((shrunk - epsilon / shrunk.shape[-1]) / (1 - epsilon), 0, None)
    total = posterior.sum(-1, keepdims=True)
    # no class is above the floor epsilon / K: nothing was learned about this item
    restored: FloatArray = np.where(total > 0, posterior / np.where(total > 0, total, 1), 1 / shrunk.shape[-1])
    return restored


# -- variance ----------------------------------------------------------------------------------------------------------


def outcomes(p: ArrayLike, size: int) -> Iterator[tuple[float, tuple[int, ...], int]]:
    """Every (probability, shortlist, answer) that one item with posterior p can have; the probabilities sum to 1."""
    posterior = np.asarray(p, np.float64)
    K = len(posterior)
    _check_size(K, size)
    lists = list(itertools.combinations(range(K), size))
    for shortlist in lists:
        for y in range(K):
            yield posterior[y] / len(lists), shortlist, (y if y in shortlist else NONE)


def item_value(estimator: Estimator, losses: ArrayLike, shortlist: tuple[int, ...], answer: int) -> float:
    """What one item contributes to the mean that the estimator takes (`ordinary` sees the true class: l = K)."""
    L = np.asarray(losses, np.float64)
    if estimator not in ESTIMATORS:
        raise unknown_name("estimator", estimator, ESTIMATORS)
    if answer != NONE:
        return float(L[answer])
    shown = np.isin(np.arange(len(L)), shortlist)
    match estimator:
        case "total":
            return float(L[~shown].mean())
        case "unbiased":
            return float(L[~shown].sum() - (len(L) - 1 - len(shortlist)) / len(shortlist) * L[shown].sum())
    raise InputError("the ordinary estimator sees the true class, so it has no value for a None")


def variance_by_enumeration(estimator: Estimator, p: ArrayLike, losses: ArrayLike, size: int) -> float:
    """The variance of `item_value` over the item's class and shortlist, by enumeration."""
    K = len(np.asarray(p))
    drawn = outcomes(p, K if estimator == "ordinary" else size)
    values = [(weight, item_value(estimator, losses, shortlist, answer)) for weight, shortlist, answer in drawn]
    mean = sum(weight * value for weight, value in values)
    return sum(weight * (value - mean) ** 2 for weight, value in values)


def variance(estimator: Estimator, p: ArrayLike, losses: ArrayLike, size: int) -> float:
    """The variance of one item's contribution to a risk, over its class and its shortlist, by formula.

    If y is not shown (probability 1 - l/K), the classes shown are a uniform l-subset of the K - 1 others. The second
    moment of a sum over such a subset follows from the probabilities that it contains a given class or two given
    classes, q1 = l/(K-1) and q2 = l(l-1)/((K-1)(K-2)).

    Args:
        estimator: `ordinary` (true labels), `total` (`total_risk`) or `unbiased` (`unbiased_risk`).
        p: (K,) posterior.
        losses: (K,) L.
        size: l.
    """
    if estimator not in ESTIMATORS:
        raise unknown_name("estimator", estimator, ESTIMATORS)
    posterior, L = np.asarray(p, np.float64), np.asarray(losses, np.float64)
    K = len(L)
    _check_size(K, size)
    # a constant added to all losses shifts every estimator by the same; without it no digits cancel below
    L = L - posterior @ L
    mean, second = float(posterior @ L), float(posterior @ L**2)
    if estimator == "ordinary" or size >= K - 1:
        return second - mean**2
    total, squares = L.sum(), (L**2).sum()
    others, other_squares = total - L, squares - L**2  # over the classes other than y, one entry for each y
    q1 = size / (K - 1)
    q2 = size * (size - 1) / ((K - 1) * (K - 2))
    shown_mean = q1 * others
    shown_second = q1 * other_squares + q2 * (others**2 - other_squares)
    # a None contributes a (sum over all) + b (sum over shown)
    a, b = (1 / (K - size), -1 / (K - size)) if estimator == "total" else (1.0, -(K - 1) / size)
    none_mean = a * total + b * shown_mean
    none_second = (a * total) ** 2 + 2 * a * b * total * shown_mean + b**2 * shown_second
    r = size / K
    expectation = r * mean + (1 - r) * float(posterior @ none_mean)
    return r * second + (1 - r) * float(posterior @ none_second) - expectation**2


# -- the bound ---------------------------------------------------------------------------------------------------------


def lemma_bounds(
    *,
    num_classes: int,
    size: int,
    p_max: float,
    lipschitz: float,
    rademacher: float,
    loss_max: float,
    n: int,
    delta: float,
) -> tuple[float, float]:
    """Lemma 3.3: how far the answered and the None part may be from their expectations, each with probability
    1 - delta/2.

    Args:
        num_classes: K.
        size: l.
        p_max: p*, an upper bound of P(s).
        lipschitz: L_f.
        rademacher: R_N(F).
        loss_max: phi, an upper bound of the loss.
        n: N.
        delta: the probability that a bound fails.
    """
    _check_size(num_classes, size)
    if n < 1 or not 0 < delta < 1:
        raise InputError(f"n and delta: expected n >= 1 and 0 < delta < 1, got {n} and {delta}")
    deviation = loss_max * math.sqrt(2 * math.log(4 / delta) / n)
    answered = p_max * (2 * lipschitz * rademacher + deviation)
    return answered, (num_classes - size) * answered


def excess_risk_bound(
    *,
    num_classes: int,
    size: int,
    p_max: float,
    lipschitz: float,
    rademacher: float,
    loss_max: float,
    n: int,
    delta: float,
) -> float:
    """Theorem 3.4: R(f^) - R(f*) <= twice the sum of the two parts of Lemma 3.3, which is O(1/sqrt N).

    R is the paper's risk, which is a smoothed one (`paper_smoothing`), not the ordinary risk. The arguments are those
    of `lemma_bounds`.
    """
    answered, none = lemma_bounds(
        num_classes=num_classes,
        size=size,
        p_max=p_max,
        lipschitz=lipschitz,
        rademacher=rademacher,
        loss_max=loss_max,
        n=n,
        delta=delta,
    )
    return 2 * (answered + none)


# -- information and cost ----------------------------------------------------------------------------------------------


def information(num_classes: int, size: int) -> float:
    """Bits in the answer to a shortlist of l classes under a uniform posterior.

    It is (l/K) log2 K + (1 - l/K) log2(K/(K - l)).

    >>> round(information(77, 8), 2)
    0.79
    """
    _check_size(num_classes, size)
    K, r = num_classes, size / num_classes
    return r * math.log2(K) + (0.0 if size == K else (1 - r) * math.log2(K / (K - size)))


def information_of(p: ArrayLike, shortlist: ArrayLike) -> float:
    """Bits in the answer to a given shortlist under the posterior p: the entropy of the answer."""
    posterior = np.asarray(p, np.float64)
    shown = posterior[np.asarray(shortlist, np.int64)]
    cells = np.append(shown, max(0.0, 1 - shown.sum()))
    cells = cells[cells > 0]
    return float(-(cells * np.log2(cells)).sum())


def expected_reads(num_classes: int, size: int) -> float:
    """Names that people look at if they stop at the right one: (l + 1)/2 on average if it is listed, else l."""
    _check_size(num_classes, size)
    r = size / num_classes
    return r * (size + 1) / 2 + (1 - r) * size


def _check_size(num_classes: int, size: int) -> None:
    if num_classes < 2 or not 1 <= size <= num_classes:
        raise InputError(f"size: expected 1 <= size <= {num_classes} classes (at least 2), got {size}")

"""Which items to ask about next. Needs numpy only.

An order reduces the posterior of each open item to one number and ranks the items by it, so the posteriors of a million
items are never in memory at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import unknown_name

Posterior = NDArray[np.floating]
Scores = NDArray[np.floating]


@dataclass(frozen=True)
class Order:
    """How open items are ranked."""

    rank: Callable[[Scores, np.random.Generator], NDArray[np.int64]]
    """From the (N,) scores to the positions of the items, the one to ask about first in front."""
    score: Callable[[Posterior], Scores] | None
    """From (B, K) posteriors to (B,) scores; None if beliefs do not matter."""


def sureness(posterior: Posterior) -> Scores:
    """(B,) max_y p(y)."""
    top: Scores = posterior.max(axis=1)
    return top


def expected_rank(posterior: Posterior) -> NDArray[np.float64]:
    """(B,) the expected rank of the right class, sum_r r p_(r) with p_(1) >= p_(2) >= ...

    So many names are read if classes are shown one by one, the most likely first.
    """
    ranked = -np.sort(-posterior.astype(np.float64), axis=1)
    ranks: NDArray[np.float64] = ranked @ np.arange(1, posterior.shape[1] + 1, dtype=np.float64)
    return ranks


def _ascending(scores: Scores, rng: np.random.Generator) -> NDArray[np.int64]:
    """The lowest score first, equals in random order."""
    shuffled = rng.permutation(len(scores))
    return shuffled[np.argsort(scores[shuffled], kind="stable")]


def _shuffled(scores: Scores, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.permutation(len(scores))


def _in_turns(scores: Scores, rng: np.random.Generator) -> NDArray[np.int64]:
    """By turns the lowest score that is left, and a random item."""
    turns = np.column_stack([_ascending(scores, rng), _shuffled(scores, rng)]).ravel()
    _, first = np.unique(turns, return_index=True)
    return turns[np.sort(first)]


ORDERS: dict[str, Order] = {
    "mixed": Order(_in_turns, sureness),
    "random": Order(_shuffled, None),
    "savings": Order(_ascending, expected_rank),
    "uncertainty": Order(_ascending, sureness),
}
"""mixed: every second item is the least certain one, the others are random, so common items are not forgotten. random:
the only order under which answered items are a fair sample. savings: first the item with the lowest `expected_rank`, on
which the model saves most reads. uncertainty: first the item whose likeliest class is least likely."""


DIVERSITY = "diversity"
"""The order that does not rank beliefs: each batch is the `representatives` of the items still open."""


def check_order(name: str) -> None:
    """Raise an InputError if there is no order of this name."""
    if name not in ORDERS and name != DIVERSITY:
        raise unknown_name("order of items", name, (*ORDERS, DIVERSITY))


def representatives(x: Any, count: int, rng: np.random.Generator, *, rounds: int = 10) -> NDArray[np.int64]:
    """The items nearest to the centres of `count` clusters (k-means): diverse and typical, good ones to start with.

    At most 20,000 items, drawn at random, are clustered.

    Args:
        x: (N, D) float32, dense or scipy CSR.
        count: the number of clusters; fewer items come back if two centres have the same nearest item.
        rng: draws the items and the first centres.
        rounds: rounds of Lloyd's algorithm.
    """
    n = x.shape[0]
    rows = np.sort(rng.permutation(n)[:20_000])
    if count >= len(rows):
        return rows
    sample = x[rows]
    squares = _squares(sample)
    centres = _dense(sample[np.sort(rng.permutation(len(rows))[:count])])
    for _ in range(rounds):
        distance = _distances(sample, centres, squares)
        nearest = distance.argmin(axis=1)
        sizes = np.bincount(nearest, minlength=count)
        members = np.zeros((count, len(rows)), np.float32)
        members[nearest, np.arange(len(rows))] = 1
        sums = np.asarray((sample.T @ members.T).T, np.float32)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
        # an empty cluster moves to the item farthest from its centre
        lonely = np.nonzero(sizes == 0)[0]
        if len(lonely):
            far = np.argsort(-distance.min(axis=1))[: len(lonely)]
            centres[lonely] = _dense(sample[far])
    return np.unique(rows[_distances(sample, centres, squares).argmin(axis=0)])


def _distances(x: Any, centres: NDArray[np.float32], squares: NDArray[np.float32]) -> NDArray[np.float32]:
    cross: NDArray[np.float32] = np.asarray(x @ centres.T, np.float32)
    distance: NDArray[np.float32] = squares[:, None] - 2 * cross + np.square(centres).sum(axis=1)
    return distance


def _squares(x: Any) -> NDArray[np.float32]:
    squared = x.multiply(x) if hasattr(x, "multiply") else np.square(x)
    return np.asarray(squared.sum(axis=1), np.float32).ravel()


def _dense(x: Any) -> NDArray[np.float32]:
    return np.array(x.toarray() if hasattr(x, "toarray") else x, np.float32)


def class_turns(likeliest: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(B,) the turn of each item, if classes take turns until all have equally many answers; the lowest turn is first.

    The n-th item (n = 0, 1, ...) that is held to be of class k has turn n + (answers with class k so far).

    Args:
        likeliest: (B,) the class that each item is held to be of.
        counts: (K,) the number of items that were answered with each class.

    >>> class_turns(np.array([0, 0, 1, 1, 1]), np.array([3, 0])).tolist()
    [3, 4, 0, 1, 2]
    """
    order = np.argsort(likeliest, kind="stable")
    ranked = likeliest[order]
    turns = np.empty(len(order), np.int64)
    turns[order] = np.arange(len(order)) - np.searchsorted(ranked, ranked) + counts[ranked]
    return turns

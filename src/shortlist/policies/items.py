"""Which items to ask next. Needs numpy only.

An order looks at one number of each open item's posterior and ranks the items by these, the most worth asking first:
the posteriors of a million items need not be there at once.
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
    """From the (N,) scores to positions, the most worth asking first."""
    score: Callable[[Posterior], Scores] | None
    """From (B, K) posteriors to (B,) scores; none: it does not matter what is believed."""


def sureness(posterior: Posterior) -> Scores:
    """(B,) how likely the likeliest class is."""
    top: Scores = posterior.max(axis=1)
    return top


def expected_rank(posterior: Posterior) -> NDArray[np.float64]:
    """(B,) reads until the right class is shown when classes are shown one by one, most likely first."""
    ranked = -np.sort(-posterior.astype(np.float64), axis=1)
    ranks: NDArray[np.float64] = ranked @ np.arange(1, posterior.shape[1] + 1, dtype=np.float64)
    return ranks


def _ascending(scores: Scores, rng: np.random.Generator) -> NDArray[np.int64]:
    """By score, equals at random."""
    shuffled = rng.permutation(len(scores))
    return shuffled[np.argsort(scores[shuffled], kind="stable")]


def _shuffled(scores: Scores, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.permutation(len(scores))


def _in_turns(scores: Scores, rng: np.random.Generator) -> NDArray[np.int64]:
    """Half by score, half at random."""
    turns = np.column_stack([_ascending(scores, rng), _shuffled(scores, rng)]).ravel()
    _, first = np.unique(turns, return_index=True)
    return turns[np.sort(first)]


ORDERS: dict[str, Order] = {
    "mixed": Order(_in_turns, sureness),
    "random": Order(_shuffled, None),
    "savings": Order(_ascending, expected_rank),
    "uncertainty": Order(_ascending, sureness),
}
"""mixed: what is hard, without forgetting what is common. random: the only order under which answered items are a fair
sample. savings: the item first for which asking in the order of the model saves most reads against a full list.
uncertainty: the item whose likeliest class is least likely first."""


DIVERSITY = "diversity"
"""Not a function of beliefs: each batch is the `representatives` of the items still open."""


def check_order(name: str) -> None:
    """Raise an InputError for a name that is no order."""
    if name not in ORDERS and name != DIVERSITY:
        raise unknown_name("order of items", name, (*ORDERS, DIVERSITY))


def representatives(x: Any, count: int, rng: np.random.Generator, *, rounds: int = 10) -> NDArray[np.int64]:
    """The items nearest to the centres of `count` clusters (k-means): diverse and typical, to be asked first.

    Clustered on at most 20,000 items.

    Args:
        x: (N, D) float32, dense or scipy CSR.
        count: how many; fewer come back where clusters share an item.
        rng: decides the first centres.
        rounds: of Lloyd's algorithm.
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
        # an empty cluster moves to the item that is worst served
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
    """(B,) whose turn it is, if classes take turns until each has as many answers as the others; the lowest first.

    Args:
        likeliest: (B,) the class that each item is held to be of.
        counts: (K,) how many items were answered with each class.

    >>> class_turns(np.array([0, 0, 1, 1, 1]), np.array([3, 0])).tolist()
    [3, 4, 0, 1, 2]
    """
    order = np.argsort(likeliest, kind="stable")
    ranked = likeliest[order]
    turns = np.empty(len(order), np.int64)
    turns[order] = np.arange(len(order)) - np.searchsorted(ranked, ranked) + counts[ranked]
    return turns

"""Which items to ask next. Needs numpy only.

An order is a function (posterior of the open items, generator) -> positions, the most worth asking first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import unknown_name

Posterior = NDArray[np.floating]
Order = Callable[[Posterior, np.random.Generator], NDArray[np.int64]]


def random_order(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.int64]:
    """Any item as soon as any other: the only order under which answered items are a fair sample."""
    return rng.permutation(len(posterior))


def uncertainty_order(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.int64]:
    """The item whose likeliest class is least likely first."""
    return _ascending(posterior.max(axis=1), rng)


def savings_order(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.int64]:
    """The item first for which asking in the order of the model saves most reads against a full list."""
    return _ascending(expected_rank(posterior), rng)


def mixed_order(posterior: Posterior, rng: np.random.Generator) -> NDArray[np.int64]:
    """Half by uncertainty, half at random, in turns: what is hard, without forgetting what is common."""
    hard, any_item = uncertainty_order(posterior, rng), random_order(posterior, rng)
    turns = np.column_stack([hard, any_item]).ravel()
    _, first = np.unique(turns, return_index=True)
    return turns[np.sort(first)]


def expected_rank(posterior: Posterior) -> NDArray[np.float64]:
    """(B,) reads until the right class is shown when classes are shown one by one, most likely first."""
    ranked = -np.sort(-posterior.astype(np.float64), axis=1)
    ranks: NDArray[np.float64] = ranked @ np.arange(1, posterior.shape[1] + 1, dtype=np.float64)
    return ranks


ORDERS: dict[str, Order] = {
    "mixed": mixed_order,
    "random": random_order,
    "savings": savings_order,
    "uncertainty": uncertainty_order,
}


DIVERSITY = "diversity"
"""Not a function of beliefs: each batch is the `representatives` of the items still open."""


def get_order(name: str) -> Order:
    """The order of that name."""
    check_order(name)
    return ORDERS[name]


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


def _ascending(score: NDArray[np.floating], rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions by score, equals at random."""
    shuffled = rng.permutation(len(score))
    return shuffled[np.argsort(score[shuffled], kind="stable")]

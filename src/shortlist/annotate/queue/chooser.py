"""The seam to the policies: what the queue asks when it needs a shortlist for an item."""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shortlist.errors import InputError

MOST_HELD = 1000
"""As many as the API lets somebody ask for, and more."""


@dataclass(frozen=True)
class Choice:
    """A shortlist in the order to be shown, and how likely each of its classes was to be on it."""

    shortlist: tuple[int, ...]
    probabilities: tuple[float, ...]
    policy: str
    policy_version: str


class Front:
    """The items that a policy wants asked next, the most wanted first. In memory only: order is not worth a commit."""

    def __init__(self, items: Sequence[int] = ()) -> None:
        self._items = list(items)
        self._lock = threading.Lock()

    def head(self, start: int, count: int) -> list[int]:
        """Some of the item ids, from place `start` on."""
        with self._lock:
            return self._items[start : start + count]

    def drop(self, items: Collection[int], within: int) -> None:
        """Take items out that are among the first `within`."""
        with self._lock:
            self._items[:within] = [item for item in self._items[:within] if item not in items]

    def put(self, item: int) -> None:
        """Ask this one before all others."""
        with self._lock:
            self._items.insert(0, item)


class Chooser(Protocol):
    """A policy as the queue sees it. It is called inside a transaction, so it must answer at once."""

    @property
    def front(self) -> Front:
        """What to ask before all other items; empty: items come by their rank."""

    @property
    def most_held(self) -> int:
        """How many questions somebody may hold: a question in hand does not learn from the others' answers."""

    def choose(self, item: str, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """The shortlist for `item` without the classes `refused` before; None: do not ask this item any more."""

    def asks_again(self, item: str, num_classes: int, refused: Sequence[int]) -> bool:
        """Whether the item, answered None with `refused` shown so far, is asked again with other classes."""


class UniformChooser:
    """The paper's mechanism: every list of `size` classes is as likely as any other, and an item is asked once.

    >>> choice = UniformChooser(2).choose("a", num_classes=4, refused=[], seed=7)
    >>> len(choice.shortlist), choice.probabilities
    (2, (0.5, 0.5))
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"size {size}: a shortlist has at least one class")
        self.size = size
        self.front, self.most_held = Front(), MOST_HELD

    def choose(self, item: str, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """Drawn from a generator of its own, so a question's seed gives its shortlist again on every machine."""
        left = np.delete(np.arange(num_classes), np.asarray(refused, dtype=np.int64))
        if not len(left):
            return None
        size = min(self.size, len(left))
        drawn = left[np.random.Generator(np.random.PCG64(seed)).choice(len(left), size=size, replace=False)]
        probability = size / len(left)
        return Choice(tuple(int(k) for k in drawn), (probability,) * size, "uniform", "1")

    def asks_again(self, item: str, num_classes: int, refused: Sequence[int]) -> bool:
        """Never: under the paper's mechanism a None is an answer like any other."""
        return False

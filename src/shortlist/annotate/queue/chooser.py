"""The seam to the policies: what the queue asks when it needs a shortlist for an item."""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError

MOST_HELD = 1000
"""No limit: more than the API lets anybody ask for."""


@dataclass(frozen=True)
class Choice:
    """A shortlist in the order shown, and the probability (`inclusion`) with which each class was on it."""

    shortlist: tuple[int, ...]
    inclusion: tuple[float, ...]
    policy: str
    policy_version: str
    way: str | None = None
    """Where ways to ask are compared (`ways`), which one this is."""
    pinned: int | None = None
    """The class that is last on the list because it is on every one (`pinned`)."""


class Front:
    """The items that a policy wants asked next, the most wanted first. In memory only: not worth a commit."""

    def __init__(self, items: Sequence[int] = ()) -> None:
        self._items = list(items)
        self._lock = threading.Lock()

    def head(self, start: int, count: int) -> list[int]:
        """Up to `count` item ids from position `start` on."""
        with self._lock:
            return self._items[start : start + count]

    def drop(self, items: Collection[int], within: int) -> None:
        """Remove those of `items` that are among the first `within`."""
        with self._lock:
            self._items[:within] = [item for item in self._items[:within] if item not in items]

    def put(self, item: int) -> None:
        """Ask about this item before all others."""
        with self._lock:
            self._items.insert(0, item)


class Chooser(Protocol):
    """A policy as the queue sees it. It is called within a transaction, so it must return at once."""

    @property
    def front(self) -> Front:
        """The items to ask about before all others; where it is empty, items come by rank."""

    @property
    def most_held(self) -> int:
        """How many questions one person may hold: a question in hand does not profit from others' answers."""

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """The shortlist for the item of this id, without the classes `refused` before; None closes the item."""

    def beliefs(self, item: int, num_classes: int, seed: int) -> NDArray[np.floating] | None:
        """(K,) how likely each class is for the item, to rank what somebody searches for; None: nothing is known.

        For an item that the policy does not know, such as a gold one, the beliefs about another item, drawn by `seed`:
        an order unlike that of other items would give it away.
        """

    def asks_again(self, num_classes: int, refused: Sequence[int]) -> bool:
        """Whether to ask again, with other classes, after None to all those `refused` so far."""


class UniformChooser:
    """The paper's mechanism: every list of `size` classes is as likely as any other, and each slot is asked once.

    >>> choice = UniformChooser(2).choose(1, num_classes=4, refused=[], seed=7)
    >>> len(choice.shortlist), choice.inclusion
    (2, (0.5, 0.5))
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"size {size}: a shortlist has at least one class")
        self.size = size
        self.front, self.most_held = Front(), MOST_HELD

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """Drawn from a generator of its own: the seed of a question gives its shortlist again on any machine."""
        left = np.delete(np.arange(num_classes), np.asarray(refused, dtype=np.int64))
        if not len(left):
            return None
        size = min(self.size, len(left))
        drawn = left[np.random.Generator(np.random.PCG64(seed)).choice(len(left), size=size, replace=False)]
        return Choice(tuple(int(k) for k in drawn), (size / len(left),) * size, "uniform", "1")

    def beliefs(self, item: int, num_classes: int, seed: int) -> NDArray[np.floating] | None:
        """None: nobody learns."""
        return None

    def asks_again(self, num_classes: int, refused: Sequence[int]) -> bool:
        """Never: under the paper's mechanism None is an answer like any other."""
        return False


class Around:
    """Wraps a chooser: `choose` is for subclasses, the rest is left to the wrapped one."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser

    @property
    def front(self) -> Front:
        """The wrapped chooser's."""
        return self.chooser.front

    @property
    def most_held(self) -> int:
        """The wrapped chooser's."""
        return self.chooser.most_held

    def beliefs(self, item: int, num_classes: int, seed: int) -> NDArray[np.floating] | None:
        """The wrapped chooser's."""
        return self.chooser.beliefs(item, num_classes, seed)

    def asks_again(self, num_classes: int, refused: Sequence[int]) -> bool:
        """As the wrapped chooser does."""
        return self.chooser.asks_again(num_classes, refused)


class Current(Around):
    """The chooser in use. Another one is put in its place when the settings change, even while questions are asked."""

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """The list of the chooser in use."""
        return self.chooser.choose(item, num_classes, refused, seed)

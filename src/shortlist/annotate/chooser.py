"""The seam to the policies: what the queue asks when it needs a shortlist for an item."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shortlist.errors import InputError


@dataclass(frozen=True)
class Choice:
    """A shortlist in the order to be shown, and how likely each of its classes was to be on it."""

    shortlist: tuple[int, ...]
    probabilities: tuple[float, ...]
    policy: str
    policy_version: str


class Chooser(Protocol):
    """A policy as the queue sees it. It is called inside a transaction, so it must answer at once."""

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

"""Three ways to ask, compared: the full list of classes, a search among them, a shortlist.

Which way a question is asked is drawn anew for each item that somebody is given, so the ways differ in nothing else:
neither in the items nor in the people.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shortlist.annotate.queue.chooser import Choice, Chooser, Front

FULL, SEARCH, SHORTLIST = "full", "search", "shortlist"
WAYS = (FULL, SEARCH, SHORTLIST)
MOST_LISTED = 200
"""Classes on a full list at most: nobody compares longer ones."""


class Comparing:
    """Asks in one of the three ways, a third each; shortlists, and when to stop, are those of another chooser."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser

    @property
    def front(self) -> Front:
        """As the other's."""
        return self.chooser.front

    @property
    def most_held(self) -> int:
        """As the other's."""
        return self.chooser.most_held

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """All classes in their order, none at all, or the other's shortlist; after a None it stays at shortlists."""
        choice = self.chooser.choose(item, num_classes, refused, seed)
        if choice is None:
            return None
        # high bits: the low ones say whether the question is about a gold item
        way = SHORTLIST if refused else WAYS[(seed >> 20) % len(WAYS)]
        if way == SHORTLIST:
            return replace(choice, way=way)
        shown = tuple(range(num_classes)) if way == FULL else ()
        return Choice(shown, (1.0,) * len(shown), way, "1", way)

    def beliefs(self, item: int, num_classes: int, seed: int) -> NDArray[np.floating] | None:
        """As the other's."""
        return self.chooser.beliefs(item, num_classes, seed)

    def asks_again(self, num_classes: int, refused: Sequence[int]) -> bool:
        """As the other does."""
        return self.chooser.asks_again(num_classes, refused)

"""A class on every list, such as "out of scope": picking it says "none of all classes", and None "not on this list"."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shortlist.annotate.queue.chooser import Choice, Chooser, Front


class Pinned:
    """Lists of another chooser, with one class more at their end, until it was refused: then it is not asked again."""

    def __init__(self, chooser: Chooser, pinned: int) -> None:
        self.chooser, self.pinned = chooser, pinned

    @property
    def front(self) -> Front:
        """As the other's."""
        return self.chooser.front

    @property
    def most_held(self) -> int:
        """As the other's."""
        return self.chooser.most_held

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """The other's list of the other classes, which it draws as if this one did not exist, then this one."""
        own = self.pinned
        if own in refused:
            return self.chooser.choose(item, num_classes, refused, seed)
        # it may have been pinned when all the others were refused already: then it is still to be asked about
        choice = self.chooser.choose(item, num_classes, [*refused, own], seed)
        choice = choice or self.chooser.choose(item, num_classes, refused, seed)
        if choice is None or own in choice.shortlist:
            return choice
        return replace(choice, shortlist=(*choice.shortlist, own), inclusion=(*choice.inclusion, 1.0), pinned=own)

    def beliefs(self, item: int, num_classes: int, seed: int) -> NDArray[np.floating] | None:
        """As the other's."""
        return self.chooser.beliefs(item, num_classes, seed)

    def asks_again(self, num_classes: int, refused: Sequence[int]) -> bool:
        """As the other does."""
        return self.chooser.asks_again(num_classes, refused)

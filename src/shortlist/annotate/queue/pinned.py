"""A class on every list, such as "out of scope": picking it says "none of all classes", and None "not on this list"."""

from collections.abc import Sequence
from dataclasses import replace

from shortlist.annotate.queue.chooser import Around, Choice, Chooser


class Pinned(Around):
    """Lists of another chooser, with one class more at their end, until it was refused: then it is not asked again."""

    def __init__(self, chooser: Chooser, pinned: int) -> None:
        super().__init__(chooser)
        self.pinned = pinned

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

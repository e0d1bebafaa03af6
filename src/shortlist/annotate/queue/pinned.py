"""A class on every list, such as "out of scope": picking it says "none of all classes", and None "not on this list"."""

from collections.abc import Sequence
from dataclasses import replace

from shortlist.annotate.queue.chooser import Around, Choice, Chooser


class Pinned(Around):
    """The lists of another chooser with one more class at their end, until that class was refused."""

    def __init__(self, chooser: Chooser, pinned: int) -> None:
        super().__init__(chooser)
        self.pinned = pinned

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """The wrapped chooser's list, drawn as if the pinned class did not exist, then the pinned class."""
        own = self.pinned
        if own in refused:
            return self.chooser.choose(item, num_classes, refused, seed)
        # it may have been pinned when all the others were refused already: then it is still to be asked about
        choice = self.chooser.choose(item, num_classes, [*refused, own], seed)
        choice = choice or self.chooser.choose(item, num_classes, refused, seed)
        if choice is None or own in choice.shortlist:
            return choice
        return replace(choice, shortlist=(*choice.shortlist, own), inclusion=(*choice.inclusion, 1.0), pinned=own)

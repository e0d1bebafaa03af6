"""Three ways to ask, compared: the full list of classes, a search among them, a shortlist.

Which way a question is asked is drawn anew for each item that somebody is given, so the ways differ in nothing else:
neither in the items nor in the people.
"""

from collections.abc import Sequence
from dataclasses import replace

from shortlist.annotate.queue.chooser import Around, Choice

FULL, SEARCH, SHORTLIST = "full", "search", "shortlist"
WAYS = (FULL, SEARCH, SHORTLIST)
MOST_LISTED = 200
"""Classes on a full list at most: nobody compares longer ones."""


class Comparing(Around):
    """Asks in one of the three ways, a third each; shortlists, and when to stop, are those of another chooser."""

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """All classes in their order, none at all, or the wrapped chooser's shortlist; after a None, always that."""
        choice = self.chooser.choose(item, num_classes, refused, seed)
        if choice is None:
            return None
        # high bits: the low ones say whether the question is about a gold item
        way = SHORTLIST if refused else WAYS[(seed >> 20) % len(WAYS)]
        if way == SHORTLIST:
            return replace(choice, way=way)
        shown = tuple(range(num_classes)) if way == FULL else ()
        return Choice(shown, (1.0,) * len(shown), way, "1", way)

"""Shortlists for gold items, whose class is known: they measure annotators and are not learned from."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shortlist.annotate.queue.chooser import Choice
from shortlist.annotate.queue.ways import SHORTLIST

HOLDS = 0.5


def gold_like(choice: Choice, truth: int, num_classes: int, ended: Sequence[int], seed: int) -> Choice:
    """A gold question in place of another: of the same length and way, so that nobody can tell them apart."""
    if choice.way not in (None, SHORTLIST):
        return replace(choice, policy="gold")  # all classes or none, whatever the item is
    if choice.pinned is None:
        return replace(choose_gold(truth, len(choice.shortlist), num_classes, seed, ended), way=choice.way)
    own, size = choice.pinned, len(choice.shortlist) - 1
    if truth == own:  # it is there at any rate: the others are any
        return replace(choice, policy="gold", policy_version="1")
    drawn = choose_gold(truth, size, num_classes, seed, [*ended, own])
    shown, chances = (*drawn.shortlist, own), (*drawn.inclusion, 1.0)
    return replace(drawn, shortlist=shown, inclusion=chances, way=choice.way, pinned=own)


def choose_gold(truth: int, size: int, num_classes: int, seed: int, ended: Sequence[int] = ()) -> Choice:
    """A list that holds the right class half of the time (more often where a uniform list of this size does).

    Classes that have `ended`, or were refused, are on no list.

    A miss can be seen only where the class is shown, and a uniform list of 5 of 150 classes shows it once in 30 times.
    All lists that hold it are equally likely, and so are all that do not. Rates counted on each kind separately, as
    `stats.gold_quality` and `policies.noise` count them, are therefore those of uniform lists. The two kinds together
    are not uniform, since the list depends on the class: nothing is trained on these answers (`formats.answers`).

    >>> choice = choose_gold(truth=2, size=2, num_classes=8, seed=7)
    >>> len(choice.shortlist), choice.policy
    (2, 'gold')
    """
    others = np.delete(np.arange(num_classes), [truth, *ended])
    holds = 0.0 if truth in ended else max(HOLDS, size / (len(others) + 1))
    rng = np.random.Generator(np.random.PCG64(seed))
    if rng.random() < holds:
        drawn = rng.permutation([truth, *rng.choice(others, size - 1, replace=False)])
    else:
        drawn = rng.choice(others, size, replace=False)
    other = (size - holds) / max(len(others), 1)
    shortlist = tuple(int(k) for k in drawn)
    return Choice(shortlist, tuple(holds if k == truth else other for k in shortlist), "gold", "1")

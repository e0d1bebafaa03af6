"""Model-chosen shortlists in the running app: the server's side. Needs numpy only.

A trainer in a process of its own (`trainer`) reads the answers, trains and publishes what it has learned
(`policies.Snapshot`). A thread of the server (`supervisor`) takes in each new publication; the queue reads the one in
hand and never waits. Before the first one, and for items that it does not know, lists are uniform.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.queue.chooser import MOST_HELD, Choice, Front, UniformChooser
from shortlist.errors import InputError
from shortlist.internal.files import atomic_path
from shortlist.policies import Snapshot, choose_one

SURE = 0.999


@dataclass(frozen=True)
class Loaded:
    """A publication in hand.

    Attributes:
        snapshot: what is believed.
        ids: (N,) the ids of the items, rising: row i of the features is item ids[i].
        worth: (N,) whether the trainer would ask about the item.
        front: the items in the order in which the trainer wants to ask about them.
    """

    snapshot: Snapshot
    ids: NDArray[np.int64]
    worth: NDArray[np.bool_]
    front: Front

    def row(self, item: int) -> int | None:
        """The row of an item; None for one that was added since."""
        row = int(np.searchsorted(self.ids, item))
        return row if row < len(self.ids) and self.ids[row] == item else None


class LiveChooser:
    """Chooses from the publication in hand; `refresh` is called by one thread, the rest by any."""

    def __init__(self, folder: Path, plan: LivePlan) -> None:
        self.folder, self.plan = folder, plan
        self.loaded: Loaded | None = None
        self._uniform = UniformChooser(plan.size)

    @property
    def front(self) -> Front:
        """That of the publication in hand, without what was given out since."""
        return self._uniform.front if self.loaded is None else self.loaded.front

    @property
    def most_held(self) -> int:
        """One at the start, when a list chosen a moment later is a better one."""
        return 1 if self.loaded is None or self.loaded.snapshot.start else MOST_HELD

    def refresh(self) -> bool:
        """Take in a newer publication; False if there is none."""
        known = -1 if self.loaded is None else self.loaded.snapshot.version
        try:
            snapshot = Snapshot.current(self.folder, known)
            if snapshot is None:
                return False
            ids = read_ids(self.folder, snapshot.num_items)
        except (InputError, OSError, KeyError, TypeError, ValueError):
            return False  # replaced while we read, or damaged: keep the one in hand
        worth = np.zeros(snapshot.num_items, np.bool_)
        worth[snapshot.order] = True
        self.loaded = Loaded(snapshot, ids, worth, Front(ids[snapshot.order].tolist()))
        return True

    def choose(self, item: int, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """The list by what is believed about the item; a uniform one where nothing is known about it.

        The classes refused in this slot are left out even where mistakes are modelled: whoever has just refused one
        would refuse it again, however often they were asked. That it was a mistake is for the others to say.
        """
        loaded = self.loaded
        if not self.plan.mistakes and len(refused) >= num_classes - 1:
            return None  # resolved: it is the class that is left
        row = None if loaded is None else loaded.row(item)
        if loaded is None or row is None or loaded.snapshot.num_classes != num_classes:
            return self._uniform.choose(item, num_classes, refused, seed)
        beliefs = loaded.snapshot.beliefs(row)
        if not loaded.worth[row] and self._settled(beliefs):
            return None
        shortlist, inclusion = choose_one(loaded.snapshot.policy, beliefs, np.asarray(refused, np.int64), seed)
        policy, version = loaded.snapshot.policy.kind, loaded.snapshot.policy_version
        return Choice(tuple(shortlist), tuple(inclusion), policy, version) if shortlist else None

    def beliefs(self, item: int, num_classes: int, seed: int) -> NDArray[np.floating] | None:
        """Those of the publication in hand."""
        loaded = self.loaded
        if loaded is None or loaded.snapshot.num_classes != num_classes:
            return None
        row = loaded.row(item)
        return loaded.snapshot.beliefs(seed % len(loaded.ids) if row is None else row)

    def asks_again(self, num_classes: int, refused: Sequence[int]) -> bool:
        """Until one class is left (or, where mistakes are modelled, until all were refused)."""
        return len(refused) < num_classes - (0 if self.plan.mistakes else 1)

    def _settled(self, beliefs: NDArray[np.float32]) -> bool:
        """Whether an item that the trainer would not ask about may be closed.

        Without modelled mistakes, an item that the trainer takes as answered comes here only because its answer was
        taken back since: it is asked about.
        """
        return self.plan.mistakes or float(beliefs.max()) < SURE


# -- which row is which item -------------------------------------------------------------------------------------------


def write_ids(folder: Path, ids: Sequence[int]) -> None:
    """Store the rising ids of N items before the first publication about N items."""
    with atomic_path(_ids_path(folder, len(ids))) as temporary, temporary.open("wb") as file:
        np.save(file, np.asarray(ids, np.int64))


def read_ids(folder: Path, count: int) -> NDArray[np.int64]:
    """The ids of `count` items, mapped from the disk."""
    ids: NDArray[np.int64] = np.load(_ids_path(folder, count), mmap_mode="r")
    return ids


def _ids_path(folder: Path, count: int) -> Path:
    return folder / f"ids-{count}.npy"

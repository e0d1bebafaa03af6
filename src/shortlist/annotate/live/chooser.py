"""Model-chosen shortlists in the running app: the server's side. Needs numpy only.

A trainer in a process of its own (`live_trainer`) reads the answers, trains and publishes what it believes of every
item (`policies.live`). A thread of the server (`live_steward`) takes each new publication in; the queue reads the one
in hand and never waits. Before the first one, or for an item it does not know, lists are uniform.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.annotate.project.project import Settings
from shortlist.annotate.queue.chooser import MOST_HELD, Choice, Front, UniformChooser
from shortlist.errors import InputError
from shortlist.files import atomic_path
from shortlist.policies import LoopSettings, Mistakes, Policy, Snapshot, choose_one, current_snapshot

FOLDER, HISTORY = "live", "history.jsonl"
PEOPLE = Mistakes(miss=0.05, slip=0.02)
"""Rates that are modelled before any are measured."""
SURE = 0.999
FRESH = 40
"""Under modelled mistakes the model starts anew at each training until so many items a class were asked."""
GROW = 0.05
"""A training is worth so many new answers, as a share of those there are."""


@dataclass(frozen=True)
class LivePlan:
    """What the trainer is told; everything has a default that suits a few thousand to a hundred thousand items.

    Attributes:
        policy: top, adaptive or information.
        size: classes on a list; the longest, for adaptive and information.
        hit: adaptive: the probability that the right class is on the list.
        epsilon: share of uniform lists mixed in.
        floor: the least chance of each class still possible to be shown.
        order: which items come next, as in `policies.items`.
        mistakes: model annotators' mistakes: refused classes are down-weighted, not left out.
        retrain_every: train after at most so many answers.
        retrain_least: and after at least so many, or a twentieth of those there are.
        seconds: train after so long also on fewer answers.
        l2: the penalty on the weights.
        features: so many are made of each item.
        seed: of everything drawn.
        test: labelled data to score on: a name or a path that `shortlist.data.load` takes.
        nice: how far the trainer stands back for others (0 to 19).
    """

    policy: str = "adaptive"
    size: int = 5
    hit: float = 0.8
    epsilon: float = 0.0
    floor: float = 0.0
    order: str = "mixed"
    mistakes: bool = False
    retrain_every: int = 500
    retrain_least: int = 1
    seconds: float = 10.0
    l2: float = 0.1
    features: int = 400
    seed: int = 0
    test: str | None = None
    nice: int = 19

    def __post_init__(self) -> None:
        self.settings()
        if not self.seconds > 0:
            raise InputError(f"seconds {self.seconds!r}: expected a time above 0 between two trainings")
        if self.features < 2:
            raise InputError(f"features {self.features!r}: expected at least 2")
        if not 0 <= self.nice <= 19:
            raise InputError(f"nice {self.nice!r}: expected 0 to 19")

    @classmethod
    def parse(cls, content: dict[str, Any]) -> "LivePlan":
        """From what a project's settings hold."""
        unknown = set(content) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"live: unknown setting {sorted(unknown)[0]!r}")
        try:
            return cls(**content)
        except TypeError as error:
            raise InputError(f"live: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def settings(self) -> LoopSettings:
        """The loop's settings."""
        policy = Policy(
            self.policy,
            size=self.size,
            hit=self.hit,
            max_size=self.size,
            epsilon=self.epsilon,
            floor=self.floor,
            deduce=not self.mistakes,
        )
        return LoopSettings(
            policy=policy,
            order=self.order,
            retrain_every=self.retrain_every,
            retrain_least=self.retrain_least,
            grow=GROW,
            l2=self.l2,
            mistakes=PEOPLE if self.mistakes else Mistakes(),
            learn_mistakes=self.mistakes,
            fresh=FRESH if self.mistakes else 0,
        )


def live_plan(
    settings: Settings, policy: str | None = None, epsilon: float | None = None, test: str | None = None
) -> LivePlan | None:
    """What the project's settings hold, changed by what was said now; None: uniform shortlists, nothing to train.

    Where several people are asked about an item, mistakes are modelled: that is what the others are asked for.
    """
    if test is not None and Path(test).exists():
        test = str(Path(test).resolve())  # the server may be started elsewhere next time
    wanted: dict[str, Any] = {"size": settings.size, "mistakes": settings.overlap > 1, **(settings.live or {})}
    said = {"policy": policy, "epsilon": epsilon, "test": test}
    wanted |= {name: value for name, value in said.items() if value is not None}
    if "policy" not in wanted and (epsilon is not None or test is not None):
        raise InputError("--epsilon and --test belong to model-chosen shortlists: give --policy adaptive")
    if wanted.get("policy", "uniform") == "uniform":
        return None
    return LivePlan.parse(wanted)


@dataclass(frozen=True)
class Loaded:
    """A publication in hand: the snapshot, and which row is which item.

    Attributes:
        snapshot: what is believed.
        keys: (2, N) the sorted keys of the items' names, and their rows.
        ids: (N,) the items' ids in the database.
        worth: (N,) whether the trainer would ask the item.
        front: the items in the order in which the trainer wants them asked.
    """

    snapshot: Snapshot
    keys: NDArray[np.uint64]
    ids: NDArray[np.int64]
    worth: NDArray[np.bool_]
    front: Front

    def row(self, item: str) -> int | None:
        """The row of an item, None for one that was added since."""
        keys, rows = self.keys
        key = item_key(item)
        place = int(np.searchsorted(keys, key))
        return int(rows[place]) if place < len(keys) and keys[place] == key else None


class LiveChooser:
    """Chooses from the publication in hand; `refresh` is called by one thread, the rest by any."""

    def __init__(self, folder: Path, plan: LivePlan) -> None:
        self.folder, self.plan = folder, plan
        self.loaded: Loaded | None = None
        self._uniform = UniformChooser(plan.size)

    @property
    def front(self) -> Front:
        """As the publication in hand has it, less what was handed out since."""
        return self._uniform.front if self.loaded is None else self.loaded.front

    @property
    def most_held(self) -> int:
        """One at the start, where a list chosen a moment later is a better one."""
        return 1 if self.loaded is None or self.loaded.snapshot.start else MOST_HELD

    def refresh(self) -> bool:
        """Take in a newer publication; False where there is none."""
        known = -1 if self.loaded is None else self.loaded.snapshot.version
        try:
            snapshot = current_snapshot(self.folder, known)
            if snapshot is None:
                return False
            keys, ids = read_items(self.folder, len(snapshot.beliefs))
        except (InputError, OSError, KeyError, TypeError, ValueError):
            return False  # swapped away under our hands, or damaged: the one in hand serves on
        worth = np.zeros(len(snapshot.beliefs), np.bool_)
        worth[snapshot.order] = True
        self.loaded = Loaded(snapshot, keys, ids, worth, Front(ids[snapshot.order].tolist()))
        return True

    def choose(self, item: str, num_classes: int, refused: Sequence[int], seed: int) -> Choice | None:
        """The list by what is believed of the item; uniform where nothing is known of it.

        Where mistakes are modelled, too, the classes refused in this slot are left out: who has just said no to one
        says so again, however often they are asked. That it was a mistake is for the item's other voices to say.
        """
        loaded = self.loaded
        if not self.plan.mistakes and len(refused) >= num_classes - 1:
            return None  # resolved: it is the class left
        row = None if loaded is None else loaded.row(item)
        if loaded is None or row is None or loaded.snapshot.beliefs.shape[1] != num_classes:
            return self._uniform.choose(item, num_classes, refused, seed)
        beliefs = loaded.snapshot.beliefs[row].astype(np.float32)
        if not loaded.worth[row] and self._settled(beliefs):
            return None
        shortlist, inclusion = choose_one(loaded.snapshot.policy, beliefs, np.asarray(refused, np.int64), seed)
        policy, version = loaded.snapshot.policy.kind, loaded.snapshot.policy_version
        return Choice(tuple(shortlist), tuple(inclusion), policy, version) if shortlist else None

    def asks_again(self, item: str, num_classes: int, refused: Sequence[int]) -> bool:
        """Until one class is left (or, where mistakes are modelled, until all were refused)."""
        return len(refused) < num_classes - (0 if self.plan.mistakes else 1)

    def _settled(self, beliefs: NDArray[np.float32]) -> bool:
        """Whether an item that the trainer would not ask may go.

        Without modelled mistakes an item that the trainer takes as answered comes here only because the answer was
        taken back since: it is asked.
        """
        return self.plan.mistakes or float(beliefs.max()) < SURE


# -- which row is which item -------------------------------------------------------------------------------------------


def item_key(name: str) -> np.uint64:
    """64 bits of a name's digest: a table of these is a tenth of a dictionary of names, and can stay on the disk."""
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))


def write_items(folder: Path, names: Sequence[str], ids: Sequence[int]) -> None:
    """Store which row is which of N items, before the first publication about N items."""
    keys = np.array([item_key(name) for name in names], np.uint64)
    order = np.argsort(keys)
    tables = {"keys": np.stack([keys[order], order.astype(np.uint64)]), "ids": np.asarray(ids, np.int64)}
    for kind, table in tables.items():
        with atomic_path(folder / f"{kind}-{len(names)}.npy") as temporary, temporary.open("wb") as file:
            np.save(file, table)


def read_items(folder: Path, count: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys and the ids of `count` items, mapped from the disk."""
    keys, ids = (np.load(folder / f"{kind}-{count}.npy", mmap_mode="r") for kind in ("keys", "ids"))
    return keys, ids

"""The loop beside a running web app: one process trains and publishes, the server reads and answers at once.

The trainer owns a `Loop`, feeds it new answers, retrains and writes a snapshot: what is believed of every item and in
which order to ask them. A snapshot is a folder of plain arrays swapped in by one rename, so the server reads the old
one or the new one, never a mixture, and never waits. After a power cut it may be damaged; it holds nothing that a
training does not make again. Needs numpy only (the server has no torch).
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.policies.choose import Policy
from shortlist.policies.linear import chunks
from shortlist.policies.loop import Loop
from shortlist.policies.noise import Mistakes
from shortlist.policies.time_model import TimeModel

CURRENT = "current.json"


@dataclass(frozen=True)
class Snapshot:
    """What the server needs to choose a question.

    Attributes:
        version: counts the trainings; stored with every question.
        beliefs: (N, K) float16, mapped from the disk; without the item's own answers under answers taken as right.
        order: (M,) the rows still worth asking, the most worth first.
        policy: how lists are chosen.
        start: typical items are still open: little is known, and each answer changes much.
        mistakes: the rates that are modelled.
    """

    version: int
    beliefs: NDArray[np.float16]
    order: NDArray[np.int64]
    policy: Policy
    start: bool
    mistakes: Mistakes

    @property
    def policy_version(self) -> str:
        """A short text that says which policy chose a list, and after which training."""
        return f"{self.policy.kind}-{self.version}"

    @staticmethod
    def publish(loop: Loop, folder: str | os.PathLike[str], *, keep: int = 2) -> Path:
        """Write a snapshot of the loop and make it the current one; older ones beyond `keep` are removed."""
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        name = f"v{loop.version:08d}-{os.getpid()}"
        target = root / name
        # a trainer killed here before may have had the same number (in a container): whoever reads that keeps its files
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        n, K = loop.state.num_items, loop.state.num_classes
        table = np.lib.format.open_memmap(target / "beliefs.npy", mode="w+", dtype=np.float16, shape=(n, K))
        for part in chunks(n, K):
            table[part] = loop.beliefs(np.arange(part.start, part.stop)).astype(np.float16)
        del table  # unmapped, not forced to the disk: that would hold up whoever else waits for it, such as a database
        order, start = loop.hand_out()
        np.save(target / "order.npy", order)
        content = {"snapshot": name, "version": loop.version, "policy": asdict(loop.settings.policy), "start": start}
        content |= {"mistakes": asdict(loop.state.mistakes)}
        temporary = root / f".{CURRENT}.{os.getpid()}"
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        temporary.replace(root / CURRENT)
        for old in sorted(path for path in root.glob("v*-*") if path.is_dir())[:-keep]:
            shutil.rmtree(old, ignore_errors=True)
        return target

    @classmethod
    def current(cls, folder: str | os.PathLike[str], seen: int = -1) -> Self | None:
        """The current snapshot, or None where there is none, or none newer than version `seen`."""
        root = Path(folder)
        try:
            content = json.loads((root / CURRENT).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{root / CURRENT} is damaged: {error}") from error
        if content["version"] <= seen:
            return None
        made = content["policy"]
        policy = Policy(**{**made, "time": TimeModel(**made["time"])})
        where = root / content["snapshot"]
        beliefs = np.load(where / "beliefs.npy", mmap_mode="r")
        order, mistakes = np.load(where / "order.npy"), Mistakes(**content["mistakes"])
        return cls(content["version"], beliefs, order, policy, content["start"], mistakes)

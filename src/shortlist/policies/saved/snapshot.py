"""The loop beside a running web app: one process trains and publishes snapshots, the server reads them.

The trainer owns a `Loop`, feeds it new answers, retrains and writes a snapshot: the model, the answers that it has
learned from, and the order in which to ask. The items' features lie beside it and are written once. The server computes
what is believed about an item when it asks about it, from one row of the features: a table for a million items and a
thousand classes would be 2 GB to keep and to write at every training.

A snapshot is a folder of plain arrays that is swapped in by one rename. So the server reads the old one or the new one,
never a mixture, and never waits. A power cut may damage it, but the next training makes everything in it again. Needs
numpy only (the server has no torch).
"""

import json
import os
import secrets
import shutil
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.policies.answers import Answers
from shortlist.policies.beliefs import background, posterior, softmax
from shortlist.policies.choose import Policy
from shortlist.policies.experts import LinearExpert, weighted_scores
from shortlist.policies.linear import Linear, chunks
from shortlist.policies.loop import Loop
from shortlist.policies.noise import Mistakes
from shortlist.policies.time_model import TimeModel

CURRENT = "current.json"
FEATURES = "features-*.npy"
ANSWERS = ("rest", "offsets", "classes", "values")


class RowFile:
    """An array on disk of which single rows are read; a mapped array would in time count as the server's memory."""

    def __init__(self, path: Path) -> None:
        mapped = np.load(path, mmap_mode="r")
        if mapped.ndim != 2 or not mapped.flags.c_contiguous:
            raise InputError(f"{path}: expected rows of numbers")
        self.shape, self._type, self._start = mapped.shape, mapped.dtype, int(mapped.offset)
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def row(self, place: int) -> NDArray[Any]:
        """(D,) one row."""
        size = self.shape[1] * self._type.itemsize
        return np.frombuffer(os.pread(self._file, size, self._start + place * size), self._type)


@dataclass(frozen=True)
class Snapshot:
    """What the server needs to choose a question.

    Attributes:
        version: the number of trainings so far; stored with every question.
        order: (M,) the rows still worth a question, in the order in which to ask.
        policy: how lists are chosen.
        start: whether typical items are still open: little is known, and each answer changes much.
        mistakes: the rates of mistakes that are modelled.
        model: the model divided by its temperature, with the linear experts added.
        features: the features of the N items.
        scores: (N, K) the weighted scores of the other experts, if there are any.
        answers: the answers that the model has learned from.
        log_model: (N,) `Loop.log_model`.
        share: `Loop.share`.
        rare: (K,) the background.
    """

    version: int
    order: NDArray[np.int64]
    policy: Policy
    start: bool
    mistakes: Mistakes
    model: Linear
    features: RowFile
    scores: RowFile | None
    answers: Answers
    log_model: NDArray[np.float64]
    share: float
    rare: NDArray[np.float32]

    @property
    def policy_version(self) -> str:
        """A short text: which policy chose a list, and after which training."""
        return f"{self.policy.kind}-{self.version}"

    @property
    def num_items(self) -> int:
        """N."""
        return int(self.features.shape[0])

    @property
    def num_classes(self) -> int:
        """K."""
        return self.model.num_classes

    def beliefs(self, row: int) -> NDArray[np.float32]:
        """(K,) what is believed about one item, given its answers."""
        logits = self.model.logits(self.features.row(row)[None])
        if self.scores is not None:
            logits += self.scores.row(row)
        own = slice(row, row + 1)
        found = posterior(softmax(logits), self.answers[own], self.log_model[own], self.share, lambda: self.rare)
        one: NDArray[np.float32] = found[0]
        return one

    @staticmethod
    def write_features(x: Any, folder: str | os.PathLike[str]) -> Path:
        """Store the features of all items once, for all snapshots to come; returns the path for `publish`."""
        path = Path(folder) / FEATURES.replace("*", secrets.token_hex(8))
        _write_rows(path, x.shape, lambda part: x[part].toarray() if hasattr(x, "toarray") else x[part])
        return path

    @staticmethod
    def publish(loop: Loop, folder: str | os.PathLike[str], features: Path | None = None) -> Path:
        """Write a snapshot of the loop and make it the current one; of the older ones the last is kept.

        Args:
            loop: the loop.
            folder: where snapshots are kept.
            features: the loop's features in this folder, as `write_features` stored them; stored now if not given.
        """
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        features = features or Snapshot.write_features(loop.x, root)
        name = f"v{loop.version:08d}-{os.getpid()}"
        target = root / name
        # in a container a trainer that was killed may have had the same number; whoever has its files open keeps them
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        order, start = loop.hand_out()
        _write_arrays(target, loop, order)
        content = {"snapshot": name, "version": loop.version, "policy": asdict(loop.settings.policy), "start": start}
        content |= {"mistakes": asdict(loop.state.mistakes), "share": loop.share, "features": features.name}
        temporary = root / f".{CURRENT}.{os.getpid()}"
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        temporary.replace(root / CURRENT)
        others = sorted(path for path in root.glob("v*-*") if path.is_dir() and path != target)
        for old in others[:-1]:  # a server may still read the last
            shutil.rmtree(old, ignore_errors=True)
        for other in root.glob(FEATURES):
            if other != features:
                other.unlink(missing_ok=True)
        return target

    @classmethod
    def current(cls, folder: str | os.PathLike[str], seen: int = -1) -> Self | None:
        """The current snapshot; None if there is none newer than version `seen`."""
        root = Path(folder)
        content = read_current(root)
        if content is None or content["version"] <= seen:
            return None
        made = content["policy"]
        where = root / content["snapshot"]
        rest, offsets, classes, values = (np.load(where / f"{part}.npy", mmap_mode="r") for part in ANSWERS)
        weight, bias = np.load(where / "weight.npy"), np.load(where / "bias.npy")
        return cls(
            version=content["version"],
            order=np.load(where / "order.npy"),
            policy=Policy(**{**made, "time": TimeModel(**made["time"])}),
            start=content["start"],
            mistakes=Mistakes(**content["mistakes"]),
            model=Linear(weight, bias),
            features=RowFile(root / content["features"]),
            scores=RowFile(where / "scores.npy") if (where / "scores.npy").exists() else None,
            answers=Answers(rest, offsets, classes, values, len(bias)),
            log_model=np.load(where / "log_model.npy", mmap_mode="r"),
            share=content["share"],
            rare=np.load(where / "rare.npy"),
        )


def read_current(folder: Path) -> dict[str, Any] | None:
    """The description of the current snapshot; None if there is none."""
    try:
        found: dict[str, Any] = json.loads((folder / CURRENT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(f"{folder / CURRENT} is damaged: {error}") from error
    return found


def _write_arrays(target: Path, loop: Loop, order: NDArray[np.int64]) -> None:
    """Write the arrays of a snapshot; the features lie elsewhere."""
    weight, bias = loop.model.weight / loop.pool.temperature, loop.model.bias / loop.pool.temperature
    others, weights = [], []
    for expert, counts in zip(loop.experts, loop.pool.weights, strict=True):
        if isinstance(expert, LinearExpert) and expert.x is loop.x:
            weight, bias = weight + counts * expert.model.weight, bias + counts * expert.model.bias
        elif counts > 0:
            others.append(expert)
            weights.append(counts)
    answers = loop.state.answer_likelihood.take(np.arange(loop.state.num_items))
    arrays = {name: getattr(answers, name) for name in ANSWERS}
    arrays |= {"weight": weight.astype(np.float32), "bias": bias.astype(np.float32), "order": order}
    arrays |= {"log_model": loop.log_model, "rare": background(loop.state.counts)}
    for name, array in arrays.items():
        np.save(target / f"{name}.npy", array)
    if others:
        shape = (loop.state.num_items, loop.state.num_classes)
        scores = lambda part: weighted_scores(others, weights, np.arange(part.start, part.stop))  # noqa: E731
        _write_rows(target / "scores.npy", shape, scores, np.float16)


def _write_rows(path: Path, shape: tuple[int, int], rows: Any, kind: Any = np.float32) -> None:
    """Write an array chunk by chunk; without fsync, which would hold up others who wait for the disk."""
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in chunks(*shape):
            np.ascontiguousarray(rows(part), kind).tofile(file)

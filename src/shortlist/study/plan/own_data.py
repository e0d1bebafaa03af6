"""Data of one's own in the study: a path becomes a dataset whose name ends with a checksum of what the data holds.

So a file that was moved is the same dataset, and one that was changed is another, with runs of its own.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from shortlist import data
from shortlist.data import UNLABELLED, Dataset
from shortlist.errors import InputError, unknown_name
from shortlist.study.plan import datasets
from shortlist.study.plan.datasets import QUICK, StudyDataset

SMALL_SIDE, LARGE_SIDE = 16, 32
"""Of images, as in the defaults of `shortlist train`: smaller ones are treated as vectors, LeNet takes grey ones up to
the second, and ResNet-32 all others."""
LENGTHS = {"mlp": (30, 64), "lenet": (100, 256), "resnet32": (200, 256)}
"""Network -> epochs and batch size: what digits has, and what the paper's datasets have."""
STEPS = 8
"""The fewest steps of an epoch on all items: small data in one large batch is hardly learned from."""


def dataset_names(words: Iterable[str]) -> tuple[str, ...]:
    """The study's names of datasets that are stated by name or by path, each once.

    Raises:
        InputError: there is no such dataset, or its data cannot be used.
    """
    return tuple(dict.fromkeys(map(_name, words)))


def _name(word: str) -> str:
    base = word if os.path.lexists(word) else word.removesuffix(QUICK)
    if datasets.is_known(base):
        return word
    if not (base in data.names() or Path(base).suffix or os.sep in base or os.path.lexists(base)):
        raise unknown_name("dataset of the study", base, datasets.names())
    found = _read(base)
    place = base if base in data.names() else str(Path(base).absolute())
    name = f"{_safe(place)}-{_checksum(found)}"
    datasets.add(_described(found, name, place))
    return name + word[len(base) :]


def _read(place: str) -> Dataset:
    """The data, if methods can be compared on it."""
    found = data.load(place)
    if isinstance(found.train.x, list):
        raise InputError(f"{place} holds texts: give vectors made of them, as x, y, x_test and y_test of an .npz")
    if found.test is None or not len(found.test):
        how = "folders train and test" if Path(place).is_dir() else "x_test and y_test in an .npz"
        raise InputError(f"{place} has no test items, on which methods are compared: give {how}")
    for split, what in ((found.train, "training"), (found.test, "test")):
        unknown = len(split) if split.y is None else int((split.y == UNLABELLED).sum())
        if unknown:
            raise InputError(f"{place}: no class for {unknown:,} of {len(split):,} {what} items: leave them out")
    if found.num_classes < 2:
        raise InputError(f"{place}: expected at least 2 classes, got {found.num_classes}")
    return found


def _read_again(place: str, checksum: str) -> Dataset:
    """The data of a run: what was changed since the study began must not pass for what it was."""
    found = _read(place)
    if _checksum(found) != checksum:
        raise InputError(f"{place} was changed while the study was running: run the same command again")
    return found


def _safe(place: str) -> str:
    """The name of a file or folder without its ending, for names of files.

    >>> _safe("/data/my blobs (2).npz")
    'my-blobs-2'
    """
    path = Path(place)
    return re.sub(r"\W+", "-", path.name if path.is_dir() else path.stem).strip("-")[:60] or "data"


def _checksum(found: Dataset) -> str:
    """Eight hex digits of all that decides what is learned from the data."""
    assert found.test is not None
    digest = hashlib.sha256(f"{found.kind} {found.num_classes}".encode())
    for array in (found.train.x, found.train.y, found.test.x, found.test.y):
        values = np.ascontiguousarray(array)
        digest.update(f"{values.shape} {values.dtype}".encode())
        digest.update(values.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:8]


def _described(found: Dataset, name: str, place: str) -> StudyDataset:
    assert found.test is not None
    model, own = _network(found), Path(place).name
    epochs, batch_size = LENGTHS[model]
    train, test = len(found.train), len(found.test)
    whose = "not in the paper" if place in data.names() else "your own data"
    return StudyDataset(
        name,
        name,
        model,
        epochs,
        min(batch_size, max(2, train // STEPS)),
        in_paper=False,
        note=f"{whose}: {own}, {train:,} training and {test:,} test items, {found.num_classes:,} classes, {model}",
        train_items=train,
        test_items=test,
        num_classes=found.num_classes,
        read=partial(_read_again, place, name.rpartition("-")[2]),
        own=own,
    )


def _network(found: Dataset) -> str:
    if found.kind != "image" or min(found.in_shape[1:]) < SMALL_SIDE:
        return "mlp"
    channels, height, width = found.in_shape
    return "lenet" if channels == 1 and max(height, width) <= LARGE_SIDE else "resnet32"

"""UCI Letter Recognition: 16 measurements of printed capital letters."""

from pathlib import Path

import numpy as np

from shortlist.data.dataset import Dataset, Split
from shortlist.data.fetch import fetch, find
from shortlist.data.source import RemoteFile, Source
from shortlist.errors import InputError

_TRAIN, _TEST = 16_000, 4_000
_FILE = RemoteFile(
    "letter-recognition.data",
    ("https://archive.ics.uci.edu/ml/machine-learning-databases/letter-recognition/letter-recognition.data",),
    "sha256:2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
)


def read() -> Dataset:
    """The first 16,000 rows to train on and the last 4,000 to test, as usual; features are whole numbers 0 to 15."""
    return read_file(fetch("letter", [_FILE])[0])


def read_file(path: Path) -> Dataset:
    """The dataset in a file of rows `letter,16 numbers`."""
    rows = [line.split(",") for line in path.read_text(encoding="ascii", errors="replace").split()]
    try:
        x = np.array([row[1:] for row in rows], np.float32)
        y = np.array([ord(row[0]) - ord("A") for row in rows], np.int64)
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} is not the letter file: {error}") from error
    if x.shape != (_TRAIN + _TEST, 16) or y.min() < 0 or y.max() > 25:
        raise InputError(f"{path} is not the letter file: {x.shape} features, expected ({_TRAIN + _TEST}, 16)")
    names = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return Dataset("letter", Split(x[:_TRAIN], y[:_TRAIN]), Split(x[_TRAIN:], y[_TRAIN:]), names, "features")


SOURCE = Source(
    "letter",
    "UCI letter recognition: 16 measurements of capital letters",
    "features",
    26,
    _TRAIN,
    _TEST,
    read,
    lambda: find("letter", _FILE.name) is not None,
)

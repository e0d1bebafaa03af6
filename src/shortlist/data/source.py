"""What a known dataset declares about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shortlist.data.dataset import Dataset, Kind


@dataclass(frozen=True)
class RemoteFile:
    """One published file.

    Attributes:
        name: its name in the dataset's folder.
        urls: where to download it, tried in order.
        checksum: "sha256:..." or "md5:...", of the file as published.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str


@dataclass(frozen=True)
class Source:
    """A known dataset: its facts and how to read it.

    Attributes:
        name: what `load` knows it by, and the name of its folder.
        what: one line for people.
        read: reads it, fetching what is missing.
        present: whether all its files are on this machine (they are not opened).
    """

    name: str
    what: str
    kind: Kind
    num_classes: int
    train_size: int
    test_size: int
    read: Callable[[], Dataset]
    present: Callable[[], bool]

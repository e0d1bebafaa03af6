"""The idx format of MNIST and the datasets that followed it: gzip, a magic number, the sizes, then bytes."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset, Split
from shortlist.data.fetch import fetch, find
from shortlist.data.source import RemoteFile, Source
from shortlist.errors import InputError

_UNSIGNED_BYTE = 8
FILE_NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an idx .gz file.

    Raises:
        InputError: names the file, if it is not gzip, not idx of unsigned bytes, or shorter or longer than it says.
    """
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked, it is corrupt or truncated: {error}") from error
    dimensions = data[3] if len(data) >= 4 else 0
    start = 4 + 4 * dimensions
    if data[:3] != bytes([0, 0, _UNSIGNED_BYTE]) or dimensions == 0 or len(data) < start:
        raise InputError(f"{path} is not an idx file of unsigned bytes")
    shape = tuple(int(size) for size in np.frombuffer(data, ">u4", dimensions, 4))
    if len(data) - start != math.prod(shape):
        raise InputError(f"{path} holds {len(data) - start} bytes, its header says {math.prod(shape)}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy()  # bytes cannot be written to


def read_split(images: Path, labels: Path) -> Split:
    """The images (N, 1, H, W) and labels of two idx files that belong together."""
    x, y = read_idx(images), read_idx(labels)
    if x.ndim != 3:
        raise InputError(f"{images} has {x.ndim} dimensions, images have 3")
    if y.shape != x.shape[:1]:
        raise InputError(f"{labels} has {y.shape} labels for the {x.shape[0]} images of {images}")
    return Split(x[:, None], y.astype(np.int64))


@dataclass(frozen=True)
class IdxDataset:
    """Four idx files: 60,000 training and 10,000 test images of 28x28.

    Attributes:
        name: what `load` knows it by.
        what: one line for people.
        urls: the folders it can be downloaded from, tried in order.
        checksums: of the files, in the order of `FILE_NAMES`.
        class_names: the classes in order.
    """

    name: str
    what: str
    urls: tuple[str, ...]
    checksums: tuple[str, ...]
    class_names: tuple[str, ...]

    @property
    def source(self) -> Source:
        """What the registry holds."""
        return Source(
            self.name, self.what, "image", len(self.class_names), 60_000, 10_000, read=self.read, present=self.present
        )

    @property
    def files(self) -> list[RemoteFile]:
        """Training images and labels, then test images and labels."""
        return [
            RemoteFile(file, tuple(url + file for url in self.urls), checksum)
            for file, checksum in zip(FILE_NAMES, self.checksums, strict=True)
        ]

    def read(self) -> Dataset:
        """The training and test images."""
        paths = fetch(self.name, self.files)
        return Dataset(self.name, read_split(*paths[:2]), read_split(*paths[2:]), self.class_names, "image")

    def read_test(self) -> Dataset:
        """The official test images alone, as items to train on: two files are enough."""
        return Dataset(self.name, read_split(*fetch(self.name, self.files[2:])), None, self.class_names, "image")

    def present(self) -> bool:
        """Whether all four files are on this machine."""
        return all(find(self.name, file) is not None for file in FILE_NAMES)

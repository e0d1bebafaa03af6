"""CIFAR-10: photographs of ten classes, from the published binary version, unpacked or as its archive."""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset, Split
from shortlist.data.fetch import fetch, find, folders
from shortlist.data.source import RemoteFile, Source
from shortlist.errors import InputError

_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_RECORD = 1 + 3 * 32 * 32
"""Bytes per image: the label, then the red, green and blue planes."""
_FOLDER = "cifar-10-batches-bin"
BATCHES = {
    "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
    "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
}
"""The six files and their SHA-1."""
ARCHIVE = RemoteFile(
    "cifar-10-binary.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    "md5:c32a1d4ab5d03f1284b67883e8d87530",
)


def read() -> Dataset:
    """50,000 training and 10,000 test images, from the unpacked batches, else from the archive, else downloaded."""
    folder = _unpacked()
    batches = _from_archive(*fetch("cifar10", [ARCHIVE])) if folder is None else _from_folder(folder)
    *train, test = [_records(data, name, where) for name, data, where in batches]
    return Dataset("cifar10", _split(np.concatenate(train)), _split(test), _CLASSES, "image", flips=True)


def present() -> bool:
    """Whether it is on this machine, unpacked or as the archive."""
    return _unpacked() is not None or find("cifar10", ARCHIVE.name) is not None


def _unpacked() -> Path | None:
    places = [place for folder in folders("cifar10") for place in (folder / _FOLDER, folder)]
    return next((place for place in places if all((place / name).is_file() for name in BATCHES)), None)


def _from_folder(folder: Path) -> Iterator[tuple[str, bytes, Path]]:
    for name in BATCHES:
        try:
            yield name, (folder / name).read_bytes(), folder
        except OSError as error:
            raise InputError(f"{folder / name} cannot be read: {error.strerror or error}") from error


def _from_archive(path: Path) -> Iterator[tuple[str, bytes, Path]]:
    """The batches, read without unpacking the archive anywhere."""
    try:
        with tarfile.open(path, "r:gz") as archive:
            members = {Path(member.name).name: member for member in archive if member.isfile()}
            for name in BATCHES:
                content = archive.extractfile(members[name]) if name in members else None
                if content is None:
                    raise InputError(f"{path} does not hold {name}")
                yield name, content.read(), path
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked, it is corrupt or truncated: {error}") from error


def _records(data: bytes, name: str, where: Path) -> NDArray[np.uint8]:
    if hashlib.sha1(data).hexdigest() != BATCHES[name]:
        raise InputError(f"{name} of {where} is corrupt, truncated or not the published file (sha1 differs)")
    return np.frombuffer(data, np.uint8).reshape(-1, _RECORD)


def _split(records: NDArray[np.uint8]) -> Split:
    return Split(np.ascontiguousarray(records[:, 1:]).reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64))


SOURCE = Source("cifar10", "photographs, 32x32 colour", "image", 10, 50_000, 10_000, read, present)

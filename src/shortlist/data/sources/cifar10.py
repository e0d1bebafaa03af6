"""CIFAR-10: photographs of ten classes, from the binary or python version, their archives or packed planes."""

from __future__ import annotations

import hashlib
import pickle
import sys
import tarfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import Dataset, Split
from shortlist.data.fetch import check, fetch, folders
from shortlist.data.source import RemoteFile, Source
from shortlist.data.sources import cifar10_planes
from shortlist.data.sources.pickles import loads_arrays
from shortlist.errors import InputError
from shortlist.files import atomic_write, cache_folder

Records = list[NDArray[np.uint8]]
"""The six batches, the test batch last, each (10000, 3073): the label, then the red, green and blue planes."""

_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_URL = "https://www.cs.toronto.edu/~kriz/"
_BATCH, _RECORD = 10_000, 1 + 3 * 32 * 32
BINARY = {
    "data_batch_1.bin": "sha1:aadd24acce27caa71bf4b10992e9e7b2d74c2540",
    "data_batch_2.bin": "sha1:c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
    "data_batch_3.bin": "sha1:1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
    "data_batch_4.bin": "sha1:aab85764eb3584312d3c7f65fd2fd016e36a258e",
    "data_batch_5.bin": "sha1:26e2849e66a845b7f1e4614ae70f4889ae604628",
    "test_batch.bin": "sha1:67eb016db431130d61cd03c7ad570b013799c88c",
}
PYTHON = {
    "data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
    "data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "md5:634d18415352ddfa80567beed471001a",
    "data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "md5:40351d587109b95175f43aff81a1287e",
}
BINARY_ARCHIVE = RemoteFile(
    "cifar-10-binary.tar.gz", (_URL + "cifar-10-binary.tar.gz",), "md5:c32a1d4ab5d03f1284b67883e8d87530"
)
PYTHON_ARCHIVE = RemoteFile(
    "cifar-10-python.tar.gz", (_URL + "cifar-10-python.tar.gz",), "md5:c58f30108f718f92721af3b95e74349a"
)
_BINARY_FOLDER, _PYTHON_FOLDER = "cifar-10-batches-bin", "cifar-10-batches-py"


def read() -> Dataset:
    """50,000 training and 10,000 test images.

    Whatever form is found first is read: the unpacked batches, then the packed planes and the archives, else the
    binary archive is downloaded. What had to be unpacked is kept in the user's cache as the binary version.
    """
    reader = _find()
    if reader is None:
        fetch("cifar10", [BINARY_ARCHIVE])
        reader = _find()
        assert reader is not None
    return _dataset(reader())


def _dataset(records: Records) -> Dataset:
    splits = []
    for part in (records[:5], records[5:]):
        whole = np.concatenate(part) if len(part) > 1 else part[0]
        splits.append(Split(np.ascontiguousarray(whole[:, 1:]).reshape(-1, 3, 32, 32), whole[:, 0].astype(np.int64)))
    return Dataset("cifar10", splits[0], splits[1], _CLASSES, "image", flips=True)


def _find() -> Callable[[], Records] | None:
    """The reader of the quickest form of the dataset that is on this machine."""
    here = folders("cifar10")
    for folder in here:
        for place in (folder / _BINARY_FOLDER, folder):
            if _all_in(place, BINARY):
                return partial(read_binary, place)
        if _all_in(folder / _PYTHON_FOLDER, PYTHON):
            return partial(read_python, folder / _PYTHON_FOLDER)
    for folder in here:
        if _all_in(folder, cifar10_planes.FILE_NAMES):
            return partial(_kept, read_planes, folder)
        for archive in (BINARY_ARCHIVE, PYTHON_ARCHIVE):
            path = folder / archive.name
            if path.is_file():
                return partial(_kept, read_archive, path, archive.checksum)
    return None


def _all_in(folder: Path, names: dict[str, str] | tuple[str, ...]) -> bool:
    return all((folder / name).is_file() for name in names)


def read_binary(folder: Path) -> Records:
    """The batches of the binary version."""
    return [_binary_batch(_bytes(folder / name, name, BINARY), folder / name) for name in BINARY]


def read_python(folder: Path) -> Records:
    """The batches of the python version, unpickled without letting the pickle run anything."""
    return [_python_batch(_bytes(folder / name, name, PYTHON), folder / name) for name in PYTHON]


def read_planes(folder: Path) -> Records:
    """The batches in the packed planes, checked against the published binary version."""
    records = np.split(cifar10_planes.unpack(folder), len(BINARY))
    for name, batch in zip(BINARY, records, strict=True):
        _verify(batch.data, name, BINARY, folder)
    return records


def read_archive(path: Path, checksum: str) -> Records:
    """The batches in either archive, read without unpacking it anywhere."""
    check(path, checksum)
    records: Records = []
    try:
        with tarfile.open(path, "r:gz") as archive:
            members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
            names = BINARY if "data_batch_1.bin" in members else PYTHON
            for name in names:
                if name not in members:
                    raise InputError(f"{path} does not hold {name}")
                content = archive.extractfile(members[name])
                assert content is not None
                data = content.read()
                _verify(data, name, names, path)
                parse = _binary_batch if names is BINARY else _python_batch
                records.append(parse(data, path))
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked, it is corrupt or truncated: {error}") from error
    return records


def _bytes(path: Path, name: str, checksums: dict[str, str]) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    _verify(data, name, checksums, path.parent)
    return data


def _verify(data: bytes | memoryview, name: str, checksums: dict[str, str], where: Path) -> None:
    algorithm, _, expected = checksums[name].partition(":")
    if hashlib.new(algorithm, data).hexdigest() != expected:
        raise InputError(f"{name} of {where} is corrupt, truncated or not the published file ({algorithm} differs)")


def _binary_batch(data: bytes, where: Path) -> NDArray[np.uint8]:
    if len(data) != _BATCH * _RECORD:
        raise InputError(f"{where} holds {len(data):,} bytes, expected {_BATCH * _RECORD:,}")
    return np.frombuffer(data, np.uint8).reshape(_BATCH, _RECORD)


def _python_batch(data: bytes, where: Path) -> NDArray[np.uint8]:
    try:
        batch = loads_arrays(data)
        pixels, labels = batch[b"data"], np.asarray(batch[b"labels"])
    except (pickle.UnpicklingError, KeyError, TypeError) as error:
        raise InputError(f"{where} is not a batch of CIFAR-10: {error}") from error
    if not isinstance(pixels, np.ndarray) or pixels.shape != (_BATCH, _RECORD - 1) or pixels.dtype != np.uint8:
        raise InputError(f"{where} is not a batch of CIFAR-10: no {_BATCH:,} images of 3072 bytes")
    if labels.shape != (_BATCH,) or labels.min() < 0 or labels.max() > 9:
        raise InputError(f"{where} is not a batch of CIFAR-10: no {_BATCH:,} labels 0 to 9")
    return np.concatenate([labels.astype(np.uint8)[:, None], pixels], axis=1)


def _kept(unpack: Callable[..., Records], *args: object) -> Records:
    """Unpack the batches and keep them in the cache for the next time; a cache that cannot be written is no error."""
    records = unpack(*args)
    folder = cache_folder() / "cifar10" / _BINARY_FOLDER
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for name, batch in zip(BINARY, records, strict=True):
            atomic_write(folder / name, batch.tobytes())
        print(f"cifar10: unpacked into {folder}", file=sys.stderr)
    return records


SOURCE = Source(
    "cifar10",
    "photographs, 32x32 colour",
    "image",
    10,
    50_000,
    10_000,
    read,
    lambda: _find() is not None,
)

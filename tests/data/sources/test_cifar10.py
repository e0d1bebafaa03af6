import hashlib
import io
import lzma
import pickle
import struct
import tarfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from data.conftest import real_folder
from shortlist import data
from shortlist.data.source import RemoteFile
from shortlist.data.sources import cifar10, cifar10_planes
from shortlist.data.sources.pickles import loads_arrays
from shortlist.errors import InputError


def python2_string(value):
    return b"T" + struct.pack("<i", len(value)) + value  # BINSTRING


def python2_batch(labels, pixels):
    """A batch as Python 2 wrote the published ones: protocol 2, byte strings, numpy.core."""
    return (
        b"\x80\x02}("
        + python2_string(b"batch_label")
        + python2_string(b"training batch 1 of 5")
        + python2_string(b"labels")
        + b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
        + python2_string(b"data")
        + b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + python2_string(b"b") + b"tR"
        + b"(K\x01(" + b"".join(b"J" + struct.pack("<i", n) for n in pixels.shape) + b"t"
        + b"cnumpy\ndtype\n(" + python2_string(b"u1") + b"K\x00K\x01tR"
        + b"(K\x03" + python2_string(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + b"\x89" + python2_string(pixels.tobytes()) + b"tb"
        + b"u."
    )  # fmt: skip


def pack_plane(pixels):
    """The prediction errors of (N, H, W) pixels, one pixel at a time as the format says it."""
    n, height, width = pixels.shape
    wide = pixels.astype(int)
    missed = np.zeros_like(pixels)
    for k in range(n):
        for i in range(height):
            for j in range(width):
                if i == 0 and j == 0:
                    predicted = 0
                elif i == 0:
                    predicted = wide[k, 0, j - 1]
                elif j == 0:
                    predicted = wide[k, i - 1, 0]
                else:
                    a, b, c = wide[k, i, j - 1], wide[k, i - 1, j], wide[k, i - 1, j - 1]
                    predicted = sorted([a, b, a + b - c])[1]
                missed[k, i, j] = (wide[k, i, j] - predicted) % 256
    return missed


@given(arrays(np.uint8, st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))))
def test_prediction_is_undone(pixels):
    np.testing.assert_array_equal(cifar10_planes.undo_prediction(pack_plane(pixels)), pixels)


def test_planes_are_the_published_images(cifar10_batches):
    folder, dataset = cifar10_batches
    for name, checksum in cifar10.BINARY.items():
        assert "sha1:" + hashlib.sha1((folder / name).read_bytes()).hexdigest() == checksum
    assert dataset.train.x.shape == (50_000, 3, 32, 32)
    assert dataset.test.x.shape == (10_000, 3, 32, 32)
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.x.flags.writeable
    assert dataset.train.y[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert np.bincount(dataset.train.y).tolist() == [5_000] * 10
    assert dataset.class_names[6] == "frog"
    assert dataset.flips


def test_binary_version_is_read_and_damage_refused(cifar10_batches, tmp_path, monkeypatch):
    folder, expected = cifar10_batches
    place = tmp_path / "data" / "cifar10" / "cifar-10-batches-bin"
    place.mkdir(parents=True)
    for name in cifar10.BINARY:
        (place / name).symlink_to(folder / name)
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "data"))
    dataset = data.load("cifar10")
    np.testing.assert_array_equal(dataset.test.x, expected.test.x)
    assert np.array_equal(dataset.train.y, expected.train.y)
    (place / "data_batch_3.bin").unlink()
    (place / "data_batch_3.bin").write_bytes((folder / "data_batch_3.bin").read_bytes()[:-1])
    with pytest.raises(InputError, match=r"data_batch_3.bin of .*cifar-10-batches-bin is corrupt, truncated"):
        data.load("cifar10")
    (place / "data_batch_3.bin").unlink()  # not whole: as if it were not there
    with pytest.raises(InputError, match=r"cifar-10-binary.tar.gz is missing"):
        data.load("cifar10")


@pytest.fixture
def small(monkeypatch):
    """Batches of three images, so that the python version and the archives can be made here."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(cifar10, "_BATCH", 3)
    labels = rng.integers(0, 10, (6, 3), np.uint8)
    pixels = rng.integers(0, 256, (6, 3, 3072), np.uint8)
    python = {name: python2_batch(labels[i], pixels[i]) for i, name in enumerate(cifar10.PYTHON)}
    records = np.concatenate([labels[..., None], pixels], axis=2)
    binary = {name: records[i].tobytes() for i, name in enumerate(cifar10.BINARY)}
    monkeypatch.setattr(cifar10, "PYTHON", {n: "md5:" + hashlib.md5(v).hexdigest() for n, v in python.items()})
    monkeypatch.setattr(cifar10, "BINARY", {n: "sha1:" + hashlib.sha1(v).hexdigest() for n, v in binary.items()})
    return labels, pixels, python, binary


def check_small(dataset, labels, pixels):
    assert dataset.train.y.tolist() == labels[:5].ravel().tolist()
    assert dataset.test.y.tolist() == labels[5].tolist()
    np.testing.assert_array_equal(dataset.train.x, pixels[:5].reshape(15, 3, 32, 32))
    np.testing.assert_array_equal(dataset.test.x, pixels[5].reshape(3, 3, 32, 32))


def test_python_version(small, tmp_path, monkeypatch):
    labels, pixels, python, _ = small
    place = tmp_path / "data" / "cifar10" / "cifar-10-batches-py"
    place.mkdir(parents=True)
    for name, content in python.items():
        (place / name).write_bytes(content)
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "data"))
    check_small(data.load("cifar10"), labels, pixels)
    (place / "test_batch").write_bytes(python["test_batch"][:-5])
    with pytest.raises(InputError, match=r"test_batch of .*cifar-10-batches-py is corrupt"):
        data.load("cifar10")


def archive(path, folder, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return "md5:" + hashlib.md5(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("version", ["binary", "python"])
def test_archives_are_read_and_kept_unpacked(small, version, tmp_path, monkeypatch, cache):
    labels, pixels, python, binary = small
    place = tmp_path / "data" / "cifar10"
    place.mkdir(parents=True)
    path = place / f"cifar-10-{version}.tar.gz"
    checksum = archive(path, "cifar-10-batches", python if version == "python" else binary)
    attribute = f"{version.upper()}_ARCHIVE"
    monkeypatch.setattr(cifar10, attribute, RemoteFile(path.name, (), checksum))
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "data"))
    check_small(data.load("cifar10"), labels, pixels)
    kept = cache / "cifar10" / "cifar-10-batches-bin"
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == binary
    path.unlink()
    check_small(data.load("cifar10"), labels, pixels)


def test_damaged_and_incomplete_archives_are_refused_by_name(small, tmp_path):
    _, _, _, binary = small
    path = tmp_path / "a.tar.gz"
    checksum = archive(path, "c", {name: binary[name] for name in list(binary)[:3]})
    with pytest.raises(InputError, match=r"a.tar.gz does not hold data_batch_4.bin"):
        cifar10.read_archive(path, checksum)
    with pytest.raises(InputError, match=r"a.tar.gz is corrupt, truncated or not the published file"):
        cifar10.read_archive(path, "md5:" + "0" * 32)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(InputError, match=r"a.tar.gz cannot be unpacked"):
        cifar10.read_archive(path, "md5:" + hashlib.md5(path.read_bytes()).hexdigest())


def test_damaged_planes_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"green.xz cannot be unpacked"):
        cifar10_planes.unpack(tmp_path)
    for name in cifar10_planes.FILE_NAMES:
        (tmp_path / name).write_bytes(lzma.compress(b"short"))
    with pytest.raises(InputError, match=r"green.xz holds 5 bytes, expected 61,440,000"):
        cifar10_planes.unpack(tmp_path)
    (tmp_path / "green.xz").write_bytes(lzma.compress(b"short")[:-4])
    with pytest.raises(InputError, match=r"green.xz cannot be unpacked"):
        cifar10_planes.unpack(tmp_path)


def test_python2_arrays_are_unpickled():
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 6)
    batch = loads_arrays(python2_batch([3, 4], pixels))
    np.testing.assert_array_equal(batch[b"data"], pixels)
    assert batch[b"labels"] == [3, 4]
    for array in (pixels, pixels.T, pixels.astype(">i4"), np.float32([[1.5]]), np.zeros((0, 3), np.uint8)):
        again = loads_arrays(pickle.dumps({"a": array}, protocol=4))["a"]
        np.testing.assert_array_equal(again, array)
        assert (again.dtype.kind, again.dtype.itemsize) == (array.dtype.kind, array.dtype.itemsize)


def test_pickled_arrays_of_anything_but_numbers_are_refused():
    with pytest.raises(pickle.UnpicklingError, match="an array of 'O8', expected numbers"):
        loads_arrays(pickle.dumps(np.array([None]), protocol=4))


def test_what_a_pickle_says_of_a_dtype_is_not_believed():
    """Flags that NumPy would take over unseen; freeing such an array breaks it."""
    good = python2_batch([1, 2], np.zeros((2, 5), np.uint8))
    flags = good.rindex(b"K\x00tb")
    assert loads_arrays(good[:flags] + b"K\x25tb" + good[flags + 4 :])[b"data"].tolist() == [[0] * 5] * 2


class Evil:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({b"data": Evil()}),
        b"cos\nsystem\n(S'echo run'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.testing._private.utils\nrunstring\n(S'1'\n}tR.",
        b"\x80\x02cnumpy.core.multiarray\nfromfile\n.",
    ],
)
def test_pickles_run_nothing(content, capfd):
    with pytest.raises(pickle.UnpicklingError, match="only NumPy arrays are allowed"):
        loads_arrays(content)
    assert "run" not in capfd.readouterr().out


# "r" asks the unpickler for a table of any length: published files are held to their checksum before they come here
@given(st.integers(0, 400), st.integers(0, 255).filter(lambda value: value != ord("r")))
def test_damaged_pickles_raise_one_kind_of_error(place, value):
    good = bytearray(python2_batch([1, 2], np.zeros((2, 5), np.uint8)))
    good[place % len(good)] = value
    with suppress(pickle.UnpicklingError):
        loads_arrays(bytes(good))
    with pytest.raises(pickle.UnpicklingError):
        loads_arrays(bytes(good[: place % len(good)]))


@pytest.mark.parametrize(
    "batch",
    [
        [1],
        {b"data": 3},
        {b"data": np.zeros((3, 5), np.uint8), b"labels": [0, 1, 2]},
        {b"data": np.zeros((3, 3072), np.uint8), b"labels": [0, 1]},
        {b"data": np.zeros((3, 3072), np.uint8), b"labels": [0, 1, 10]},
    ],
)
def test_pickles_that_are_no_batch(small, batch, tmp_path):
    with pytest.raises(InputError, match=r"b1 is not a batch of CIFAR-10"):
        cifar10._python_batch(pickle.dumps(batch, protocol=4), tmp_path / "b1")


def test_real_planes_are_seen():
    real_folder("cifar10")
    assert next(row for row in data.describe() if row.name == "cifar10").present

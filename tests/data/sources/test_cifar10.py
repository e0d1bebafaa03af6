"""CIFAR-10 in its published binary form: the real files where they are, and small ones made here."""

import hashlib
import io
import tarfile

import numpy as np
import pytest

from data.conftest import real_folder
from shortlist import data
from shortlist.data.source import RemoteFile
from shortlist.data.sources import cifar10
from shortlist.errors import InputError


@pytest.mark.slow
def test_the_published_images():
    folder = real_folder("cifar10")
    if not (folder / "cifar-10-batches-bin").is_dir():
        pytest.skip("needs the binary version of CIFAR-10 under SHORTLIST_DATA")
    dataset = data.load("cifar10")
    assert dataset.train.x.shape == (50_000, 3, 32, 32)
    assert dataset.test.x.shape == (10_000, 3, 32, 32)
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.x.flags.writeable
    assert dataset.train.y[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert np.bincount(dataset.train.y).tolist() == [5_000] * 10
    assert dataset.class_names[6] == "frog"
    assert dataset.flips


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Batches of three images, so that both forms can be made here, and the folder to put them into."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, (6, 3), np.uint8)
    pixels = rng.integers(0, 256, (6, 3, 3072), np.uint8)
    records = np.concatenate([labels[..., None], pixels], axis=2)
    files = {name: records[i].tobytes() for i, name in enumerate(cifar10.BATCHES)}
    monkeypatch.setattr(cifar10, "BATCHES", {name: hashlib.sha1(v).hexdigest() for name, v in files.items()})
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "data"))
    place = tmp_path / "data" / "cifar10"
    place.mkdir(parents=True)
    return labels, pixels, files, place


def check_small(labels, pixels):
    assert next(row for row in data.describe() if row.name == "cifar10").present
    dataset = data.load("cifar10")
    assert dataset.train.y.tolist() == labels[:5].ravel().tolist()
    assert dataset.test.y.tolist() == labels[5].tolist()
    np.testing.assert_array_equal(dataset.train.x, pixels[:5].reshape(15, 3, 32, 32))
    np.testing.assert_array_equal(dataset.test.x, pixels[5].reshape(3, 3, 32, 32))


@pytest.mark.parametrize("inner", ["cifar-10-batches-bin", "."])
def test_unpacked_batches_are_read_and_damage_refused(small, inner):
    labels, pixels, files, place = small
    (place / inner).mkdir(exist_ok=True)
    for name, content in files.items():
        (place / inner / name).write_bytes(content)
    check_small(labels, pixels)
    third = place / inner / "data_batch_3.bin"
    third.write_bytes(files["data_batch_3.bin"][:-1])
    with pytest.raises(InputError, match=r"data_batch_3.bin of .*cifar10.* is corrupt, truncated"):
        data.load("cifar10")
    third.unlink()  # not whole: as if it were not there
    assert not next(row for row in data.describe() if row.name == "cifar10").present
    with pytest.raises(InputError, match=r"cifar-10-binary.tar.gz is missing"):
        data.load("cifar10")


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def publish(monkeypatch, path):
    checksum = "md5:" + hashlib.md5(path.read_bytes()).hexdigest()
    monkeypatch.setattr(cifar10, "ARCHIVE", RemoteFile(path.name, (), checksum))


def test_the_archive_is_read_and_damage_refused_by_name(small, monkeypatch):
    labels, pixels, files, place = small
    path = place / "cifar-10-binary.tar.gz"
    archive(path, files)
    with pytest.raises(InputError, match=r"cifar-10-binary.tar.gz is corrupt, truncated or not the published file"):
        data.load("cifar10")
    publish(monkeypatch, path)
    check_small(labels, pixels)
    path.write_bytes(path.read_bytes()[:-2000])
    publish(monkeypatch, path)
    with pytest.raises(InputError, match=r"cifar-10-binary.tar.gz cannot be unpacked"):
        data.load("cifar10")
    archive(path, {name: files[name] for name in list(files)[:3]})
    publish(monkeypatch, path)
    with pytest.raises(InputError, match=r"cifar-10-binary.tar.gz does not hold data_batch_4.bin"):
        data.load("cifar10")

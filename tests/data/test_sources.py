"""The known datasets: the real files if they are here, and the message if they are not."""

import gzip
import hashlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from shortlist import data
from shortlist.data.sources import idx, letter
from shortlist.errors import InputError

from .conftest import real_folder


def test_names_and_rows():
    assert data.names() == ("digits", "mnist", "fashion", "kuzushiji", "cifar10", "letter", "banking77")
    assert [row.name for row in data.describe()] == list(data.names())
    assert data.describe()[0].present


def check_row(dataset):
    row = next(row for row in data.describe() if row.name == dataset.name)
    assert row.present
    assert (len(dataset.train), len(dataset.test)) == (row.train, row.test)
    assert (dataset.kind, dataset.num_classes) == (row.kind, row.num_classes)
    assert set(dataset.train.y.tolist()) == set(range(row.num_classes))
    assert dataset.train.y.dtype == np.int64


def test_digits():
    dataset = data.load("digits")
    check_row(dataset)
    assert dataset.train.x.shape == (1437, 1, 8, 8)
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.x.max() == 255
    assert np.bincount(dataset.test.y).tolist() == [36, 36, 35, 37, 36, 37, 36, 36, 35, 36]
    # the split must not move from one version of anything to the next
    digest = hashlib.sha256(dataset.train.x.tobytes() + dataset.train.y.tobytes()).hexdigest()
    assert digest == DIGITS_DIGEST
    assert not dataset.flips


DIGITS_DIGEST = "cf523fcf146ab6c4a2fc65ac83b5a8f7bbca3d816b439954e27c285d3462cf27"


@pytest.mark.parametrize(
    ("name", "first", "counts"),
    [("mnist", [5, 0, 4, 1, 9], [5923, 6742]), ("fashion", [9, 0, 0, 3, 0], [6000, 6000])],
)
def test_mnist_and_fashion(name, first, counts):
    real_folder(name)
    start = time.perf_counter()
    dataset = data.load(name)
    assert time.perf_counter() - start < 5  # about 0.6 s alone; the cores may be shared
    check_row(dataset)
    assert dataset.train.x.shape == (60_000, 1, 28, 28)
    assert dataset.test.x.shape == (10_000, 1, 28, 28)
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.x.flags.writeable  # torch.from_numpy warns of arrays that are not
    assert dataset.train.y[:5].tolist() == first
    assert np.bincount(dataset.train.y)[:2].tolist() == counts
    assert not dataset.flips


def test_letter():
    real_folder("letter")
    dataset = data.load("letter")
    check_row(dataset)
    assert dataset.train.x.dtype == np.float32
    assert dataset.in_shape == (16,)
    assert dataset.class_names[dataset.train.y[0]] == "T"
    assert dataset.train.x[0].tolist() == [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]


def test_banking77():
    real_folder("banking77")
    dataset = data.load("banking77")
    check_row(dataset)
    assert dataset.train.x[0] == "I am still waiting on my card?"
    assert dataset.class_names[dataset.train.y[0]] == "card_arrival"
    assert dataset.class_names[0] == "Refund_not_showing_up"
    assert dataset.test.x[0] == "How do I locate my card?"


@pytest.fixture
def kuzushiji_without_train_images(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "kuzushiji"
    folder.mkdir(parents=True)
    for file in real_folder("kuzushiji").iterdir():
        if file.name != "train-images-idx3-ubyte.gz":
            shutil.copy(file, folder)
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "data"))
    return folder


def test_kuzushiji_says_which_file_is_missing_and_where_it_goes(kuzushiji_without_train_images):
    folder = kuzushiji_without_train_images
    assert not next(row for row in data.describe() if row.name == "kuzushiji").present
    with pytest.raises(InputError) as caught:
        data.load("kuzushiji")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("kuzushiji: train-images-idx3-ubyte.gz is missing")
    assert f"put it into {folder}" in message
    assert "http://codh.rois.ac.jp/kmnist/dataset/kmnist/train-images-idx3-ubyte.gz" in message
    assert "t10k" not in message
    assert "labels" not in message


def test_missing_without_a_stated_folder_names_the_cache_and_every_file(cache, monkeypatch):
    monkeypatch.delenv("SHORTLIST_DATA", raising=False)
    with pytest.raises(InputError) as caught:
        data.load("mnist")
    message = str(caught.value)
    assert all(name in message for name in idx.FILE_NAMES)
    assert str(cache / "mnist") in message
    assert "$SHORTLIST_DATA" in message
    assert "are missing" in message


def test_the_cache_is_looked_in_after_the_stated_folder(cache, tmp_path, monkeypatch):
    source = real_folder("letter")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "empty"))
    shutil.copytree(source, cache / "letter")
    assert len(data.load("letter").train) == 16_000


def test_a_stated_folder_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"SHORTLIST_DATA is .*nowhere, which is not a folder"):
        data.load("mnist")


@pytest.mark.parametrize("damage", ["truncated", "one bit", "empty"])
@pytest.mark.parametrize(("source", "file"), [("mnist", "t10k-images-idx3-ubyte.gz"), ("banking77", "train.csv")])
def test_damaged_files_are_refused_by_name(source, file, damage, tmp_path, monkeypatch):
    folder = tmp_path / "data" / source
    shutil.copytree(real_folder(source), folder)
    content = bytearray((folder / file).read_bytes())
    if damage == "one bit":
        content[len(content) // 2] ^= 1
    else:
        content = content[: 0 if damage == "empty" else -100]
    (folder / file).chmod(0o600)
    (folder / file).write_bytes(content)
    monkeypatch.setenv("SHORTLIST_DATA", str(tmp_path / "data"))
    with pytest.raises(InputError, match="corrupt, truncated or not the published file") as caught:
        data.load(source)
    assert str(folder / file) in str(caught.value)
    assert "\n" not in str(caught.value)


def idx_bytes(array, kind=8):
    header = bytes([0, 0, kind, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return gzip.compress(header + array.tobytes())


def test_idx_reads_what_was_written(tmp_path):
    array = np.random.default_rng(0).integers(0, 256, (7, 3, 5), np.uint8)
    (tmp_path / "x.gz").write_bytes(idx_bytes(array))
    np.testing.assert_array_equal(idx.read_idx(tmp_path / "x.gz"), array)
    (tmp_path / "y.gz").write_bytes(idx_bytes(np.arange(7, dtype=np.uint8)))
    split = idx.read_split(tmp_path / "x.gz", tmp_path / "y.gz")
    assert split.x.shape == (7, 1, 3, 5)
    assert split.y.tolist() == list(range(7))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"plain", "cannot be unpacked"),
        (idx_bytes(np.zeros((3, 2), np.uint8))[:-9], "cannot be unpacked"),
        (gzip.compress(b""), "not an idx file"),
        (gzip.compress(bytes([0, 0, 8, 3, 0])), "not an idx file"),
        (idx_bytes(np.zeros((3, 2), np.uint8), kind=13), "not an idx file of unsigned bytes"),
        (
            gzip.compress(gzip.decompress(idx_bytes(np.zeros((3, 2), np.uint8)))[:-1]),
            "holds 5 bytes, its header says 6",
        ),
        (gzip.compress(gzip.decompress(idx_bytes(np.zeros((3, 2), np.uint8))) + b"1"), "holds 7 bytes"),
    ],
    ids=["plain", "cut", "empty", "short", "floats", "too few", "too many"],  # gzip puts the time into the bytes
)
def test_idx_refuses_damage_by_name(tmp_path, content, message):
    (tmp_path / "bad.gz").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        idx.read_idx(tmp_path / "bad.gz")
    assert "bad.gz" in str(caught.value)


def test_idx_files_that_do_not_belong_together(tmp_path):
    (tmp_path / "x.gz").write_bytes(idx_bytes(np.zeros((3, 2, 2), np.uint8)))
    (tmp_path / "y.gz").write_bytes(idx_bytes(np.zeros(4, np.uint8)))
    with pytest.raises(InputError, match=r"y.gz has \(4,\) labels for the 3 images of .*x.gz"):
        idx.read_split(tmp_path / "x.gz", tmp_path / "y.gz")
    with pytest.raises(InputError, match="has 1 dimensions, images have 3"):
        idx.read_split(tmp_path / "y.gz", tmp_path / "y.gz")


@pytest.mark.parametrize("content", ["", "A,1,2\n", "A,1\nB,x\n", "1,2\n" * 3])
def test_letter_refuses_another_file_by_name(tmp_path, content):
    (tmp_path / "l.data").write_text(content)
    with pytest.raises(InputError, match=r"l.data is not the letter file"):
        letter.read_file(tmp_path / "l.data")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mnits", "unknown dataset 'mnits': did you mean 'mnist'"),
        ("./nothing", "no such file or folder: nothing"),
        ("nothing.csv", "no such file or folder: nothing.csv"),
    ],
)
def test_unknown_names_and_paths(name, message):
    with pytest.raises(InputError, match=message):
        data.load(name)


def test_columns_are_for_own_data_only():
    with pytest.raises(InputError, match="label_column can be stated only for your own data, 'digits' is a known"):
        data.load("digits", label_column="y")


def test_importing_data_loads_nothing_heavy():
    code = (
        "import sys, shortlist.data; "
        "print([m for m in ('torch', 'sklearn', 'pyarrow', 'PIL', 'pooch', 'scipy', 'requests') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_without_pooch_files_are_still_found(monkeypatch, cache):
    """Machines that only train need not have it."""
    source = real_folder("letter")
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert len(data.load("letter").test) == 4_000
    monkeypatch.delenv("SHORTLIST_DATA")
    shutil.copytree(source, cache / "letter")
    assert len(data.load("letter").test) == 4_000

"""Data of one's own as a dataset of the study: its name, its network, its sizes, and what is refused."""

import doctest
import logging

import numpy as np
import pytest
from PIL import Image

from shortlist.data import Dataset, Split
from shortlist.errors import InputError
from shortlist.study.plan import datasets, grid, own_data
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import Wanted, cells, shares
from shortlist.study.plan.own_data import dataset_names
from shortlist.training.job.defaults import defaults_for


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "_OWN", {})
    datasets.load.cache_clear()


def arrays(num_classes=7, train=70, test=21):
    y = np.arange(train + test) % num_classes
    x = np.random.default_rng(0).normal(size=(train + test, 4)).astype(np.float32)
    return {"x": x[:train], "y": y[:train], "x_test": x[train:], "y_test": y[train:]}


def save(path="blobs.npz", **changed):
    content = {**arrays(), **changed}
    np.savez(path, **{name: value for name, value in content.items() if value is not None})
    return path


def test_what_the_study_makes_of_it():
    (name,) = dataset_names([save()])
    about = study_dataset(name)
    assert name.startswith("blobs-")
    assert (about.model, about.epochs, about.batch_size, about.num_classes) == ("mlp", 30, 8, 7)
    assert (about.in_paper, about.recipes_from, about.all_classes) == (False, (), "1-7")
    assert about.note == "your own data: blobs.npz, 70 training and 21 test items, 7 classes, mlp"
    assert datasets.paper_title(name) is None
    assert len(datasets.load(name).train) == 70


def test_the_name_follows_what_the_data_holds_and_not_where_it_lies(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    first = dataset_names([save(), save("elsewhere/blobs.npz"), "elsewhere/../blobs.npz"])
    assert len(first) == 1
    assert dataset_names([save("renamed.npz")]) != first
    whole = arrays()
    for changed in (
        {"x": whole["x"] + 1},
        {"y": whole["y"][::-1]},
        {"x_test": whole["x_test"] + 1},
        {"y_test": whole["y_test"][::-1]},
        {"class_names": np.arange(8).astype(str)},
    ):
        first += dataset_names([save(**changed)])
    assert len(set(first)) == 6


def test_the_quick_part(tmp_path):
    whole, part = dataset_names([save(), "blobs.npz-quick"])
    assert part == f"{whole}-quick"
    assert study_dataset(part).own == "blobs.npz-quick"
    (tmp_path / "really-quick").mkdir()
    with pytest.raises(InputError, match="really-quick"):  # a folder of this name is meant, not part of another
        dataset_names(["really-quick"])


@pytest.mark.parametrize(
    ("path", "changed", "complaint"),
    [
        (
            "a.npz",
            {"x_test": None, "y_test": None},
            "a.npz has no test items, on which methods are compared",
        ),
        ("a.npz", {"x_test": np.ones((0, 4)), "y_test": np.ones(0, int)}, "a.npz has no test items"),
        ("a.npz", {"y": np.r_[-1, np.arange(69) % 7]}, "a.npz: no class for 1 of 70 training items: leave them out"),
        ("a.npz", {"y_test": None}, "a.npz: no class for 21 of 21 test items: leave them out"),
        ("a.npz", {"y": np.zeros(70, int), "y_test": np.zeros(21, int)}, "expected at least 2 classes, got 1"),
        (
            "texts.npz",
            {"x": np.array(["so", "it", "is"] * 2), "y": np.arange(6), "x_test": np.array(["so"]), "y_test": [0]},
            "texts.npz holds texts: give vectors made of them, as x, y, x_test and y_test of an .npz",
        ),
    ],
)
def test_data_that_methods_cannot_be_compared_on(path, changed, complaint):
    with pytest.raises(InputError, match=complaint) as raised:
        dataset_names([save(path, **changed)])
    assert "\n" not in str(raised.value)


def test_a_file_that_is_changed_while_the_study_runs_is_not_taken_for_what_it_was():
    (name,) = dataset_names([save()])
    save(x=arrays()["x"] + 1)
    with pytest.raises(InputError, match="was changed while the study was running"):
        datasets.load(name)


def image_data(*shape):
    x = np.zeros((80, *shape), np.uint8)
    return Dataset("some", Split(x, np.arange(80) % 2), Split(x[:9], np.arange(9) % 2), ("a", "b"), "image")


@pytest.mark.parametrize(
    "shape", [(1, 8, 8), (1, 15, 40), (1, 16, 16), (1, 28, 28), (1, 32, 33), (3, 15, 15), (3, 32, 32)]
)
def test_the_network_is_that_of_train(shape):
    assert own_data._network(image_data(*shape)) == defaults_for(image_data(*shape), 80)["model"]


def test_a_folder_of_small_images(tmp_path):
    for part, count in (("train", 16), ("test", 4)):
        for kind in ("cat", "dog", "owl"):
            folder = tmp_path / "my pets" / part / kind
            folder.mkdir(parents=True)
            for number in range(count):
                Image.new("L", (20, 20), number).save(folder / f"{number}.png")
    (name,) = dataset_names(["my pets"])
    about = study_dataset(name)
    assert name.startswith("my-pets-")
    assert (about.model, about.epochs, about.batch_size, about.own) == ("lenet", 100, 6, "my pets")
    (tmp_path / "my pets" / "test").rename(tmp_path / "gone")
    with pytest.raises(InputError, match=r"my pets has no test items, .* give folders train and test"):
        dataset_names(["my pets"])


def test_sizes_are_the_tables_shares_of_the_classes(caplog):
    caplog.set_level(logging.ERROR)
    seven, thirty = (f"c{count}.npz" for count in (7, 30))
    save(seven), save(thirty, **arrays(30, 300, 60))
    for table, sizes in (("table1", [6, 5, 4, 3, 2]), ("table2", [6, 5, 4])):
        found = cells(Wanted((table,), (seven,), ("sl",)))
        assert list(dict.fromkeys(cell.size for cell in found)) == sizes
        assert {(cell.classes, cell.class_indices, cell.num_classes) for cell in found} == {("1-7", None, 7)}
    both = cells(Wanted(("table1",), (thirty, seven, "digits"), ("sl",), protocols=("fair",), quick=True))
    assert [(cell.classes, cell.size) for cell in both] == [("1-30", 15), ("1-7", 4), ("1-10", 5)]
    for sizes in grid.SIZES.values():
        assert shares(sizes, 10) == sizes
        for count in range(2, 200):
            assert all(1 <= size < count for size in shares(sizes, count))


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ({"tables": ("table1", "table4")}, "table4: sets of classes out of ten, and blobs-.* has 7"),
        ({"sizes": (6, 7)}, r"size: expected 1\.\.6 of 7 classes, got 7 for blobs-"),
        ({"classes": ("1-6",)}, "classes '1-6': not in table1, expected some of 1-7"),
    ],
)
def test_places_that_it_does_not_have(stated, complaint):
    with pytest.raises(InputError, match=complaint):
        Wanted(**{"tables": ("table1",), "datasets": (save(),), **stated})


def test_examples_in_docstrings():
    found = [doctest.testmod(module) for module in (own_data, grid)]
    assert all(result.attempted and not result.failed for result in found)

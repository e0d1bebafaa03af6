import doctest

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_matrix

import shortlist.data
import shortlist.data.dataset
import shortlist.data.formats.classes
from shortlist.data import UNLABELLED, Dataset, Split
from shortlist.errors import InputError


def make(y, k=4, test_y=None):
    split = Split(np.arange(len(y) * 2, dtype=np.float32).reshape(-1, 2), np.array(y))
    test = None if test_y is None else Split(np.zeros((len(test_y), 2), np.float32), np.array(test_y))
    return Dataset("made", split, test, tuple("abcdefgh"[:k]), "features")


def test_items_are_the_row_numbers_unless_given():
    assert Split(["x", "y"]).items.tolist() == ["0", "1"]
    assert Split(["x", "y"], items=np.array(["p", "q"])).take([1]).items.tolist() == ["q"]


def test_what_is_nearly_an_array_becomes_one(tmp_path):
    numbers = np.arange(6, dtype=np.float32).reshape(3, 2)
    for given_x in (torch.from_numpy(numbers), pd.DataFrame(numbers), numbers):
        split = Split(given_x, torch.tensor([0, 1, 2]))
        assert type(split.x) is np.ndarray
        assert split.take([2]).x.tolist() == [[4, 5]]
        assert split.y.dtype == np.int64
    assert Split(coo_matrix(numbers)).take([1]).x.toarray().tolist() == [[2, 3]]
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (3, 1, 2, 2))
    assert isinstance(Split(mapped).x, np.memmap)
    assert Split(numbers, [2.0, 1.0, -1.0]).y.tolist() == [2, 1, UNLABELLED]
    assert Split(numbers, np.array([2, 1.0, 0], object)).y.tolist() == [2, 1, 0]
    whole = np.array([2, 1, 0])
    assert Split(numbers, whole).y is whole


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], "x: a list holds texts, item 0 is a list: give numbers as an array"),
        (["a", None], "x: a list holds texts, item 1 is a NoneType: give numbers as an array"),
        (("a", "b"), "x: expected an array, a sparse matrix or a list of texts, got a tuple"),
        (np.array(["a", "b"]), "x: expected numbers of shape (N, ...), or a list of texts, got <U1 of shape (2,)"),
        (np.zeros(2), "x: expected numbers of shape (N, ...), or a list of texts, got float64 of shape (2,)"),
        (csr_matrix(np.eye(2) * 1j), "x: expected a sparse matrix of real numbers, got complex128"),
        (pd.DataFrame({"a": ["p", "q"]}), "x: expected numbers of shape (N, ...), or a list of texts, got "),
    ],
)
def test_what_is_no_input_is_refused(x, said):
    with pytest.raises(InputError) as error:
        Split(x)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("y", "wrong"), [([0, 3.5], 3.5), ([0.0, np.nan], np.nan), (["cat", "dog"], "cat"), ([1, None], None)]
)
def test_classes_that_are_no_whole_numbers_are_refused(y, wrong):
    """3.5 must not become 3."""
    with pytest.raises(InputError) as error:
        Split(["a", "b"], y)
    assert str(error.value) == f"y: expected whole numbers that count the classes from 0, got [{wrong!r}]"


@pytest.mark.parametrize(
    "x", [["a", "b", "c"], np.arange(6).reshape(3, 2), csr_matrix(np.eye(3, dtype=np.float32))], ids=type
)
def test_take_by_position_and_mask(x):
    split = Split(x, np.array([5, 6, 7]))
    for index in ([2, 0], np.array([2, 0])):
        part = split.take(index)
        assert len(part) == 2
        assert part.y.tolist() == [7, 5]
        assert part.items.tolist() == ["2", "0"]
    part = split.take(np.array([True, False, True]))
    assert part.y.tolist() == [5, 7]
    if isinstance(x, list):
        assert part.x == ["a", "c"]
    elif isinstance(x, np.ndarray):
        assert part.x.tolist() == [[0, 1], [4, 5]]
    else:
        assert part.x.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Split(["a"], np.array([1, 2])), r"1 items need y of shape \(1,\), got \(2,\)"),
        (lambda: Split(["a"], items=np.array(["x", "y"])), "1 items need 1 names, got 2"),
        (lambda: make([0, 4]), "class 4 in the train labels, expected 0 to 3"),
        (lambda: make([0, 1], test_y=[-2]), "class -2 in the test labels"),
        (lambda: make([0, 1]).only_classes([0, 0]), "named twice"),
        (lambda: make([0, 1]).only_classes([0]), "at least 2 classes"),
        (lambda: make([0, 1]).only_classes([0, 4]), "no class 4, they are 0 to 3"),
        (lambda: make([0, 1]).only_classes([0, 1.5]), "class of made: expected a whole number, got 1.5"),
        (lambda: make([0, 1]).only_classes(["a", "bb"]), "unknown class of made 'bb'"),
        (lambda: make([0, 1]).with_classes(["a"]), "class 'b' occurs but is not among"),
        (lambda: make([0, 1]).with_classes(["a", "a"]), "named twice"),
    ],
)
def test_bad_input_is_one_line(build, message):
    with pytest.raises(InputError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


@given(
    y=st.lists(st.integers(-1, 5), min_size=1, max_size=30),
    chosen=st.lists(st.integers(0, 5), min_size=2, max_size=6, unique=True),
)
def test_only_classes_against_a_loop(y, chosen):
    dataset = make(y, k=6, test_y=y[::-1])
    part = dataset.only_classes(chosen)
    assert part.class_names == tuple("abcdef"[c] for c in chosen)
    for split, whole, labels in ((part.train, dataset.train, y), (part.test, dataset.test, y[::-1])):
        kept = [i for i, label in enumerate(labels) if label in chosen]
        assert split.items.tolist() == [str(i) for i in kept]
        assert split.y.tolist() == [chosen.index(labels[i]) for i in kept]
        np.testing.assert_array_equal(split.x, whole.x[kept])


def test_only_classes_by_name_keeps_the_order_given():
    assert make([0, 1, 2]).only_classes(["c", "a"]).train.y.tolist() == [1, 0]


def test_with_classes_reorders_and_adds():
    dataset = make([0, 1, UNLABELLED], k=3, test_y=[1]).with_classes(["z", "b", "a"])
    assert dataset.train.y.tolist() == [2, 1, UNLABELLED]
    assert dataset.test.y.tolist() == [1]
    assert dataset.num_classes == 3


def test_a_dataset_is_one_line():
    from shortlist.data import load

    assert repr(load("digits")) == "Dataset('digits', image, 10 classes, train 1437x1x8x8, test 360x1x8x8)"
    texts = Split(["a", "b"], [0, -1])
    assert repr(Dataset("mine", texts, None, ("x", "y"), "text")) == (
        "Dataset('mine', text, 2 classes, train 2 texts, no test set)"
    )
    assert repr(texts) == "Split(2 texts, labelled in part)"
    assert repr(Split(np.zeros((3, 4)))) == "Split(3x4, unlabelled)"
    assert repr(Split(["a"], [0])) == "Split(1 texts, labelled)"


def test_in_shape():
    assert make([0, 1]).in_shape == (2,)
    with pytest.raises(InputError, match="texts have no shape"):
        _ = Dataset("texts", Split(["a"]), None, (), "text").in_shape


def test_docstrings():
    for module in (shortlist.data, shortlist.data.dataset, shortlist.data.formats.classes):
        results = doctest.testmod(module)
        assert results.attempted
        assert not results.failed

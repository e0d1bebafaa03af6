import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import shortlist
from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels


def labels() -> StochasticLabels:
    """Five items, K = 4: answered, None, answered on a list of one, all shown, None."""
    lists = [[2, 0], [3, 1, 0], [1], [3, 2, 1, 0], [2]]
    return StochasticLabels.from_lists(
        lists, [0, NONE, 1, 3, NONE], 4, class_names=["ant", "bee", "cat", "dog"], items=list("abcde")
    )


# -- reading them off --------------------------------------------------------------------------------------------------


def test_what_labels_say():
    five = labels()
    assert len(five) == 5
    assert five.sizes.tolist() == [2, 3, 1, 4, 1]
    assert five.reads == 11
    assert five.none_share == 0.4
    assert five.answered.tolist() == [True, False, True, True, False]
    assert five.shortlist(1).tolist() == [3, 1, 0]  # in the order shown
    assert five.shortlist(-1).tolist() == [2]
    assert five.item_ids.tolist() == list("abcde")
    assert repr(five) == "StochasticLabels(5 items, 4 classes, sizes vary, None 40.0%)"
    with pytest.raises(IndexError):
        five.shortlist(5)


def test_masks():
    five = labels()
    shown = [[1, 0, 1, 0], [1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]]
    possible = [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 1, 0, 1]]
    one_hot = [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert five.shown.dtype == np.bool_
    assert five.shown.astype(int).tolist() == shown
    assert five.candidates.astype(int).tolist() == possible
    assert (five.complementary == ~five.candidates).all()
    assert five.one_hot.tolist() == one_hot
    assert five.mask([4, 0]).astype(int).tolist() == [shown[4], shown[0]]
    assert five.mask(np.array([], int)).shape == (0, 4)
    assert five.padded().tolist() == [[2, 0, 4, 4], [3, 1, 0, 4], [1, 4, 4, 4], [3, 2, 1, 0], [2, 4, 4, 4]]


def test_prior_is_the_share_of_each_answer_none_last():
    assert labels().prior.tolist() == [0.2, 0.2, 0, 0.2, 0.4]


def test_summary():
    summary = labels().summary()
    assert (summary.items, summary.num_classes, summary.none_share, summary.reads) == (5, 4, 0.4, 11)
    assert summary.answers_per_class.tolist() == [1, 1, 0, 1]
    assert summary.size_histogram == {1: 2, 2: 1, 3: 1, 4: 1}


def test_ordinary_labels_show_everything():
    ordinary = StochasticLabels.ordinary([2, 0], num_classes=3)
    assert ordinary.shown.all()
    assert ordinary.answer.tolist() == [2, 0]
    assert ordinary.reads == 6


@pytest.mark.parametrize("rows", [[3, 1], np.array([3, 1]), (3, 1), [-2, 1]])
def test_subset_in_order(rows):
    part = labels().subset(rows)
    assert [part.shortlist(row).tolist() for row in range(2)] == [[3, 2, 1, 0], [3, 1, 0]]
    assert part.answer.tolist() == [3, NONE]
    assert part.item_ids.tolist() == ["d", "b"]
    assert part.class_names == ("ant", "bee", "cat", "dog")


def test_subset_by_mask_twice_and_empty():
    five = labels()
    assert five.subset(~five.answered).item_ids.tolist() == ["b", "e"]
    assert five.subset([0, 0]).item_ids.tolist() == ["a", "a"]
    assert len(five.subset([])) == 0
    assert five.subset([]).summary().none_share == 0
    assert five.subset(4).item_ids.tolist() == ["e"]
    assert five.subset(range(5)) == five
    with pytest.raises(IndexError):
        five.subset([5])


def test_a_subset_of_numbered_rows_keeps_the_numbers():
    """Otherwise its labels would be joined to other items."""
    drawn = StochasticLabels.draw([0, 1, 2, 0], num_classes=3, size=1, seed=0)
    assert drawn.items is None
    assert drawn.subset([2, 3]).item_ids.tolist() == ["2", "3"]


def test_concatenate_undoes_a_split():
    five = labels()
    assert StochasticLabels.concatenate([five.subset([0, 1]), five.subset([2]), five.subset([3, 4])]) == five
    drawn = StochasticLabels.draw([0, 1, 2, 0], num_classes=3, size=1, seed=0)
    assert StochasticLabels.concatenate([drawn.subset([0]), drawn.subset([1, 2, 3])]) == drawn
    assert StochasticLabels.concatenate([drawn, drawn]).item_ids.tolist() == [str(row) for row in range(8)]


def test_concatenate_refuses_what_does_not_fit():
    five = labels()
    other = StochasticLabels.draw([0], num_classes=4, size=1, seed=0)
    with pytest.raises(InputError, match="at least one"):
        StochasticLabels.concatenate([])
    with pytest.raises(InputError, match="part 1 has other classes"):
        StochasticLabels.concatenate([five, other])
    with pytest.raises(InputError, match="some parts have item identifiers"):
        StochasticLabels.concatenate([other, other.subset([0])])


def test_equality():
    five = labels()
    assert five == labels()
    assert five != labels().subset([0, 1, 2, 3])
    assert five != "labels"
    with pytest.raises(TypeError):
        hash(five)


# -- making them -------------------------------------------------------------------------------------------------------


def test_a_mask_and_lists_are_two_ways_to_say_the_same():
    shown, answer = [[1, 1, 0], [0, 1, 0]], [1, NONE]
    assert StochasticLabels(shown, answer) == StochasticLabels.from_lists([[0, 1], [1]], answer, 3)
    assert StochasticLabels(np.array(shown, bool), answer) == StochasticLabels(shown, answer)
    square = np.array([[0, 1], [2, 0]], np.int32)
    made = StochasticLabels.from_lists(square, [0, NONE], 3)
    square[:] = 2
    assert made == StochasticLabels.from_lists([[0, 1], [2, 0]], [0, NONE], 3)  # a copy was kept


def test_no_items_are_labels_too():
    assert len(StochasticLabels(np.zeros((0, 3), bool), [])) == 0
    assert len(StochasticLabels.from_lists([], [], 3)) == 0
    assert len(StochasticLabels.draw([], num_classes=3, size=1, seed=0)) == 0
    assert StochasticLabels.from_lists([], [], 3).shown.shape == (0, 3)


BAD_ROWS = {
    "an answer not on its shortlist": ([[0], [1, 2]], [0, 0], "row 1: the answer 0 is not on the shortlist"),
    "a class out of range": ([[0], [1, 3]], [0, 1], r"row 1: class 3 is out of range, expected 0\.\.2"),
    "a negative class": ([[0], [-1]], [0, NONE], "row 1: class -1 is out of range"),
    "a class that int32 would wrap": ([[0], [2**32]], [0, NONE], "row 1: class 4294967296 is out of range"),
    "a class twice": ([[0], [1, 2, 1]], [0, 1], "row 1: a class is on the shortlist twice"),
    "an empty list": ([[0], []], [0, NONE], "row 1: an empty shortlist"),
    "None with all shown": ([[0], [0, 1, 2]], [0, NONE], "row 1: None, although all 3 classes were shown"),
    "an answer out of range": ([[0], [1]], [0, 3], r"answer: row 1 is 3, expected -1\.\.2"),
    "an answer below NONE": ([[0], [1]], [0, -2], "answer: row 1 is -2"),
    "float answers": ([[0], [1]], [0.0, 1.0], "answer: expected integers, got float64"),
    "float classes": ([[0], [1.0]], [0, 1], "shortlists: expected class indices"),
    "names as classes": ([["a"], ["b"]], [0, 1], "shortlists: expected class indices"),
    "nested lists": ([[0], [[1, 2]]], [0, 1], "row 1: expected a flat list"),
    "no lists": ([0, 1], [0, 1], "row 0: expected a flat list"),
    "too few answers": ([[0], [1]], [0], "answer: expected 2 of them"),
    "answers in a column": ([[0], [1]], [[0], [1]], "answer: expected 2 of them"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_named(case):
    lists, answer, message = BAD_ROWS[case]
    with pytest.raises(InputError, match=message):
        StochasticLabels.from_lists(lists, answer, 3)


@pytest.mark.parametrize(
    ("lists", "reason"),
    [([[0], [1, 1], []], "a class is on the shortlist twice"), ([[0], [], [1, 1]], "empty shortlist")],
)
def test_the_first_bad_row_is_named(lists, reason):
    with pytest.raises(InputError, match=rf"row 1: (an )?{reason}"):
        StochasticLabels.from_lists(lists, [0, NONE, NONE], 3)


def test_bad_masks_are_refused():
    for shown, message in [
        ([1, 0], r"\(N, K\) mask"),
        ([[2, 0]], "booleans"),
        ([[0.5, 1]], "booleans"),
        ([[1], [1, 0]], "lengths"),
    ]:
        with pytest.raises(InputError, match=message):
            StochasticLabels(shown, [0])
    with pytest.raises(InputError, match="row 0: an empty shortlist"):
        StochasticLabels([[0, 0]], [NONE])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_names": ["a", "b"]}, "class_names: expected 3 names, got 2"),
        ({"class_names": ["a", "b", "a"]}, "a name occurs twice"),
        ({"class_names": ["a", "b", ""]}, "a name is empty"),
        ({"class_names": ["a", "b", None]}, "a name is missing"),
        ({"class_names": ["a", "b", float("nan")]}, "a name is missing"),
        ({"class_names": "abc"}, "class_names: expected a list of names, got the text 'abc'"),
        ({"items": ["x", "y"]}, r"items: expected 1 identifiers, got shape \(2,\)"),
        ({"items": [None]}, "items: row 0 has no identifier"),
        ({"items": [float("nan")]}, "items: row 0 has no identifier"),
        ({"items": [pd.NA]}, "items: row 0 has no identifier"),
    ],
)
def test_bad_names_and_items_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        StochasticLabels.from_lists([[0]], [0], 3, **options)


@pytest.mark.parametrize("row", [[0, [1]], [[0]], 0])
def test_a_list_that_is_not_flat_is_refused(row):
    with pytest.raises(InputError, match="row 1: expected a flat list of classes"):
        StochasticLabels.from_lists([[0], row], [0, 0], 2)


@pytest.mark.parametrize("num_classes", [1, 0, -3, 2**31, 3.0, "3", True])
def test_bad_numbers_of_classes_are_refused(num_classes):
    with pytest.raises(InputError, match="num_classes"):
        StochasticLabels.from_lists([[0]], [0], num_classes)


def test_names_travel_along():
    drawn = StochasticLabels.draw([0, 1], num_classes=2, size=1, seed=0, class_names=["x", "y"], items=[7, 8])
    assert drawn.class_names == drawn.subset([0]).class_names == ("x", "y")
    assert drawn.item_ids.tolist() == ["7", "8"]
    with pytest.raises(InputError, match="the answer 'y' is not on the shortlist"):
        StochasticLabels([[1, 0]], [1], class_names=["x", "y"])


def test_importing_labels_does_not_load_torch():
    code = "import sys, shortlist, shortlist.theory, shortlist.labels.files; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert shortlist.NONE == -1
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shortlist.nothing


def test_what_the_caller_changes_later_does_not_change_the_labels():
    lists, answer, chances = np.array([[0, 1], [1, 2]]), np.array([1, NONE]), np.full(4, 0.5)
    mask, items = np.array([[True, True, False], [False, True, True]]), np.array(["a", "b"], object)
    made = [
        StochasticLabels.from_lists(lists, answer, 3, items=items, inclusion=chances),
        StochasticLabels(mask, answer, items=items),
    ]
    expected = [
        StochasticLabels.from_lists([[0, 1], [1, 2]], [1, NONE], 3, items=["a", "b"], inclusion=[0.5] * 4),
        StochasticLabels.from_lists([[0, 1], [1, 2]], [1, NONE], 3, items=["a", "b"]),
    ]
    lists[:], answer[:], chances[:], mask[:], items[:] = 0, 0, 1, False, "c"
    assert made == expected

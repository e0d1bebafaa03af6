"""y, shown and classes -> labels: NONE is a value of its own, with numbers and with text."""

import numpy as np
import pandas as pd
import pytest
import torch

from shortlist import NONE, ShortlistClassifier, StochasticLabels
from shortlist.classifier.answers import read_answers
from shortlist.errors import InputError

NAMES = ["ant", "bee", "cat"]
MASK = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0]], bool)
LISTS = [["ant", "bee"], ["ant", "cat"], ["bee", "cat"], ["ant"]]
TEXT = ["bee", "cat", NONE, NONE]
INDEX = [1, 2, NONE, NONE]
LABELS = StochasticLabels(MASK, INDEX)


def same(result, classes=NAMES) -> bool:
    labels, found = result
    return found.tolist() == list(classes) and np.array_equal(labels.shown, MASK) and labels.answer.tolist() == INDEX


@pytest.mark.parametrize(
    "y",
    [
        TEXT,
        tuple(TEXT),
        np.array(TEXT, dtype=object),
        pd.Series(TEXT),
        np.array(TEXT, dtype=object).reshape(-1, 1),
        ["bee", "cat", -1.0, np.int8(-1)],
    ],
    ids=["list", "tuple", "objects", "series", "column", "number types"],
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_text_and_none(y):
    assert same(read_answers(y, MASK, NAMES, 4))
    assert same(read_answers(y, LISTS, None, 4))
    assert same(read_answers(y, pd.DataFrame(MASK), NAMES, 4))
    assert same(read_answers(y, pd.Series(LISTS), None, 4))


def test_numbers_and_none():
    assert same(read_answers(INDEX, MASK, None, 4), range(3))
    assert same(read_answers(np.array(INDEX, float), MASK, range(3), 4), range(3))
    assert same(read_answers([20, 30, NONE, NONE], [[10, 20], [10, 30], [20, 30], [10]], None, 4), [10, 20, 30])
    assert same(read_answers([20, 30, NONE, NONE], np.array(MASK).tolist(), [10, 20, 30], 4), [10, 20, 30])


def test_stochastic_labels_may_stand_alone():
    named = StochasticLabels(MASK, INDEX, class_names=NAMES)
    assert same(read_answers(None, LABELS, None, 4), range(3))
    assert same(read_answers(None, named, None, 4))
    assert same(read_answers(TEXT, named, None, 4))
    assert same(read_answers(INDEX, named, None, 4), range(3))
    assert same(read_answers(None, LABELS, NAMES, 4))


def test_stochastic_labels_follow_the_stated_order_of_their_names():
    order = [2, 0, 1]
    other = StochasticLabels(MASK[:, order], [2, 0, NONE, NONE], class_names=[NAMES[k] for k in order])
    assert same(read_answers(None, other, NAMES, 4))


def test_classes_keep_the_stated_order():
    labels, classes = read_answers(["b", "a", NONE], [["b"], ["b", "a"], ["a"]], ["b", "z", "a"], 3)
    assert classes.tolist() == ["b", "z", "a"]
    assert labels.answer.tolist() == [0, 2, NONE]
    assert labels.shown.astype(int).tolist() == [[1, 0, 0], [1, 0, 1], [0, 0, 1]]


def test_a_mask_of_pandas_or_torch_is_a_mask():
    for mask in (pd.DataFrame(MASK), torch.from_numpy(MASK)):
        assert read_answers(INDEX, mask, None, 4)[0] == read_answers(INDEX, MASK, None, 4)[0]


def test_a_frame_without_names_goes_by_position():
    """A data frame's own numbering does not name classes, even if the classes are numbers."""
    labels, _ = read_answers([2, NONE, 1, NONE], pd.DataFrame(MASK), [2, 0, 1], 4)
    assert np.array_equal(labels.shown, MASK)


NEARLY = [(["cat", "ant", "Bee"], "'Bee' is none"), (["cat"] * 3, "'cat' is there twice")]


@pytest.mark.parametrize(("columns", "said"), NEARLY)
def test_columns_that_nearly_name_the_classes_are_refused(columns, said):
    with pytest.raises(InputError, match=said):
        read_answers(["ant", NONE, NONE, NONE], pd.DataFrame(MASK, columns=columns), NAMES, 4)


def test_the_columns_of_a_frame_say_which_class_is_which():
    frame = pd.DataFrame(MASK, columns=NAMES)[["cat", "ant", "bee"]]
    assert same(read_answers(TEXT, frame, NAMES, 4))


REFUSED = {
    "-1 as an ordinary class": ([0, 1, -1, 1], None, None, "row 2 is -1, which stands for None"),
    "-1 as text": (np.array(["ant", "-1", "bee", "cat"]), None, None, "'-1' as text"),
    "NONE that numpy made text": (np.array(TEXT), MASK, NAMES, "dtype=object keeps it"),
    "-1 among the classes": (INDEX, MASK, [-1, 1, 2], "-1 may not be a class"),
    "wrong K": (INDEX, MASK[:, :2], range(3), "a mask of 2 columns for 3 classes"),
    "K of labels": (None, LABELS, range(4), "labels of 3 classes, but there are 4"),
    "which column is which": (["ant", "bee", NONE, NONE], MASK, None, "Say classes="),
    "a class nobody stated": (["bee", "dog", NONE, NONE], MASK, NAMES, "row 1 has 'dog', which is not among the 3"),
    "a listed class nobody stated": (TEXT, [*LISTS[:3], ["dog"]], NAMES, "shown: row 3 has 'dog'"),
    "an answer not shown": (["cat", "cat", NONE, NONE], MASK, NAMES, "row 0: the answer 'cat' is not on the shortlist"),
    "None although all were shown": ([NONE, 0, 1, 2], np.ones((4, 3), bool), None, "row 0: None, although all 3"),
    "another number of answers": ([0, 1, 2], None, None, "expected 4 answers, one per item, got 3"),
    "another number of shortlists": (INDEX, MASK[:3], None, "expected 4 shortlists, one per item, got 3"),
    "text for numbers": (TEXT, MASK, range(3), "y holds text .* but the classes are numbers"),
    "text and numbers": (["ant", 3, NONE, NONE], MASK, NAMES, "mixes text and numbers"),
    "a missing answer": (["ant", None, "bee", "cat"], None, None, "missing .* written NONE"),
    "a missing answer of pandas": (["ant", pd.NA, "bee", "cat"], None, None, "missing .* written NONE"),
    "a class twice": (INDEX, MASK, [0, 1, 1], "each once"),
    "a mask of numbers": (INDEX, MASK.astype(int), None, "0 and 1 may be a mask or classes"),
    "no shortlists at all": (INDEX, [1, 2, 3, 4], None, "row 0 is 1, expected a list of classes"),
    "lists within lists": (INDEX, [[[1, 2], [3]]] * 4, None, "expected one flat list of class labels per item"),
    "a mask of three dimensions": (INDEX, np.zeros((4, 3, 2), bool), None, "expected one flat list of class labels"),
    "y against shown": ([0, 2, NONE, NONE], LABELS, None, "row 0 differs from the answer in shown"),
    "continuous": ([0.5, 1, 2, 0], None, None, "Unknown label type"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_refused_in_one_line(case):
    y, shown, classes, line = REFUSED[case]
    with pytest.raises(InputError, match=line) as caught:
        read_answers(y, shown, classes, 4)
    assert "\n" not in str(caught.value)


def test_text_classes_of_which_some_never_occur():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 3)) + 4 * np.eye(3)[truth]
    classes = np.array(["never", "cat", "bee", "ant", "nor this"])
    labels = StochasticLabels.draw(truth + 1, num_classes=5, size=2, seed=0)
    y = np.array([NONE if a == NONE else classes[a] for a in labels.answer], dtype=object)
    lists = [classes[labels.shortlist(i)].tolist() for i in range(200)]
    clf = ShortlistClassifier(random_state=0, classes=classes).fit(X, y, shown=lists)
    assert clf.classes_.tolist() == classes.tolist()
    assert clf.predict_proba(X).shape == (200, 5)
    assert (clf.predict(X) == classes[truth + 1]).mean() > 0.95
    assert clf.score(X, y) > 0.95  # None counts nothing

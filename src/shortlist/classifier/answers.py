"""From what `fit` is given (y, shown, classes) to `StochasticLabels` and the classes in their order."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.classifier.classes import Answers, BoolArray, Classes, encode, enough, flat_values, stated_classes
from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels

Shown = Any
"""An (N, K) boolean mask in the order of the classes (or in any order, as a DataFrame whose columns name them), N lists
of class labels, a StochasticLabels, or None."""


def read_answers(
    y: ArrayLike | None, shown: Shown, classes: Iterable[Any] | None, count: int
) -> tuple[StochasticLabels, Classes]:
    """The labels of `count` items and the K classes, in the order of the columns of a mask.

    Args:
        y: (count,) class labels and NONE; may be left out if `shown` is a StochasticLabels.
        shown: None for ordinary labels, where every class was shown.
        classes: all classes in their order. By default those of a StochasticLabels; or the labels that occur in y and
            the shortlists, sorted; or 0..K-1, if fewer occur than a mask has columns and all are in 0..K-1.
        count: how many items there are.
    """
    if y is None and not isinstance(shown, StochasticLabels):
        raise InputError(
            "this requires y to be passed, but the target y is None (only a StochasticLabels holds answers)"
        )
    answers = None if y is None else Answers(y)
    if answers is not None and len(answers) != count:
        raise InputError(f"y: expected {count} answers, one per item, got {len(answers)}")
    stated = None if classes is None else stated_classes(classes)
    if shown is None:
        assert answers is not None
        return _ordinary(answers, stated)
    columns = list(getattr(shown, "columns", ()))  # of a DataFrame
    if not isinstance(shown, StochasticLabels):
        shown = _as_mask_or_lists(shown)
    if len(shown) != count:
        raise InputError(f"shown: expected {count} shortlists, one per item, got {len(shown)}")
    if isinstance(shown, StochasticLabels):
        return _of_labels(answers, shown, stated)
    assert answers is not None
    if isinstance(shown, np.ndarray):
        return _of_mask(answers, shown, columns, stated)
    return _of_lists(answers, shown, stated)


def answers_in(shown: Shown, classes: Classes) -> NDArray[np.object_]:
    """(N,) the answers of a StochasticLabels as class labels and NONE."""
    count = len(shown) if isinstance(shown, StochasticLabels) else 0
    labels, _ = read_answers(None, shown, classes, count)
    answers = np.full(count, NONE, object)
    answers[labels.answered] = classes[labels.answer[labels.answered]]
    return answers


def _ordinary(answers: Answers, stated: Classes | None) -> tuple[StochasticLabels, Classes]:
    if answers.none.any():
        row = int(np.flatnonzero(answers.none)[0])
        raise InputError(
            f"y: row {row} is {NONE}, which stands for None and may not be an ordinary class: "
            "give the shortlists (shown=), or another name to the class"
        )
    classes = enough(np.unique(answers.values)) if stated is None else stated
    return StochasticLabels.ordinary(answers.encode(classes), num_classes=len(classes)), classes


def _of_mask(
    answers: Answers, mask: BoolArray, columns: list[Any], stated: Classes | None
) -> tuple[StochasticLabels, Classes]:
    classes = _classes_of(answers, mask.shape[1]) if stated is None else stated
    if mask.shape[1] != len(classes):
        raise InputError(f"shown: a mask of {mask.shape[1]} columns for {len(classes)} classes, expected one per class")
    if columns != list(range(len(columns))):  # a frame's own numbering names nothing
        mask = mask[:, _order_of(columns, classes)]
    return StochasticLabels(mask, answers.encode(classes), class_names=_names(classes)), classes


def _order_of(columns: list[Any], classes: Classes) -> list[int]:
    """The places of the classes among columns that name them; a misspelt name must not go by its position."""
    known = classes.tolist()
    for name in columns:
        if name not in known or columns.count(name) > 1:
            what = "there twice" if name in known else "none of them"
            raise InputError(
                f"shown: a data frame's columns name the classes, and {name!r} is {what}; an array goes by position"
            )
    return [columns.index(label) for label in known]


def _of_lists(answers: Answers, lists: list[list[Any]], stated: Classes | None) -> tuple[StochasticLabels, Classes]:
    values = flat_values("shown", [value for row in lists for value in row])
    sizes = np.array([len(row) for row in lists], np.int64)
    if stated is None:
        if len(values) and len(answers.values) and (values.dtype.kind == "U") != (answers.values.dtype.kind == "U"):
            raise InputError("y and the shortlists: one holds text and the other numbers, expected the same labels")
        stated = enough(np.unique(np.concatenate([values, answers.values]) if len(answers.values) else values))
    rows = np.repeat(np.arange(len(lists)), sizes)
    codes = np.split(encode("shown", values, stated, rows), np.cumsum(sizes)[:-1])
    answer = answers.encode(stated)
    return StochasticLabels.from_lists(codes, answer, len(stated), class_names=_names(stated)), stated


def _of_labels(
    answers: Answers | None, labels: StochasticLabels, stated: Classes | None
) -> tuple[StochasticLabels, Classes]:
    K, names = labels.num_classes, labels.class_names
    if stated is None:
        if answers is not None and (names is None or answers.values.dtype.kind != "U"):
            stated = _classes_of(answers, K)
        else:
            stated = np.arange(K) if names is None else np.array(names)
    elif len(stated) != K:
        raise InputError(f"shown: labels of {K} classes, but there are {len(stated)} classes")
    elif names is not None and stated.dtype.kind == "U" and tuple(stated.tolist()) != names:
        labels = _reordered(labels, encode("the class names of shown", np.array(names), stated, range(K)))
    if answers is not None:
        differ = np.flatnonzero(answers.encode(stated) != labels.answer)
        if len(differ):
            raise InputError(f"y: row {differ[0]} differs from the answer in shown; leave y out, or give both alike")
    return labels, stated


def _reordered(labels: StochasticLabels, place: NDArray[np.int64]) -> StochasticLabels:
    """The same labels, with class k moved to `place[k]`."""
    answer = np.where(labels.answered, place[labels.answer], NONE)
    lists = np.split(place[labels.classes], labels.offsets[1:-1])
    return StochasticLabels.from_lists(lists, answer, labels.num_classes, inclusion=labels.inclusion)


def _classes_of(answers: Answers, K: int) -> Classes:
    """The K classes in the order of a mask's columns: those that occur, or 0..K-1."""
    found = np.unique(answers.values)
    if len(found) == K:
        return enough(found)
    numbers = found.dtype.kind in "iuf" or not len(found)
    if len(found) < K and numbers and (found >= 0).all() and (found < K).all():
        return np.arange(K)
    raise InputError(
        f"shown is for {K} classes but y has {len(found)}, so which column is which class? Say classes= in their order"
    )


def _names(classes: Classes) -> list[str] | None:
    names = [str(value) for value in classes.tolist()]
    return names if "" not in names else None


def _as_mask_or_lists(shown: Any) -> BoolArray | list[list[Any]]:
    """A mask (two-dimensional booleans) or lists of labels (anything else); 0 and 1, which may be both, are refused."""
    if hasattr(shown, "tocsr"):
        shown = shown.toarray()
    elif hasattr(shown, "__array__"):  # pandas, torch
        shown = np.asarray(shown)
    if isinstance(shown, str) or not hasattr(shown, "__len__"):
        raise InputError(f"shown: expected a mask, shortlists or a StochasticLabels, got {type(shown).__name__}")
    if isinstance(shown, np.ndarray):
        if shown.ndim == 2 and shown.dtype == np.bool_:
            return shown
        if shown.ndim == 2 and shown.dtype.kind in "iuf" and np.isin(shown, (0, 1)).all():
            raise InputError("shown: 0 and 1 may be a mask or classes; give booleans (shown.astype(bool)) or lists")
        shown = shown.tolist()
    rows: Sequence[Any] = [row.tolist() if isinstance(row, np.ndarray) else row for row in shown]
    for i, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__iter__"):
            raise InputError(f"shown: row {i} is {row!r}, expected a list of classes (or rows of a boolean mask)")
    lists = [list(row) for row in rows]
    even = any(lists) and len(set(map(len, lists))) == 1
    if even and all(isinstance(value, bool | np.bool_) for row in lists for value in row):
        return np.array(lists, np.bool_)
    return lists

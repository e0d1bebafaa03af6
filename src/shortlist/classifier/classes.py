"""Class labels as the user writes them (text or numbers), NONE among them, and their places 0..K-1."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from shortlist.errors import InputError
from shortlist.internal.arguments import is_missing
from shortlist.labels import NONE, StochasticLabels

Classes = NDArray[Any]
"""(K,) class labels, all text or all numbers."""
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_NONE_AS_TEXT = (
    "holds '-1' as text, and -1 may not be a class: it stands for None (numpy turns NONE into text in an array of "
    "text, dtype=object keeps it)"
)


class Answers:
    """One answer per item: a class label, or NONE.

    Args:
        y: (N,) or a column; numbers, text, or objects that mix text and NONE.
    """

    def __init__(self, y: ArrayLike) -> None:
        if isinstance(y, StochasticLabels):
            raise InputError("y: a StochasticLabels is given as shown=, and y is then left out")
        column = column_or_1d(_array_of(y), warn=True)
        self.none: BoolArray = _is_none(column)
        self.values: Classes = _plain("y", column[~self.none])
        """The class labels of the answered items."""

    def __len__(self) -> int:
        return len(self.none)

    def encode(self, classes: Classes) -> IntArray:
        """(N,) places in `classes`, or NONE."""
        codes = np.full(len(self), NONE, np.int64)
        places = np.flatnonzero(~self.none)
        codes[places] = encode("y", self.values, classes, places)
        return codes


def stated_classes(classes: Iterable[Any]) -> Classes:
    """The `classes=` of the user, in their order."""
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise InputError(f"classes: expected a list of class labels, got {classes!r}")
    array = _plain("classes", np.asarray(_array_of(list(classes))))
    if array.ndim != 1 or len(np.unique(array)) != len(array):
        raise InputError("classes: expected a flat list of class labels, each once")
    return enough(array)


def enough(classes: Classes) -> Classes:
    """Refuse fewer than two classes, and NONE as a class."""
    if len(classes) < 2:
        got = "1 class" if len(classes) == 1 else "no class"
        raise InputError(f"expected at least 2 classes, got {got} (classes= names those that never occur)")
    if classes.dtype.kind not in "Ub" and (classes == NONE).any():
        raise InputError(f"classes: {NONE} may not be a class, it stands for None")
    return classes


def encode(where: str, values: Classes, classes: Classes, rows: Sequence[int] | IntArray) -> IntArray:
    """The place of each value in `classes`; `rows` are the rows that errors name."""
    if not len(values):
        return np.empty(0, np.int64)
    if (values.dtype.kind == "U") != (classes.dtype.kind == "U"):
        kinds = ("text", "numbers") if values.dtype.kind == "U" else ("numbers", "text")
        raise InputError(f"{where} holds {kinds[0]} (first {values[0].item()!r}), but the classes are {kinds[1]}")
    order = np.argsort(classes)
    places = np.minimum(np.searchsorted(classes, values, sorter=order), len(classes) - 1)
    codes: IntArray = order[places].astype(np.int64)
    wrong = np.flatnonzero(classes[codes] != values)
    if len(wrong):
        at = wrong[0]
        raise InputError(
            f"{where}: row {rows[at]} has {values[at].item()!r}, which is not among the {len(classes)} classes"
        )
    return codes


def flat_values(where: str, values: list[Any]) -> Classes:
    """A flat list of class labels as one array, all text or all numbers."""
    if any(isinstance(value, list | tuple | np.ndarray) for value in values):
        raise InputError(f"{where}: holds lists within lists, expected one flat list of class labels per item")
    return _plain(where, np.asarray(_array_of(values)))


def _array_of(y: Any) -> Any:
    """Lists of text as arrays of objects, since np.asarray(["a", -1]) turns NONE into the text '-1'."""
    if isinstance(y, list | tuple) and any(isinstance(value, str) for value in y):
        return np.array(y, dtype=object)
    return y


def _is_none(column: NDArray[Any]) -> BoolArray:
    if column.dtype.kind in "iuf":
        numbers: BoolArray = np.equal(column, NONE)
        return numbers
    if column.dtype.kind != "O":
        return np.zeros(len(column), np.bool_)
    return np.fromiter((_is_number(v) and v == NONE for v in column), np.bool_, len(column))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _plain(where: str, values: NDArray[Any]) -> Classes:
    """Values, NONE not among them, as an array of text, whole numbers or booleans."""
    if values.dtype.kind == "O":
        listed = values.tolist()
        missing = [i for i, value in enumerate(listed) if is_missing(value)]
        if missing:
            raise InputError(
                f"{where}: a value is missing ({listed[missing[0]]!r}); the answer None is written NONE (-1)"
            )
        if len({isinstance(value, str) for value in listed}) > 1:
            raise InputError(f"{where} mixes text and numbers, expected one of them (and NONE)")
        values = np.array(listed)
    if values.dtype.kind == "S":
        values = values.astype(np.str_)
    if values.dtype.kind not in "biufU":
        raise InputError(f"Unknown label type: {where} holds {values.dtype}, expected text or whole numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{where} contains NaN or infinity; the answer None is written NONE (-1)")
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        raise InputError(f"Unknown label type: {where} is continuous, expected classes (text or whole numbers)")
    if values.dtype.kind == "U" and (values == str(NONE)).any():
        raise InputError(f"{where} {_NONE_AS_TEXT}")
    return values

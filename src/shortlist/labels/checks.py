"""What labels are made of, and what they must satisfy; an error names the first row that does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError
from shortlist.internal.arguments import is_missing, whole

NONE: Final = -1
"""The answer "none of these": the true class was not on the shortlist."""

IntArray = NDArray[np.int64]
MOST_CLASSES = 2**31 - 1
"""Classes are stored as int32."""
BLOCK = 1 << 16
"""Rows that are checked at a time, so that what is sorted and compared stays small."""
MOST_MARKS = 1 << 26
"""Bytes that one mark per row (of a block) and class may take; beyond that, duplicates are found by sorting."""
ROUNDING = 1e-9
"""A probability of 1 that was added up from parts may be this much too large."""


@dataclass(frozen=True)
class LabelArrays:
    """The parts of a set of labels, as they come from a draw, a file or the user."""

    classes: NDArray[Any]
    """The shortlists one after another; row i is classes[offsets[i]:offsets[i + 1]]."""
    offsets: NDArray[Any]
    answer: ArrayLike
    num_classes: int
    class_names: Sequence[str] | None = None
    items: ArrayLike | None = None
    inclusion: ArrayLike | None = None
    """For each of `classes` the probability with which it was on its list; NaN if unknown."""


def check_rows(
    classes: NDArray[np.int32],
    offsets: IntArray,
    answer: IntArray,
    num_classes: int,
    class_names: Sequence[str] | None,
) -> None:
    """Refuse the first row that nobody could have produced."""
    names = class_names or range(num_classes)
    for start in range(0, len(answer), BLOCK):
        cuts = offsets[start : start + BLOCK + 1]
        part = slice(start, start + BLOCK)
        found = _problem(classes[cuts[0] : cuts[-1]], cuts - cuts[0], answer[part], names)
        if found is not None:
            raise InputError(f"row {start + found[0]}: {found[1]}")


def _problem(
    classes: NDArray[np.int32], offsets: IntArray, answer: IntArray, names: Sequence[object]
) -> tuple[int, str] | None:
    """The first bad row and what is wrong with it."""
    sizes, num_classes = np.diff(offsets), len(names)
    rows = np.repeat(np.arange(len(answer)), sizes)
    twice = _listed_twice(rows * num_classes + classes, len(answer) * num_classes) // num_classes
    on_list = np.zeros(len(answer), np.bool_)
    on_list[rows[classes == answer[rows]]] = True
    answered = answer != NONE
    problems: list[tuple[IntArray, Callable[[int], str]]] = [
        (np.nonzero(sizes == 0)[0], lambda row: "an empty shortlist, expected at least one class"),
        (twice, lambda row: "a class is on the shortlist twice"),
        (
            np.nonzero(answered & ~on_list)[0],
            lambda row: f"the answer {names[answer[row]]!r} is not on the shortlist",
        ),
        (
            np.nonzero(~answered & (sizes == num_classes))[0],
            lambda row: f"None, although all {num_classes} classes were shown",
        ),
    ]
    found = [(int(bad[0]), say) for bad, say in problems if len(bad)]
    if not found:
        return None
    row, say = min(found, key=lambda problem: problem[0])
    return row, say(row)


def _listed_twice(keys: IntArray, count: int) -> IntArray:
    """Which (row, class) pairs, as numbers below `count`, occur more than once."""
    if count <= MOST_MARKS:  # mostly there are none, which can be seen without sorting
        marks = np.zeros(count, np.bool_)
        marks[keys] = True
        if np.count_nonzero(marks) == len(keys):
            return np.empty(0, np.int64)
    keys = np.sort(keys)
    twice: IntArray = keys[1:][keys[1:] == keys[:-1]]
    return twice


def checked_count(num_classes: int) -> int:
    """K, if it is a possible one."""
    count = whole("num_classes", num_classes)
    if not 2 <= count <= MOST_CLASSES:
        raise InputError(f"num_classes: expected 2..{MOST_CLASSES}, got {count}")
    return count


def checked_classes(classes: NDArray[Any], offsets: IntArray, num_classes: int) -> NDArray[np.int32]:
    """Class indices: integers in range."""
    if len(classes) and not np.issubdtype(classes.dtype, np.integer):
        raise InputError(f"shortlists: expected class indices (integers), got {classes.dtype}")
    # before the cast: as an int32, 2**32 + 1 would pass for class 1
    outside = np.nonzero((classes < 0) | (classes >= num_classes))[0]
    if len(outside):
        found = classes[outside[0]]
        row = _row(offsets, outside[0])
        raise InputError(f"row {row}: class {found} is out of range, expected 0..{num_classes - 1}")
    return classes.astype(np.int32, copy=False)


def checked_names(class_names: Sequence[str] | None, num_classes: int) -> tuple[str, ...] | None:
    """K different names, none of them empty."""
    if class_names is None:
        return None
    if isinstance(class_names, str):
        raise InputError(f"class_names: expected a list of names, got the text {class_names!r}")
    given = tuple(class_names)
    if any(map(is_missing, given)):
        raise InputError("class_names: a name is missing")
    names = tuple(map(str, given))
    if len(names) != num_classes:
        raise InputError(f"class_names: expected {num_classes} names, got {len(names)}")
    if len(set(names)) != num_classes:
        raise InputError("class_names: a name occurs twice")
    if "" in names:  # in files an empty answer means None
        raise InputError("class_names: a name is empty")
    return names


def checked_items(items: ArrayLike | None, count: int) -> NDArray[np.object_] | None:
    """One identifier per row, as text."""
    if items is None:
        return None
    identifiers = np.asarray(items, dtype=object)
    if identifiers.shape != (count,):
        raise InputError(f"items: expected {count} identifiers, got shape {identifiers.shape}")
    named = identifiers.tolist()
    missing = next((row for row, item in enumerate(named) if is_missing(item)), None)
    if missing is not None:
        raise InputError(f"items: row {missing} has no identifier")
    return np.array([str(item) for item in named], dtype=object)


def checked_inclusion(inclusion: ArrayLike | None, offsets: IntArray) -> NDArray[np.float64] | None:
    """One probability per class shown, NaN if unknown; None if all are."""
    if inclusion is None:
        return None
    try:
        chances = np.asarray(inclusion, np.float64)
    except (TypeError, ValueError):
        raise InputError("inclusion: expected numbers, one for each class shown, one list after another") from None
    if chances.shape != (offsets[-1],):
        raise InputError(f"inclusion: expected {offsets[-1]} numbers, one per class shown, got shape {chances.shape}")
    known = ~np.isnan(chances)
    bad = np.nonzero(known & ~((chances > 0) & (chances <= 1 + ROUNDING)))[0]
    if len(bad):
        raise InputError(
            f"row {_row(offsets, bad[0])}: the inclusion probability of a class shown is {chances[bad[0]]}, "
            "expected above 0 and at most 1"
        )
    if not known.any():
        return None
    return np.minimum(chances, 1.0) if chances.max(initial=0, where=known) > 1 else chances


def _row(offsets: IntArray, place: Any) -> int:
    """The row whose list holds the class at a place of the flat array."""
    return int(np.searchsorted(offsets, place, side="right")) - 1

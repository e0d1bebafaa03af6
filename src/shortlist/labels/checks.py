"""What a set of stochastic labels must satisfy; the first row that does not is named."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError

NONE: Final = -1
"""The answer "None of these": the true class was not on the shortlist."""

IntArray = NDArray[np.int64]


def check_rows(
    classes: NDArray[np.int32],
    offsets: IntArray,
    answer: IntArray,
    num_classes: int,
    class_names: Sequence[str] | None,
) -> None:
    """Refuse the first row that no annotator could have produced."""
    sizes = np.diff(offsets)
    rows = np.repeat(np.arange(len(answer)), sizes)
    # two equal (row, class) pairs side by side after sorting are a class listed twice
    keys = np.sort(rows * num_classes + classes)
    twice = keys[1:][keys[1:] == keys[:-1]] // num_classes
    on_list = np.zeros(len(answer), np.bool_)
    on_list[rows[classes == answer[rows]]] = True
    answered = answer != NONE
    names = class_names or range(num_classes)
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
    if found:
        row, say = min(found, key=lambda problem: problem[0])
        raise InputError(f"row {row}: {say(row)}")


def whole(name: str, value: Any) -> int:
    """`value` as an int, refusing what is none: int(10 * 0.3) is how off-by-ones are made."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name}: expected a whole number, got {value!r}") from None


def number(name: str, value: Any) -> float:
    """`value` as a float, refusing what is none by its name."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected a number, got {value!r}") from None


def integers(name: str, values: ArrayLike, bounds: tuple[int, int]) -> IntArray:
    """`values` as int64, refusing what is no integer or not in bounds (the upper one exclusive)."""
    array: NDArray[Any] = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name}: expected integers, got {array.dtype}")
    flat = array.reshape(-1)
    outside = np.nonzero((flat < bounds[0]) | (flat >= bounds[1]))[0]
    if len(outside):
        row = int(outside[0])
        raise InputError(f"{name}: row {row} is {flat[row]}, expected {bounds[0]}..{bounds[1] - 1}")
    return array.astype(np.int64)

"""Checks of single arguments; errors name them."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError


def whole(name: str, value: Any) -> int:
    """`value` as an int; a float is refused even if it is whole, since int(100 * 0.29) is 28."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name}: expected a whole number, got {value!r}") from None


def number(name: str, value: Any) -> float:
    """`value` as a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected a number, got {value!r}") from None


def truth(name: str, value: Any) -> bool:
    """`value` as a bool; anything else is refused, since every text is true, even "no"."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}: expected true or false, got {value!r}")
    return bool(value)


def is_missing(value: Any) -> bool:
    """Whether it stands for a missing value: None, NaN, or pandas' NA, which is neither equal nor unequal to itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def integers(name: str, values: ArrayLike, bounds: tuple[int, int]) -> NDArray[np.int64]:
    """`values` as int64; other types and numbers outside the bounds (the upper one exclusive) are refused."""
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

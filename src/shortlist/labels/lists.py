"""Shortlists as two flat arrays: all classes shown, one list after another, and the offsets that cut them."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError
from shortlist.labels.checks import IntArray


def offsets_of(sizes: ArrayLike) -> IntArray:
    """(N + 1,) where each list begins, and where the last one ends.

    >>> offsets_of([2, 3])
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def from_mask(shown: ArrayLike) -> tuple[NDArray[Any], IntArray, int]:
    """(classes, offsets, K) of an (N, K) mask."""
    try:
        mask = np.asarray(shown)
    except ValueError:
        raise InputError("shown: expected an (N, K) mask, got rows of different lengths (from_lists?)") from None
    if mask.ndim != 2:
        raise InputError(f"shown: expected an (N, K) mask, got shape {mask.shape}")
    if mask.dtype != np.bool_ and not np.isin(mask, (0, 1)).all():
        raise InputError(f"shown: expected a mask of booleans (or 0 and 1), got {mask.dtype} values")
    rows, classes = np.nonzero(mask)
    return classes, offsets_of(np.bincount(rows, minlength=len(mask))), mask.shape[1]


def from_rows(shortlists: Iterable[Iterable[int]]) -> tuple[NDArray[Any], IntArray]:
    """(classes, offsets) of the lists themselves; a 2-d array where all have one size."""
    if isinstance(shortlists, np.ndarray) and shortlists.ndim == 2:
        count, size = shortlists.shape
        return shortlists.flatten(), np.arange(count + 1) * size  # a copy: the labels are not the caller's to change
    rows = [_flat(i, row) for i, row in enumerate(shortlists)]
    filled = [row for row in rows if len(row)]  # an empty row is of floats, and would make floats of all
    return np.concatenate(filled) if filled else np.empty(0, np.int64), offsets_of([len(row) for row in rows])


def _flat(i: int, row: Any) -> NDArray[Any]:
    with suppress(ValueError):  # lists and numbers side by side
        flat = np.asarray(list(row) if isinstance(row, Iterable) else row)
        if flat.ndim == 1:
            return flat
    raise InputError(f"row {i}: expected a flat list of classes, got {row!r}")

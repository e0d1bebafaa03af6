"""NumPy archives: x, y and perhaps x_test, y_test, class_names, items, items_test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import UNLABELLED, Dataset, Inputs, Kind
from shortlist.data.formats.classes import RawSplit, assemble
from shortlist.errors import InputError
from shortlist.internal.archives import read_arrays

_KNOWN = ("x", "y", "items", "x_test", "y_test", "items_test", "class_names")
MOST_COUNTED = 1_000_000
"""Numbers without names count classes from 0, up to this many; larger ones must be names, which are given as text."""


def load_npz(path: Path, test: Path | None = None, class_names: Sequence[str] | None = None) -> Dataset:
    """The dataset in an .npz file.

    `x` is uint8 images (N, C, H, W), (N, H, W, C) with 1 or 3 channels, or (N, H, W); numbers (N, D), which become
    float32; or N texts. `y` counts `class_names` from 0 or holds the names themselves; -1 or "" stands for an unknown
    class. A second file, `test`, may hold the test items as its own x and y.
    """
    arrays = read_arrays(path, _KNOWN)
    if test is not None:
        if "x_test" in arrays:
            raise InputError(f"{path} has x_test already, and the test data {test} is stated too")
        arrays |= {f"{name}_test": value for name, value in read_arrays(test, ("x", "y", "items")).items()}
    names = class_names
    if names is None and "class_names" in arrays:
        names = [str(name) for name in np.atleast_1d(arrays["class_names"]).tolist()]
    if names is None:
        names = _counted(arrays, path)
    kind, x = _inputs(arrays["x"], f"{path}: x")
    train = _raw(x, arrays.get("y"), arrays.get("items"), names, str(path))
    if "x_test" not in arrays:
        return assemble(path.stem, kind, train, None, names)
    test_kind, x_test = _inputs(arrays["x_test"], f"{test or path}: x_test")
    if test_kind != kind or _shape(x_test) != _shape(x):
        raise InputError(f"{test or path}: x_test is {test_kind} {_shape(x_test)}, x is {kind} {_shape(x)}")
    held = _raw(x_test, arrays.get("y_test"), arrays.get("items_test"), names, str(test or path))
    return assemble(path.stem, kind, train, held, names)


def _inputs(x: NDArray[Any], where: str) -> tuple[Kind, Inputs]:
    if 0 in x.shape[1:]:
        raise InputError(f"{where} has shape {x.shape}: its items hold nothing")
    if x.dtype.kind == "U" and x.ndim == 1:
        return "text", [str(text) for text in x]
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        if x.ndim == 3:
            return "image", x[:, None]
        if x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
            return "image", np.ascontiguousarray(x.transpose(0, 3, 1, 2))
        return "image", x
    if x.ndim == 2 and x.dtype.kind in "buif":
        with np.errstate(over="ignore"):  # what is too large for float32 is refused below, with its place
            features = x.astype(np.float32)
        wrong = np.argwhere(~np.isfinite(features))
        if len(wrong):
            row, column = wrong[0]
            raise InputError(f"{where} holds {features[row, column]} at row {row}, column {column}")
        return "features", features
    raise InputError(
        f"{where} has shape {x.shape} and type {x.dtype}, expected uint8 images (N, C, H, W),"
        " numbers (N, D) or a row of texts"
    )


def _raw(
    x: Inputs, y: NDArray[Any] | None, items: NDArray[Any] | None, names: Sequence[str] | None, where: str
) -> RawSplit:
    n = len(x) if isinstance(x, list) else x.shape[0]
    if y is not None and y.shape != (n,):
        raise InputError(f"{where}: y has shape {y.shape}, expected ({n},) as x has {n} items")
    if items is not None and items.shape != (n,):
        raise InputError(f"{where}: items has shape {items.shape}, expected ({n},) as x has {n} items")
    labels = [None] * n if y is None else _labels(y, names, where)
    return RawSplit(x, labels, None if items is None else [str(item) for item in items.tolist()], where)


def _labels(y: NDArray[Any], names: Sequence[str] | None, where: str) -> list[str | None]:
    if y.dtype.kind == "U":
        return [str(label) or None for label in y]
    whole = _whole(y, where)
    names = names or []
    if len(whole) and (whole.min() < UNLABELLED or whole.max() >= len(names)):
        row = int(np.flatnonzero((whole < UNLABELLED) | (whole >= len(names)))[0])
        raise InputError(f"{where}: y is {whole[row]} at row {row}, expected 0 to {len(names) - 1}")
    return [None if label == UNLABELLED else names[label] for label in whole.tolist()]


def _whole(y: NDArray[Any], where: str) -> NDArray[np.int64]:
    if y.dtype.kind not in "buif" or not np.array_equal(y, np.trunc(y.astype(np.float64))):
        raise InputError(f"{where}: y must hold whole numbers or class names, got type {y.dtype}")
    return y.astype(np.int64)


def _counted(arrays: dict[str, NDArray[Any]], path: Path) -> list[str] | None:
    """Class names "0", "1", ... up to the largest label, if labels are numbers; None if they are not."""
    labels = [arrays[name] for name in ("y", "y_test") if name in arrays]
    if not labels or any(y.dtype.kind == "U" for y in labels):
        return None
    largest = max(
        (int(y.max()) for y in labels if y.size and y.dtype.kind in "buif" and np.isfinite(y).all()), default=-1
    )
    if largest >= MOST_COUNTED:
        raise InputError(f"{path}: y holds {largest}, expected classes counted from 0; give names of them as text")
    return [str(label) for label in range(largest + 1)]


def _shape(x: Inputs) -> tuple[int, ...]:
    return () if isinstance(x, list) else tuple(x.shape[1:])

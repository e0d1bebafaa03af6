"""Features that users bring: vectors from any model, one per item, in an .npz or .parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data.formats.hugging_face import columns_of
from shortlist.data.formats.table import read_parquet
from shortlist.errors import InputError
from shortlist.internal.archives import read_arrays

Matrix = NDArray[np.float32]
Part = tuple[Matrix, list[str]]
FEATURE_SUFFIXES = (".npz", ".parquet")
SHOWN = 3
"""Missing items that an error names."""


def read_features(
    word: str | Path, items: Sequence[str], others: Sequence[str] | None = None
) -> tuple[Matrix, Matrix] | None:
    """(N, D) float32 features of `items` and of `others`, the test items; None if the word does not name such a file.

    An .npz file has `x` and `items`; also `x_test` and `items_test`, if training and test items share names. A .parquet
    file has a column `item`, and either one column of lists or columns of numbers. Rows without names are the items
    0, 1, ..., as in data without names.

    Raises:
        InputError: an item has no features, or they are not finite numbers.
    """
    path = Path(word)
    if path.suffix.lower() not in FEATURE_SUFFIXES:
        return None
    if not path.exists():
        raise InputError(f"no such file of features: {path}")
    part, test = _read_npz(path) if path.suffix.lower() == ".npz" else (_read_parquet(path), None)
    if others and test is None and (both := set(items) & set(others)):
        raise InputError(
            f"{path}: item {min(both)!r} is in the data and in the test data, expected an .npz with x and x_test"
        )
    x = _joined(path, part, items)
    if not others:
        return x, np.empty((0, x.shape[1]), np.float32)
    x_test = _joined(path, test or part, others)
    if x_test.shape[1] != x.shape[1]:
        raise InputError(f"{path}: x has {x.shape[1]} columns, x_test {x_test.shape[1]}")
    return x, x_test


def _joined(path: Path, part: Part, items: Sequence[str]) -> Matrix:
    """The rows of the items, in their order."""
    x, names = part
    place = {name: row for row, name in enumerate(names)}
    if len(place) != len(names):
        twice = next(name for row, name in enumerate(names) if place[name] != row)
        raise InputError(f"{path}: item {twice!r} occurs more than once")
    missing = [item for item in items if item not in place]
    if missing:
        shown = ", ".join(map(repr, missing[:SHOWN]))
        raise InputError(f"{path}: no features of {len(missing):,} of the {len(items):,} items, first {shown}")
    return x[np.fromiter((place[item] for item in items), np.int64, len(items))]


def _read_npz(path: Path) -> tuple[Part, Part | None]:
    found = read_arrays(path, ("x", "items", "x_test", "items_test"))
    parts = []
    for ending in ("", "_test"):
        if f"x{ending}" in found:
            x = _numbers(found[f"x{ending}"], path, f"x{ending}")
            names = [str(name) for name in np.atleast_1d(found.get(f"items{ending}", np.arange(len(x)))).tolist()]
            if len(names) != len(x):
                raise InputError(f"{path}: {len(names):,} item names for {len(x):,} rows")
            parts.append((x, names))
    return parts[0], parts[1] if len(parts) > 1 else None


def _read_parquet(path: Path) -> Part:
    table = read_parquet(path)
    named = columns_of(table.select(["item"]), path)["item"] if "item" in table.column_names else range(table.num_rows)
    names = [str(name) for name in named]
    columns = [name for name in table.column_names if name != "item"]
    if len(columns) == 1 and _is_list(table.schema.field(columns[0]).type):
        return _numbers(_lists(table.column(columns[0]), path), path, columns[0]), names
    x = np.empty((table.num_rows, len(columns)), np.float32)
    for place, name in enumerate(columns):
        if not _is_number(table.schema.field(name).type):
            raise InputError(
                f"{path}: column {name!r} is {table.schema.field(name).type}, expected numbers, or one column of lists"
            )
        x[:, place] = table.column(name).to_numpy()
    return _numbers(x, path, "the table"), names


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _lists(column: Any, path: Path) -> NDArray[Any]:
    """A column of lists of one length as a matrix."""
    lengths = set(column.combine_chunks().value_lengths().to_pylist()) if len(column) else set()
    if len(lengths) != 1 or None in lengths:
        raise InputError(
            f"{path}: expected lists of one length in every row, got lengths {sorted(map(str, lengths))[:3]}"
        )
    (length,) = lengths
    return np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]).reshape(
        -1, length
    )


def _numbers(x: NDArray[Any], path: Path, what: str) -> Matrix:
    if x.ndim != 2 or x.shape[1] < 1 or x.dtype.kind not in "buif":
        raise InputError(f"{path}: {what} has shape {x.shape} and type {x.dtype}, expected numbers, items by features")
    with np.errstate(over="ignore"):
        numbers = x.astype(np.float32, copy=False)
    finite = np.isfinite(numbers).all(axis=1)
    if not finite.all():
        raise InputError(f"{path}: {what} holds a number that is missing or infinite at row {int(finite.argmin())}")
    return numbers

"""What one has before anybody answers: labels and scores from files, matched to items and classes by name."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.data import item_names, read_table
from shortlist.errors import InputError, unknown_name

IntArray = NDArray[np.int64]
Matrix = NDArray[np.float32]


def read_known(path: Path, items: Sequence[str], class_names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Rows and classes of the items whose class is known: a table with the columns `item` and `class` (or `label`).

    Items that are not among these are left out: a file may be of more than this project.
    """
    table = read_table(path)
    column = next((name for name in ("class", "label") if name in table), None)
    names = item_names(table, path)
    if column is None or names is None:
        raise InputError(f"{path}: expected the columns item and class, found {', '.join(table)}")
    places, classes = _places(items), _places(class_names)
    known: dict[int, int] = {}
    for line, (item, value) in enumerate(zip(names, table[column], strict=True), 1):
        if str(value) not in classes:
            raise InputError(f"{path}: row {line}: {unknown_name('class', str(value), class_names)}")
        row = places.get(item)
        if row is None:
            continue
        if known.setdefault(row, classes[str(value)]) != classes[str(value)]:
            raise InputError(f"{path}: row {line}: item {item!r} has another class further up")
    if not known:
        raise InputError(f"{path}: none of its items is in the data, whose first is {items[0]!r}")
    rows = np.array(sorted(known), np.int64)
    return rows, np.array([known[int(row)] for row in rows], np.int64)


def read_scores(path: Path, items: Sequence[str], class_names: Sequence[str]) -> Matrix:
    """(N, K) scores of any model: a table with a column `item` and one column per class, or an .npz of the same.

    Classes without a column, items without a row and empty cells are NaN: the scores say nothing of them. An .npz
    has `scores` (items by classes) and, unless they are in the order of the data, `items` and `classes`.
    """
    scores, rows, columns = _read_npz(path) if path.suffix.lower() == ".npz" else _read_columns(path)
    places, classes = _places(items), _places(class_names)
    if columns is not None and not set(columns) & set(classes):
        raise InputError(f"{path}: none of its columns is a class: expected {class_names[0]!r} and the like")
    for found, given, what in ((rows, items, "items"), (columns, class_names, "classes")):
        if found is None and scores.shape[0 if what == "items" else 1] != len(given):
            raise InputError(f"{path}: scores of shape {scores.shape} without {what}, expected {len(given)} {what}")
    rows = list(items) if rows is None else rows
    columns = list(class_names) if columns is None else columns
    table = np.full((len(items), len(class_names)), np.nan, np.float32)
    mine = [(i, places[item]) for i, item in enumerate(rows) if item in places]
    theirs = [(j, classes[name]) for j, name in enumerate(columns) if name in classes]
    if not mine:
        raise InputError(f"{path}: none of its items is in the data, whose first is {items[0]!r}")
    (i, to_rows), (j, to_columns) = (np.array(pairs).T for pairs in (mine, theirs))
    table[np.ix_(to_rows, to_columns)] = scores[np.ix_(i, j)]
    if np.isinf(table).any():
        row, column = (int(place[0]) for place in np.nonzero(np.isinf(table)))
        raise InputError(f"{path}: item {items[row]!r}, class {class_names[column]!r} is infinite, expected a number")
    return table


def _read_columns(path: Path) -> tuple[NDArray[np.float32], list[str], list[str]]:
    table = read_table(path)
    names = item_names(table, path)
    if names is None:
        raise InputError(f"{path}: expected a column item beside one column per class, found {', '.join(table)}")
    columns = [name for name in table if name != "item"]
    scores = np.array(
        [[_number(value, path, row, name) for row, value in enumerate(table[name], 1)] for name in columns]
    )
    return scores.T.astype(np.float32), names, columns


def _number(value: object, path: Path, row: int, column: str) -> float:
    if value is None or value == "":
        return np.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{path}: row {row}, column {column}: expected a number or nothing, got {value!r}") from None


def _read_npz(path: Path) -> tuple[NDArray[np.float32], list[str] | None, list[str] | None]:
    try:
        with np.load(path) as content:
            if "scores" not in content or content["scores"].ndim != 2:
                raise InputError(f"{path}: expected an array scores of items by classes, found {', '.join(content)}")
            named = [[str(n) for n in content[key]] if key in content else None for key in ("items", "classes")]
            return content["scores"].astype(np.float32), named[0], named[1]
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as .npz: {error}") from error


def _places(names: Sequence[str]) -> dict[str, int]:
    return {str(name): place for place, name in enumerate(names)}

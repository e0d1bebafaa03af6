"""What one has before anybody answers: labels from a file, matched to items and classes by name."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.data import item_names, read_table
from shortlist.errors import InputError, unknown_name

IntArray = NDArray[np.int64]


def read_known(path: Path, items: Sequence[str], class_names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Rows and classes of the items whose class is known: a table with the columns `item` and `class` (or `label`).

    Items that are not among these are left out: a file may be of more than this project.
    """
    table = read_table(path)
    column = next((name for name in ("class", "label") if name in table), None)
    names = item_names(table, path)
    if column is None or names is None:
        raise InputError(f"{path}: expected the columns item and class, found {', '.join(table)}")
    places, classes = places_of(items), places_of(class_names)
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


def places_of(names: Sequence[str]) -> dict[str, int]:
    """Where each name stands."""
    return {str(name): place for place, name in enumerate(names)}

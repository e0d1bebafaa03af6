"""Labels that are there before anybody answers: read from a file, and matched to items and classes by name."""

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import item_names, read_table
from shortlist.errors import InputError, unknown_name
from shortlist.internal.arguments import is_missing
from shortlist.internal.files import first_row

_LOG = logging.getLogger(__name__)
IntArray = NDArray[np.int64]


def read_known(
    path: Path,
    items: Sequence[str],
    class_names: Sequence[str],
    item_column: str | None = None,
    table_of_items: str | Path | None = None,
) -> tuple[IntArray, IntArray]:
    """The rows and the classes of the items whose class is known.

    Rows without a class are left out. So are items that are not among `items`, as a file may be about more than this
    project; a warning says how many.

    Args:
        path: a table with a column `item` and a column `class` (or `label`, or any one that holds nothing but classes).
        items: the names of the items.
        class_names: the classes.
        item_column: the column that names the items, if this file has it under that name, too.
        table_of_items: the file that the items were read from; if it is this one, its rows need no names.
    """
    table = read_table(path)
    column = _class_column(table, path, class_names)
    names = item_names(table, path, item_column if item_column in table else None)
    if names is None and table_of_items is not None and Path(table_of_items).resolve() == path.resolve():
        names = [str(row) for row in range(len(table[column]))]
    if names is None:
        raise InputError(
            f"{path} has no column {item_column or 'item'!r} (its columns: {', '.join(table)}), by which its rows are "
            "matched with the items"
        )
    places, classes = places_of(items), places_of(class_names)
    known: dict[int, int] = {}
    elsewhere = []
    for line, (item, value) in enumerate(zip(names, table[column], strict=True), first_row(path)):
        label = _as_class(value, classes)
        if not label:
            continue
        if label not in classes:
            raise InputError(f"{path}: row {line}: {unknown_name('class', label, class_names)}")
        row = places.get(item)
        if row is None:
            elsewhere.append(item)
        elif known.setdefault(row, classes[label]) != classes[label]:
            raise InputError(f"{path}: row {line}: item {item!r} has another class further up")
    if not known and not elsewhere:
        raise InputError(f"{path}: no row has a class")
    if not known:
        raise InputError(f"{path}: none of its items is in the data, whose first is {items[0]!r}")
    if elsewhere:
        _LOG.warning(
            "%s: %d of %d rows are of none of the %d items to label, first %r: they are left out",
            *(path, len(elsewhere), len(names), len(items), elsewhere[0]),
        )
    rows = np.array(sorted(known), np.int64)
    return rows, np.array([known[int(row)] for row in rows], np.int64)


def places_of(names: Sequence[str]) -> dict[str, int]:
    """The position of each name."""
    return {str(name): place for place, name in enumerate(names)}


def _class_column(table: Mapping[str, Sequence[Any]], path: Path, class_names: Sequence[str]) -> str:
    """The name of the column of classes: `class`, `label`, or else the only one that holds nothing but classes."""
    for name in ("class", "label"):
        if name in table:
            return name
    classes = {*class_names, ""}
    held = {name: {_as_class(value, classes) for value in values} for name, values in table.items()}
    found = [name for name, values in held.items() if {""} != values <= classes]
    if len(found) > 1:
        raise InputError(f"{path} has several columns of classes ({', '.join(found)}): call one of them 'class'")
    if not found:
        columns = f"its columns: {', '.join(table)}"
        raise InputError(f"{path} has no column 'class' or 'label', nor another of nothing but classes ({columns})")
    return found[0]


def _as_class(value: Any, classes: Collection[str]) -> str:
    """The class in a cell; pandas writes whole numbers as 3.0 if others in the column are missing."""
    text = "" if is_missing(value) else str(value).strip()
    return text if text in classes else text.removesuffix(".0")

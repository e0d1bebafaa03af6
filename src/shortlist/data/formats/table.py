"""Tables: one row per item, with a column of texts or of image paths."""

from __future__ import annotations

import csv
import json
import logging
import math
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from shortlist.data.dataset import Dataset, Inputs
from shortlist.data.formats.classes import MISSING, RawSplit, assemble
from shortlist.data.formats.excel import read_excel
from shortlist.data.formats.hugging_face import columns_of, is_hugging_face, read_hugging_face
from shortlist.data.formats.images import ImageSize, StoredImage, read_splits
from shortlist.errors import InputError
from shortlist.internal.cells import plain_cell
from shortlist.internal.files import allow_long_fields, first_row, separator_of
from shortlist.internal.reasons import reason

_LOG = logging.getLogger(__name__)
Table = dict[str, list[Any]]
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx")
NAMING = frozenset({"item", "label", "class", "gold"})
"""Columns of names. In our own CSV files they are guarded so that a spreadsheet does not run them."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns; None stands for the usual name."""

    text: str | None = None
    image: str | None = None
    label: str | None = None
    item: str | None = None


def load_table(
    path: Path,
    test: Path | None = None,
    columns: Columns | None = None,
    image_size: ImageSize = None,
    class_names: Sequence[str] | None = None,
) -> Dataset:
    """The rows of a file as a dataset of texts or images."""
    files = [path] if test is None else [path, test]
    return dataset_of(path.stem, files, [read_table(file) for file in files], columns, image_size, class_names)


def dataset_of(
    name: str,
    files: list[Path],
    tables: list[Table],
    columns: Columns | None = None,
    image_size: ImageSize = None,
    class_names: Sequence[str] | None = None,
) -> Dataset:
    """Tables that were read from files, the second one with the test items, as a dataset of texts or images."""
    columns = columns or Columns()
    path, test = files[0], files[-1]
    kinds = [_input_column(table, file, columns) for table, file in zip(tables, files, strict=True)]
    if len(set(kinds)) > 1:
        raise InputError(f"{test} has the column {kinds[1][1]!r}, {path} has {kinds[0][1]!r}: they must agree")
    kind, column = kinds[0]
    cells = [table[column] for table in tables]
    inputs: Sequence[Inputs]
    if kind == "text":
        inputs = [_texts(values, file) for values, file in zip(cells, files, strict=True)]
    else:
        paths = [_images(values, file) for values, file in zip(cells, files, strict=True)]
        inputs = read_splits(paths, image_size)
    raws = [
        RawSplit(x, _labels(table, file, columns), item_names(table, file, columns.item), str(file))
        for x, table, file in zip(inputs, tables, files, strict=True)
    ]
    return assemble(name, kind, raws[0], raws[1] if len(raws) > 1 else None, class_names)  # type: ignore[arg-type]


def is_table(path: Path) -> bool:
    """Whether `read_table` reads it: a file with such an ending, or a folder that Hugging Face's datasets saved."""
    return path.suffix.lower() in TABLE_SUFFIXES or is_hugging_face(path)


def read_table(path: Path) -> Table:
    """The columns of a table (of its training part), each a list of values."""
    if is_hugging_face(path):
        return read_hugging_face(path)[0]
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(f"{path} is no table: expected one of {', '.join(TABLE_SUFFIXES)}")
    try:
        if suffix in (".csv", ".tsv"):
            return _read_csv(path, "\t" if suffix == ".tsv" else None)
        if suffix == ".jsonl":
            return _read_jsonl(path)
        if suffix == ".json":
            return _read_json(path)
        if suffix == ".xlsx":
            return read_excel(path)
        return columns_of(read_parquet(path), path)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start} (in Excel: save it as CSV UTF-8)"
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _read_csv(path: Path, delimiter: str | None) -> Table:
    """With the delimiter stated, or the one that the first line shows."""
    allow_long_fields()
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            if delimiter is None:
                delimiter = separator_of(handle.readline())
                handle.seek(0)
            reader = csv.reader(handle, delimiter=delimiter, strict=True)
            header = next(reader, None)
            if not header:
                raise InputError(f"{path} is empty, expected a line of column names")
            for name, mark in (("semicolons", ";"), ("tabs", "\t"), ("commas", ","), ("bars", "|")):
                if len(header) == 1 and mark != delimiter and mark in header[0]:
                    expected = "tabs, as in every .tsv" if delimiter == "\t" else "commas (tabs in a file named .tsv)"
                    raise InputError(f"{path}: its columns are separated by {name}, expected {expected}")
            header = [name.strip() for name in header]  # a space after the comma is no part of a name
            if len(set(header)) != len(header):
                raise InputError(f"{path} names a column twice: {', '.join(header)}")
            rows = []
            for row in reader:
                if not row:  # an empty line
                    continue
                if len(row) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(row)} values, the first line names {len(header)}"
                    )
                rows.append(row)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from error
    plain = {name: plain_cell if name in NAMING else str for name in header}
    return {name: [plain[name](row[i]) for row in rows] for i, name in enumerate(header)}


def _read_jsonl(path: Path) -> Table:
    rows: list[dict[str, Any]] = []
    with path.open(encoding="utf-8-sig") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError(f"{path}, line {number} is not JSON: {error.msg}") from error
            except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists in lists
                raise InputError(f"{path}, line {number} cannot be read: {error}") from error
            if not isinstance(row, dict):
                raise InputError(f"{path}, line {number} must be a JSON object, got {type(row).__name__}")
            rows.append(row)
    return _columns(rows, path)


def _read_json(path: Path) -> Table:
    """An array of objects."""
    text = path.read_text(encoding="utf-8-sig")
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        hint = ", an object on each line belongs into a .jsonl file" if error.msg == "Extra data" else ""
        raise InputError(f"{path}, line {error.lineno} is not JSON: {error.msg}{hint}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists in lists
        raise InputError(f"{path} cannot be read: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: expected a JSON array of objects, one per item")
    return _columns(rows, path)


def _columns(rows: list[dict[str, Any]], path: Path) -> Table:
    if not rows:
        raise InputError(f"{path} holds no items")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def read_parquet(path: Path) -> Any:
    """An Arrow table."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        _ = table.column_names  # names that are not UTF-8 fail only when they are asked for
        return table
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a Parquet file, or is damaged: {reason(error)}") from error


def _input_column(table: Table, path: Path, columns: Columns) -> tuple[str, str]:
    """("text" or "image", the name of its column)."""
    if columns.text is not None and columns.image is not None:
        raise InputError("state a text column or an image column, not both")
    stated = columns.text or columns.image
    if stated is not None:
        _require(table, path, stated)
        return ("text" if columns.text else "image"), stated
    present = [name for name in ("text", "image") if name in table]
    if len(present) == 1:
        return present[0], present[0]
    what = "both a text and an image column" if present else "no column 'text' or 'image'"
    raise InputError(
        f"{path} has {what} (its columns: {', '.join(table)}): "
        "state which by text_column or image_column (--text-column, --image-column)"
    )


def _require(table: Table, path: Path, name: str) -> None:
    if name not in table:
        raise InputError(f"{path} has no column {name!r} (its columns: {', '.join(table)})")


def _tell_alike(table: Table, path: Path, name: str) -> None:
    """Warn about a column that has nearly the name that was looked for."""
    for other in table:
        if other.strip().casefold() == name:
            _LOG.warning("%s: the column %r is not read, as it is not named %r: --%s-column", path, other, name, name)


def _texts(values: list[Any], path: Path) -> list[str]:
    texts = []
    for row, value in enumerate(values, first_row(path)):
        if isinstance(value, list | dict | bytes):
            raise InputError(f"{path}: row {row} has no text, got {reprlib.repr(value)}")
        texts.append("" if value is None else str(value))  # a workbook holds a text such as 42 as a number
    rows = enumerate(map(str.strip, texts), first_row(path))
    empty = [row for row, value in rows if not value or value.casefold() in MISSING]
    if empty:
        _LOG.warning(
            "%s: %d texts are empty or read %r, first row %d: they are kept, and tell a model nothing",
            *(path, len(empty), "nan", empty[0]),
        )
    return texts


def _labels(table: Table, path: Path, columns: Columns) -> list[str | None]:
    if columns.label is not None:
        _require(table, path, columns.label)
    name = columns.label or "label"
    if name not in table:
        _tell_alike(table, path, name)
        return [None] * len(next(iter(table.values()), []))
    labels = [_name(value, path, row, "label") for row, value in enumerate(table[name], first_row(path))]
    # next to missing values pandas writes the class 3 to a CSV as 3.0
    if all(label is None or re.fullmatch(r"-?[0-9]+\.0", label) for label in labels):
        return [label and label.removesuffix(".0") for label in labels]
    return labels


def _name(value: Any, path: Path, row: int, what: str) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float | Decimal | date):
        return str(value)
    raise InputError(f"{path}: row {row} has the {what} {reprlib.repr(value)}, expected a name or a number")


def item_names(table: Table, path: Path, column: str | None = None) -> list[str] | None:
    """The names of the rows, from the column stated or from `item`; None if there is no such column."""
    if column is not None:
        _require(table, path, column)
    values = table.get(column or "item")
    if values is None:
        _tell_alike(table, path, "item")
        return None
    items = [_name(value, path, row, "item") for row, value in enumerate(values, first_row(path))]
    if None in items:
        raise InputError(f"{path}: row {items.index(None) + first_row(path)} has no item name")
    return [item for item in items if item is not None]


def _images(values: list[Any], path: Path) -> list[Path | StoredImage]:
    return [_image(value, path, row) for row, value in enumerate(values, first_row(path))]


def _image(value: Any, path: Path, row: int) -> Path | StoredImage:
    """An image given by its path or its bytes; in Hugging Face's tables by a dict of both."""
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return StoredImage(value, f"{path}, row {row}")
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{path}: row {row} has no image, expected the path of one, or its bytes")
    return path.parent / value

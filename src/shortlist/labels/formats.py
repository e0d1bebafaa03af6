"""The three formats of a labels file, .csv, .jsonl and .parquet: rows of text in, rows of text out."""

import csv
import io
import json
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shortlist.errors import InputError
from shortlist.internal.cells import guard_cell, plain_cell
from shortlist.internal.files import separator_of
from shortlist.internal.names import KNOWN, split_names
from shortlist.internal.reasons import reason

COLUMNS = ("item", "shortlist", "answer")
"""Columns that every file has."""
OPTIONAL = ("classes", "probabilities", "typed")
POLICY = "policy"
"""A column of annotation exports: what chose the list, or `known/1` if the class was known and nobody was asked."""


@dataclass
class Record:
    """One row of a file: text, not yet looked up among the classes."""

    where: str
    item: str
    shown: list[str]
    """The shortlist, then what was typed."""
    answer: str
    """What was picked or typed."""
    classes: str
    probabilities: str
    known: bool
    """Whether the class was known, so that nobody was asked."""


# -- writing ---------------------------------------------------------------------------------------------------------


def _write_csv(path: Path, columns: dict[str, list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        # CRLF line ends make the csv module quote both \r and \n inside a field
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(columns)
        writer.writerows(map(guard_cell, row) for row in zip(*columns.values(), strict=True))


def _write_jsonl(path: Path, columns: dict[str, list[str]]) -> None:
    with path.open("w", newline="\n", encoding="utf-8") as file:
        for row in zip(*columns.values(), strict=True):
            record = {key: value for key, value in zip(columns, row, strict=True) if key not in OPTIONAL or value}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, columns: dict[str, list[str]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), path)


# -- reading ---------------------------------------------------------------------------------------------------------


def _read_csv(data: bytes) -> Iterator[Record]:
    text = data.decode("utf-8-sig")
    lines = io.StringIO(text, newline="")
    mark = separator_of(lines.readline())
    lines.seek(0)
    reader = csv.DictReader(lines, delimiter=mark, strict=True)
    try:
        _require(reader.fieldnames or ())
        rows = [(f"row {reader.line_num}", row) for row in reader]
    except csv.Error as error:
        # of the inner reader: the outer one is still at the row before
        raise InputError(f"row {reader.reader.line_num}: not CSV: {error}") from error
    for where, row in rows:
        if None in row:
            raise InputError(f"{where}: more fields than columns")
        # a row cut short would otherwise pass for a None answer
        missing = [name for name in COLUMNS if row[name] is None]
        if missing:
            raise InputError(f"{where}: ends before the column {missing[0]!r}")
        yield _record(where, {name: plain_cell(value) for name, value in row.items() if value is not None})


def _read_jsonl(data: bytes) -> Iterator[Record]:
    text = data.decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: a name may contain U+2028
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"row {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise InputError(f"row {number}: expected an object with the keys {', '.join(COLUMNS)}")
        _require(row, f"row {number}: ")
        yield _record(f"row {number}", row)


def _read_parquet(data: bytes) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
        _require(table.column_names)
        keep = [name for name in (*COLUMNS, *OPTIONAL, POLICY) if name in table.column_names]
        table = table.select(keep)
    except InputError:
        raise
    except Exception as error:  # broken bytes make the parser raise nearly anything
        raise InputError(f"not a Parquet file: {reason(error)}") from error
    columns = [_values(table.column(name)) for name in keep]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        yield _record(f"row {number}", dict(zip(keep, row, strict=True)))


def _values(column: Any) -> list[Any]:
    with suppress(Exception):
        return list(column.to_pylist())
    values = []
    for number in range(len(column)):  # slow, but finds the row
        try:
            values.append(column[number].as_py())
        except UnicodeDecodeError as error:
            raise InputError(f"row {number + 1}: broken encoding, not UTF-8") from error
        except Exception as error:
            raise InputError(f"row {number + 1}: cannot be read: {reason(error)}") from error
    return values


def _require(columns: Iterable[str], where: str = "") -> None:
    present = set(columns)
    missing = [name for name in COLUMNS if name not in present]
    if missing:
        raise InputError(f"{where}no column {missing[0]!r}, expected the columns {', '.join(COLUMNS)}")


def _record(where: str, row: dict[str, Any]) -> Record:
    fields = {name: "" if row.get(name) is None else row[name] for name in (*COLUMNS, *OPTIONAL)}
    shortlist = fields.pop("shortlist")
    # other programs write lists
    if isinstance(shortlist, list):
        shown = [_text(name, "shortlist", where) for name in shortlist]
    else:
        shown = split_at(_text(shortlist, "shortlist", where), where)
    if "" in shown:
        raise InputError(f"{where}: an empty class name on the shortlist {shortlist!r}")
    if isinstance(chances := fields["probabilities"], list | float):
        listed = chances if isinstance(chances, list) else [chances]
        fields["probabilities"] = "|".join("" if chance is None else str(chance) for chance in listed)
    texts = {name: _text(value, name, where) for name, value in fields.items()}
    typed = texts.pop("typed")
    record = Record(where, **texts, shown=shown, known=row.get(POLICY) == KNOWN)
    if typed:
        _take_typed(record, typed)
    elif not shown:
        raise InputError(f"{where}: an empty shortlist, expected at least one class")
    return record


def _take_typed(record: Record, typed: str) -> None:
    """Make the class that was typed the answer."""
    if record.answer not in ("", typed):
        raise InputError(f"{record.where}: {record.answer!r} was picked and {typed!r} typed, expected one of them")
    record.answer = typed
    if typed not in record.shown:
        record.shown.append(typed)
        record.probabilities += "|" if record.probabilities else ""


def split_at(names: str, where: str) -> list[str]:
    """Names joined by `|`; an error names the row."""
    try:
        return split_names(names)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: {name} has {reprlib.repr(value)}, expected text")
    text = str(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # JSON can hold half of a surrogate pair
            raise InputError(f"{where}: broken encoding, {name} is not UTF-8") from None
    return text


Reader = Callable[[bytes], Iterator[Record]]
Writer = Callable[[Path, dict[str, list[str]]], None]

_FORMATS: dict[str, tuple[Reader, Writer]] = {
    ".csv": (_read_csv, _write_csv),
    ".jsonl": (_read_jsonl, _write_jsonl),
    ".parquet": (_read_parquet, _write_parquet),
}


def format_of(path: Path) -> tuple[Reader, Writer]:
    """How a file is read and written, by its ending."""
    try:
        return _FORMATS[path.suffix.lower()]
    except KeyError:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected .csv, .jsonl or .parquet") from None

r"""Files of labels: .csv, .jsonl and .parquet with the columns `item`, `shortlist` and `answer`.

A shortlist is class names (or indices) joined by `|`; `\|` and `\\` stand for those characters inside a name. An empty
answer is None. Which classes there are at all, shown or not, stands in a fourth column, `classes`, of the first row:
the names, or just their number. A file that states them has said whether its rows hold names or indices; where it does
not, rows of nothing but whole numbers hold indices. Other columns (who answered, how fast) are left alone, so an
annotation export is a labels file too. Messages count the rows of text files as an editor does, header included.
"""

import csv
import io
import itertools
import json
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.errors import InputError
from shortlist.files import allow_long_fields, atomic_path
from shortlist.labels.checks import NONE
from shortlist.labels.stochastic import StochasticLabels

COLUMNS = ("item", "shortlist", "answer")
MOST_INDICES = 100_000_000
"""More classes than this are a slip of the keyboard, not a file of labels."""
_TOKEN = re.compile(r"(?:[^\\|]|\\.)*", re.DOTALL)


@dataclass
class Record:
    """One row as it stands in a file: text, not yet looked up among the classes."""

    where: str
    item: str
    shortlist: str
    answer: str
    classes: str


def join_names(names: Iterable[str]) -> str:
    r"""Names joined by `|`, with `|` and `\` escaped.

    >>> join_names(["cat", "a|b"])
    'cat|a\\|b'
    """
    return "|".join(name.replace("\\", "\\\\").replace("|", "\\|") for name in names)


def split_names(text: str) -> list[str]:
    r"""Undo `join_names`; the empty text is the empty list.

    >>> split_names('cat|a\\|b')
    ['cat', 'a|b']
    """
    if "\\" not in text:
        return text.split("|") if text else []
    names: list[str] = []
    position = 0
    while position <= len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the pattern matches the empty text
        names.append(re.sub(r"\\(.)", r"\1", match.group(), flags=re.DOTALL))
        if match.end() < len(text) and text[match.end()] != "|":
            raise InputError(f"the list {text!r} ends in a lone backslash")
        position = match.end() + 1
    return names


# -- writing ---------------------------------------------------------------------------------------------------------


def write_labels(labels: StochasticLabels, path: str | os.PathLike[str]) -> None:
    """Write `labels` to `path`, whole or not at all; the ending decides the format."""
    _, write = _format(Path(path))
    if not len(labels):
        raise InputError(f"{path}: no labels to write")
    try:
        with atomic_path(path) as temporary:
            write(temporary, _columns(labels))
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: a name or item cannot be written as UTF-8 ({error.reason})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _columns(labels: StochasticLabels) -> dict[str, list[str]]:
    names = [str(k) for k in range(labels.num_classes)] if labels.class_names is None else labels.class_names
    escaped = [join_names([name]) for name in names]
    cuts = labels.offsets.tolist()
    shown = [escaped[k] for k in labels.classes.tolist()]
    classes = str(labels.num_classes) if labels.class_names is None else "|".join(escaped)
    return {
        "item": labels.item_ids.tolist(),
        "shortlist": ["|".join(shown[a:b]) for a, b in itertools.pairwise(cuts)],
        "answer": ["" if k == NONE else names[k] for k in labels.answer.tolist()],
        "classes": [classes] + [""] * (len(labels) - 1),
    }


def _write_csv(path: Path, columns: dict[str, list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        # CRLF line ends make the csv module quote both \r and \n inside a field
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_jsonl(path: Path, columns: dict[str, list[str]]) -> None:
    with path.open("w", newline="\n", encoding="utf-8") as file:
        for row in zip(*columns.values(), strict=True):
            record = {key: value for key, value in zip(columns, row, strict=True) if key != "classes" or value}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_parquet(path: Path, columns: dict[str, list[str]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), path)


# -- reading ---------------------------------------------------------------------------------------------------------


def read_labels(
    path: str | os.PathLike[str], *, class_names: Sequence[str] | None, num_classes: int | None
) -> StochasticLabels:
    """Read a file of labels; see `StochasticLabels.read`."""
    source = Path(path)
    read, _ = _format(source)
    try:
        data = source.read_bytes()
    except (OSError, ValueError) as error:  # a ValueError for a path with a zero byte
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not data.strip():
        raise InputError(f"{path}: the file is empty, expected the columns {', '.join(COLUMNS)}")
    try:
        records = list(read(data))
        if not records:
            raise InputError("the file has columns but no rows")
        return _assemble(records, class_names, num_classes)
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: row {row}: broken encoding, not UTF-8 at byte {error.start}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error.__cause__


def _read_csv(data: bytes) -> Iterator[Record]:
    text = data.decode("utf-8-sig")
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    allow_long_fields()
    try:
        _require(reader.fieldnames or ())
        rows = [(f"row {reader.line_num}", row) for row in reader]
    except csv.Error as error:
        # the inner reader: the outer one still stands at the row before
        raise InputError(f"row {reader.reader.line_num}: not CSV: {error}") from error
    for where, row in rows:
        if None in row:
            raise InputError(f"{where}: more fields than columns")
        # a row cut short would otherwise pass for a None answer
        missing = [name for name in COLUMNS if row[name] is None]
        if missing:
            raise InputError(f"{where}: ends before the column {missing[0]!r}")
        yield _record(where, row)


def _read_jsonl(data: bytes) -> Iterator[Record]:
    text = data.decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: U+2028 may stand inside a name
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
        keep = [name for name in (*COLUMNS, "classes") if name in table.column_names]
        table = table.select(keep)
    except InputError:
        raise
    except Exception as error:  # broken bytes make the parser raise nearly anything
        raise InputError(f"not a Parquet file: {_first_line(error)}") from error
    columns = [_values(table.column(name)) for name in keep]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        yield _record(f"row {number}", dict(zip(keep, row, strict=True)))


def _values(column: Any) -> list[Any]:
    with suppress(Exception):
        return list(column.to_pylist())
    values = []
    for number in range(len(column)):  # slow, but knows the row
        try:
            values.append(column[number].as_py())
        except UnicodeDecodeError as error:
            raise InputError(f"row {number + 1}: broken encoding, not UTF-8") from error
        except Exception as error:
            raise InputError(f"row {number + 1}: cannot be read: {_first_line(error)}") from error
    return values


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _require(columns: Iterable[str], where: str = "") -> None:
    present = set(columns)
    missing = [name for name in COLUMNS if name not in present]
    if missing:
        raise InputError(f"{where}no column {missing[0]!r}, expected the columns {', '.join(COLUMNS)}")


def _record(where: str, row: dict[str, Any]) -> Record:
    fields = {name: "" if row.get(name) is None else row[name] for name in (*COLUMNS, "classes")}
    if isinstance(fields["shortlist"], list):  # other programs write lists; we take them
        fields["shortlist"] = join_names(_text(name, "shortlist", where) for name in fields["shortlist"])
    return Record(where, **{name: _text(value, name, where) for name, value in fields.items()})


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: {name} has {reprlib.repr(value)}, expected text")
    text = str(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # JSON can escape half a surrogate pair
            raise InputError(f"{where}: broken encoding, {name} is not UTF-8") from None
    return text


def _assemble(records: list[Record], class_names: Sequence[str] | None, num_classes: int | None) -> StochasticLabels:
    lists: list[list[str]] = []
    for record in records:
        try:
            lists.append(split_names(record.shortlist))
        except InputError as error:
            raise InputError(f"{record.where}: {error}") from error
        if not lists[-1]:
            raise InputError(f"{record.where}: an empty shortlist, expected at least one class")
        if "" in lists[-1]:
            raise InputError(f"{record.where}: an empty class name on the shortlist {record.shortlist!r}")
    names, index = _classes(records, lists, class_names, num_classes)
    flat = [_look_up(index, name, record.where) for record, row in zip(records, lists, strict=True) for name in row]
    answer = [NONE if record.answer == "" else _look_up(index, record.answer, record.where) for record in records]
    sizes = [len(row) for row in lists]
    # kept even where they are just the row numbers: files are put together by item, not by row
    items = [record.item for record in records]
    try:
        return StochasticLabels._from_flat(
            np.array(flat, np.int64),
            np.concatenate([[0], np.cumsum(sizes)]),
            answer,
            max(index.values()) + 1,
            names,
            items,
        )
    except InputError as error:
        # the check counts rows of labels; say the row of the file instead
        row = re.match(r"row (\d+): (.*)", str(error), re.DOTALL)
        if row is None:
            raise
        raise InputError(f"{records[int(row[1])].where}: {row[2]}") from error


def _classes(
    records: list[Record], lists: list[list[str]], class_names: Sequence[str] | None, num_classes: int | None
) -> tuple[tuple[str, ...] | None, dict[str, int]]:
    """The class names (None where there are none) and the index of each."""
    if num_classes is not None and num_classes < 2:
        raise InputError(f"num_classes: expected at least 2, got {num_classes}")
    stating = next((record for record in records if record.classes), records[0])  # the first row, unless re-sorted
    tokens = {name for row in lists for name in row} | {record.answer for record in records} - {""}
    whole = all(_is_index(token) for token in tokens)
    if _is_index(stating.classes):
        if int(stating.classes) < 2:
            raise InputError(f"{stating.where}: {stating.classes} classes are stated, expected at least 2")
        indices, num_classes = True, int(stating.classes) if num_classes is None else num_classes
    elif stating.classes:
        indices, class_names = False, _stated(stating) if class_names is None else class_names
    else:
        # names may look like numbers too, so known names are names
        indices = whole and not (class_names is not None and tokens <= set(class_names))
    if indices:
        count = num_classes or (len(class_names) if class_names else max(map(int, filter(_is_index, tokens))) + 1)
        if count > MOST_INDICES:
            raise InputError(f"{stating.where}: {count} classes are out of range, expected at most {MOST_INDICES}")
        return (tuple(class_names) if class_names else None), _Indices(max(count, 2))
    if class_names is None:
        class_names = sorted(tokens)
        if num_classes is not None and len(class_names) != num_classes:
            raise InputError(f"{len(class_names)} class names occur, expected {num_classes}: say class_names")
    if len(set(class_names)) != len(class_names):
        raise InputError("a class name occurs twice in the list of classes")
    return tuple(class_names), {name: k for k, name in enumerate(class_names)}


def _stated(record: Record) -> list[str]:
    try:
        names = split_names(record.classes)
    except InputError as error:
        raise InputError(f"{record.where}: {error}") from error
    if len(names) < 2 or "" in names or len(set(names)) != len(names):
        raise InputError(f"{record.where}: the column 'classes' does not hold two or more different names")
    return names


class _Indices(dict[str, int]):
    """Classes named by their index: "0" is 0; made as they are asked for, since K may be large."""

    def __init__(self, count: int) -> None:
        super().__init__({str(count - 1): count - 1})
        self.count = count

    def __missing__(self, token: str) -> int:
        k = int(token) if _is_index(token) else self.count
        if k >= self.count:
            raise KeyError(token)
        self[token] = k
        return k


def _is_index(token: str) -> bool:
    return re.fullmatch(r"0|[1-9][0-9]{0,17}", token) is not None


def _look_up(index: dict[str, int], name: str, where: str) -> int:
    try:
        return index[name]
    except KeyError:
        expected = f"0..{index.count - 1}" if isinstance(index, _Indices) else f"one of the {len(index)} classes"
        raise InputError(f"{where}: class {name!r} is out of range, expected {expected}") from None


_FORMATS: dict[str, tuple[Callable[[bytes], Iterator[Record]], Callable[[Path, dict[str, list[str]]], None]]] = {
    ".csv": (_read_csv, _write_csv),
    ".jsonl": (_read_jsonl, _write_jsonl),
    ".parquet": (_read_parquet, _write_parquet),
}


def _format(path: Path) -> Any:
    try:
        return _FORMATS[path.suffix.lower()]
    except KeyError:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected .csv, .jsonl or .parquet") from None

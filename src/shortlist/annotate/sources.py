"""Where items come from: a folder of images and sounds, or a CSV / JSONL file with a text column."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shortlist.annotate.media import AUDIO_ENDINGS, IMAGE_ENDINGS
from shortlist.errors import InputError

MAX_TEXT = 100_000
MAX_NAME = 500
# C0 and C1 controls other than tab and line ends, lone surrogates: they break databases, terminals and screen readers
_BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Source:
    """An item as found: where (for messages), its name, and either a text or a file; gold as a class name."""

    where: str
    name: str
    text: str | None = None
    path: Path | None = None
    gold: str | None = None
    problem: str | None = None


def check_name(name: str, what: str = "name") -> str:
    """`name` if it can be a name: some characters, one line, not too long."""
    if not name.strip() or len(name) > MAX_NAME or _BAD.search(name) or "\n" in name or "\r" in name:
        raise InputError(f"{what} {name[:40]!r}: expected one line of 1 to {MAX_NAME} printable characters")
    return name


def check_text(text: str) -> str:
    """`text` if it can be shown."""
    if not text.strip():
        raise InputError("an empty text")
    if len(text) > MAX_TEXT:
        raise InputError(f"a text of {len(text)} characters: expected at most {MAX_TEXT}")
    if _BAD.search(text):
        raise InputError("a text with control characters")
    return text


def find_sources(path: Path, text_column: str = "text", item_column: str = "item") -> Iterator[Source]:
    """Every item below a folder, or in a .csv or .jsonl file."""
    if path.is_dir():
        return _from_folder(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file or folder")
    readers = {".csv": _csv_rows, ".jsonl": _jsonl_rows}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path}: expected a folder of images or sounds, or a .csv or .jsonl file")
    return _from_rows(path, readers[path.suffix.lower()](path), text_column, item_column)


def _from_folder(folder: Path) -> Iterator[Source]:
    """Files by name, in the order of the names; links are not followed."""
    endings = IMAGE_ENDINGS | AUDIO_ENDINGS
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        name = path.relative_to(folder).as_posix()
        problem = None
        if path.is_symlink():
            problem = "a link: links are not followed"
        elif path.suffix.lower() not in endings:
            problem = "not an image or a sound of a known type"
        yield Source(name, name, path=path, problem=problem)


def _from_rows(
    path: Path, rows: Iterator[tuple[int, dict[str, Any]]], text_column: str, item_column: str
) -> Iterator[Source]:
    for number, row in rows:
        if text_column not in row:
            raise InputError(
                f"{path}: row {number} has no column {text_column!r} (columns: {', '.join(map(str, row))})"
            )
        name = str(row.get(item_column) if row.get(item_column) is not None else number)
        text, gold = row[text_column], row.get("gold")
        problem = None if isinstance(text, str) else f"the text is {type(text).__name__}, expected characters"
        yield Source(
            f"row {number} ({name[:40]})",
            name,
            text=text if isinstance(text, str) else "",
            gold=str(gold) if gold not in (None, "") else None,
            problem=problem,
        )


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(MAX_TEXT * 10)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.DictReader(file, strict=True), start=1):
                yield number, {key: value for key, value in row.items() if key is not None}
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a CSV file in UTF-8: {error}") from error


def _jsonl_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}: line {number} is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise InputError(f"{path}: line {number} is not a JSON object")
            yield number, row


def read_classes(path: Path) -> list[str]:
    """The class names in classes.txt, one a line, in order; blank lines do not count."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as UTF-8 text: {error}") from error
    return [line.strip() for line in lines if line.strip()]


def read_gold(path: Path) -> dict[str, str]:
    """Known answers: a CSV with the columns item and gold (a class name)."""
    gold: dict[str, str] = {}
    for number, row in _csv_rows(path):
        if not row.get("item") or not row.get("gold"):
            raise InputError(f"{path}: row {number}: expected the columns item and gold")
        gold[str(row["item"])] = str(row["gold"])
    return gold

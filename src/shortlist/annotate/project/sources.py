"""Where items come from: a folder of images and sounds, or a table with a column of texts or of image paths."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shortlist.annotate.project.media import AUDIO_ENDINGS, IMAGE_ENDINGS
from shortlist.data import TABLE_SUFFIXES, is_table, item_names, read_table
from shortlist.errors import InputError
from shortlist.internal.files import first_row, read_text

MAX_TEXT = 100_000
MAX_NAME = 500
MAX_INSTRUCTIONS = 10_000
# C0 and C1 controls except tab and line ends, and lone surrogates: they break databases, terminals and screen readers
_BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Source:
    """An item as found: where (for messages), its name, and either a text or a file; gold and label as class names."""

    where: str
    name: str
    text: str | None = None
    path: Path | None = None
    gold: str | None = None
    problem: str | None = None
    label: str | None = None

    @property
    def content(self) -> str | Path:
        """The text or the file."""
        return (self.text or "") if self.path is None else self.path

    @property
    def kind(self) -> str:
        """text, image or audio, judging by the name."""
        if self.path is None:
            return "text"
        return "audio" if self.path.suffix.lower() in AUDIO_ENDINGS else "image"


def is_name(name: str) -> bool:
    """Whether it can be a name: some characters, one line, not too long. Databases cannot be asked for all others."""
    return bool(name.strip()) and len(name) <= MAX_NAME and not _BAD.search(name) and not {"\n", "\r"} & {*name}


def check_name(name: str, what: str = "name") -> str:
    """`name` if it can be a name."""
    if not is_name(name):
        raise InputError(f"{what} {name[:40]!r}: expected one line of 1 to {MAX_NAME} printable characters")
    return name


def check_text(text: str, most: int = MAX_TEXT) -> str:
    """`text` if it can be shown."""
    if not text.strip():
        raise InputError("an empty text")
    if len(text) > most:
        raise InputError(f"a text of {len(text)} characters: expected at most {most}")
    if _BAD.search(text):
        raise InputError("a text with control characters")
    return text


def check_instructions(text: str) -> str:
    """`text` with plain line ends, if it can be shown to annotators; it may be empty."""
    clean = "\n".join(text.strip().splitlines())
    return check_text(clean, MAX_INSTRUCTIONS) if clean else ""


def read_instructions(path: Path) -> str:
    """The instructions for annotators: plain text, paragraphs separated by an empty line."""
    content = read_text(path)
    try:
        text = check_instructions(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not text:
        raise InputError(f"{path}: an empty text")
    return text


def find_sources(
    path: Path,
    text_column: str | None = None,
    item_column: str | None = None,
    usual_text: str | None = None,
    classes: Collection[str] = (),
) -> Iterator[Source]:
    """Every item below a folder or in a table, named as `shortlist train` names them.

    A table must have the columns stated; `usual_text` is the column of its texts where it has that and none is stated.
    With `classes`, labels are found in a column of any name that holds these.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if is_table(path):
        return _from_table(path, text_column, item_column, usual_text, classes)
    if path.is_dir():
        return _from_folder(path)
    raise InputError(f"{path}: expected a folder of images or sounds, or a table ({', '.join(TABLE_SUFFIXES)})")


def _from_folder(folder: Path) -> Iterator[Source]:
    """Files in the order of their names; links are not followed."""
    endings = IMAGE_ENDINGS | AUDIO_ENDINGS
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):  # .DS_Store and its like
            continue
        name, problem = inside.as_posix(), None
        if path.is_symlink():
            problem = "a link: links are not followed"
        elif path.suffix.lower() not in endings:
            problem = "not an image or a sound of a known type"
        folder_of = inside.parts[0] if len(inside.parts) > 1 else None
        yield Source(name, name, path=path, problem=problem, label=folder_of)


def _from_table(
    path: Path, text_column: str | None, item_column: str | None, usual_text: str | None, classes: Collection[str]
) -> Iterator[Source]:
    """One item per row: the text, or the image at the path in the column `image`."""
    table = read_table(path)
    usual = next((name for name in (usual_text, "text", "image") if name in table), usual_text or "text")
    column = text_column or usual
    if column not in table:
        raise InputError(f"{path} has no column {column!r} (its columns: {', '.join(table)}): give --text-column")
    as_path = column == "image" and "image" not in (text_column, usual_text)
    values = table[column]
    names = item_names(table, path, item_column) or [str(row) for row in range(len(values))]
    nothing = [None] * len(values)
    golds, labels = table.get("gold", nothing), table.get(_label_column(table, column, classes), nothing)
    for number, (value, name, gold, label) in enumerate(
        zip(values, names, golds, labels, strict=True), first_row(path)
    ):
        if isinstance(value, int | float) and not math.isnan(value):  # so a workbook holds the text 42
            value = str(value)
        words = isinstance(value, str)
        wanted = "a path" if as_path else "text"
        problem = None if words else f"the {column} is {type(value).__name__}, expected {wanted}"
        if as_path and words and not (path.parent / value).resolve().is_relative_to(path.parent.resolve()):
            problem = f"the image {value[:80]!r} is outside of the table's folder {path.parent}"
        yield Source(
            f"row {number} ({name[:40]})",
            name,
            text=None if as_path else value if words else "",
            path=path.parent / value if as_path and words else None,
            gold=str(gold) if gold not in (None, "") else None,
            problem=problem,
            label=None if label is None else str(label).strip(),
        )


def _label_column(table: Mapping[str, Sequence[Any]], text: str, classes: Collection[str]) -> str:
    """`class`, `label`, or else the one of whose values most are classes, and at least half; empty if there is none."""
    for name in ("class", "label"):
        if name in table:
            return name
    best, most = "", 0
    for name in [name for name in table if name != text and classes]:
        filled = [str(value).strip() for value in table[name] if value not in (None, "")]
        count = sum(value in classes for value in filled)
        if count > most and 2 * count >= len(filled):
            best, most = name, count
    return best


def read_classes(path: Path) -> dict[str, str | None]:
    """The class names in order, each with its description: None if the file has none, empty if it is empty there.

    classes.txt has one name per line (blank lines are skipped), a table the columns class and, if wanted, description.
    """
    if path.suffix.lower() not in TABLE_SUFFIXES:
        return dict.fromkeys(_once(path, _lines(path)))
    table = read_table(path)
    if "class" not in table:
        raise InputError(f"{path}: expected the column class, and description if wanted, got {', '.join(table)}")
    names = ["" if name is None else str(name).strip() for name in table["class"]]
    if "" in names:
        raise InputError(f"{path}: row {names.index('') + first_row(path)} has no class")
    if "description" not in table:
        return dict.fromkeys(_once(path, names))
    described = ["" if words is None else str(words).strip() for words in table["description"]]
    return dict(zip(_once(path, names), described, strict=True))


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def _once(path: Path, names: list[str], what: str = "class") -> list[str]:
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"{path}: {what} {name!r} occurs {'twice' if times == 2 else f'{times} times'}")
    return names


def read_gold(path: Path, item_column: str | None = None) -> dict[str, str]:
    """Known answers: a table with the columns gold (a class name) and item, or `item_column` where it has that."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InputError(f"{path}: expected a table ({', '.join(TABLE_SUFFIXES)}) with the columns item and gold")
    table = read_table(path)
    item = item_column if item_column in table else "item"
    if item not in table or "gold" not in table:
        raise InputError(f"{path}: expected the columns item and gold, got {', '.join(table)}")
    items = _once(path, item_names(table, path, item) or [], "item")
    for number, gold in enumerate(table["gold"], first_row(path)):
        if gold in (None, ""):
            raise InputError(f"{path}: row {number} has no gold, expected a class name")
    return dict(zip(items, map(str, table["gold"]), strict=True))

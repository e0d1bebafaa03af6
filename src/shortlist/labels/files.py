r"""Files of labels: .csv, .jsonl and .parquet with the columns `item`, `shortlist` and `answer`.

A shortlist is class names (or indices) joined by `|`; `\|` and `\\` stand for those characters inside a name. An empty
answer is None. Three more columns may be there:

- `classes`: in the first row all classes, shown or not, or just their number. It also says whether the rows hold names
  or indices; without it, a file of nothing but whole numbers holds indices.
- `probabilities`: for each class shown how likely it was to be shown, joined by `|`; empty if unknown.
- `typed`: a class that somebody typed, on the list or not, which makes the row an ordinary label. It is read as the
  answer and as one more class shown, of unknown probability. The shortlist may then be empty.

Other columns (who answered, how fast) are ignored, so an annotation export is a labels file too. Messages count the
rows of text files as an editor does, header included.
"""

import itertools
import math
import os
import re
from collections.abc import Sequence, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError
from shortlist.internal.files import atomic_path
from shortlist.internal.names import join_names, plain_name, shown_names
from shortlist.internal.reasons import reason
from shortlist.labels.batches import Columns, UnusualError, read_columns
from shortlist.labels.checks import NONE, LabelArrays, check_rows, checked_count, checked_inclusion, checked_names
from shortlist.labels.formats import COLUMNS, Record, format_of, split_at
from shortlist.labels.lists import offsets_of

MOST_INDICES = 100_000_000
"""More classes than this are a typing error."""


# -- writing ---------------------------------------------------------------------------------------------------------


def write_labels(labels: LabelArrays, path: str | os.PathLike[str]) -> None:
    """Write `labels` to `path`, whole or not at all; the file's ending decides the format."""
    _, write = format_of(Path(path))
    columns = _columns(labels)
    if not columns["item"]:
        raise InputError(f"{path}: no labels to write")
    try:
        with atomic_path(path) as temporary:
            write(temporary, columns)
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: a name or item cannot be written as UTF-8 ({error.reason})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _columns(labels: LabelArrays) -> dict[str, list[str]]:
    names = [str(k) for k in range(labels.num_classes)] if labels.class_names is None else labels.class_names
    escaped = [join_names([name]) for name in names]
    cuts = labels.offsets.tolist()
    shown = [escaped[k] for k in labels.classes.tolist()]
    classes = str(labels.num_classes) if labels.class_names is None else "|".join(escaped)
    items = np.asarray(labels.items).tolist()
    columns = {
        "item": items,
        "shortlist": ["|".join(shown[a:b]) for a, b in itertools.pairwise(cuts)],
        "answer": ["" if k == NONE else names[k] for k in np.asarray(labels.answer).tolist()],
        "classes": [classes] + [""] * (len(items) - 1),
    }
    if labels.inclusion is not None:
        chances = ["" if chance != chance else repr(chance) for chance in np.asarray(labels.inclusion).tolist()]
        rows = (chances[a:b] for a, b in itertools.pairwise(cuts))
        columns["probabilities"] = ["|".join(row) if any(row) else "" for row in rows]
    return columns


# -- reading ---------------------------------------------------------------------------------------------------------


class LabelsFile:
    """A file of labels, read once; its rows can then be looked up among any classes.

    Args:
        path: .csv, .jsonl or .parquet.

    Raises:
        InputError: names the file, the row and what is wrong with it.
    """

    known: frozenset[str]
    """Items of an annotation export whose class was known, so that nobody was asked about them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        format_of(self.path)
        try:
            self._columns: Columns | None = read_columns(self.path)
            self._stated, self.known = self._columns.classes, self._columns.known
        except UnusualError:
            self._columns = None
            self._stated = _stating(self._records).classes
            self.known = frozenset(record.item for record in self._records if record.known)

    @property
    def states_classes(self) -> bool:
        """Whether it says which classes there are; otherwise they are those that occur."""
        return bool(self._stated)

    def arrays(self, class_names: Sequence[str] | None, num_classes: int | None) -> LabelArrays:
        """The labels in the classes given, or in its own; see `StochasticLabels.read`."""
        if self._columns is not None:
            with suppress(InputError):  # the reader below knows which row is wrong
                return _from_columns(self._columns, class_names, num_classes)
        try:
            return _from_records(self._records, class_names, num_classes)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from error.__cause__

    @cached_property
    def _records(self) -> list[Record]:
        """The rows one by one: only if something is unusual, or to say what is wrong."""
        path, (read, _) = self.path, format_of(self.path)
        try:
            data = path.read_bytes()
        except (OSError, ValueError) as error:  # a ValueError for a path with a zero byte
            raise InputError(f"{path}: cannot be read: {reason(error)}") from error
        if not data.strip():
            raise InputError(f"{path}: the file is empty, expected the columns {', '.join(COLUMNS)}")
        try:
            records = list(read(data))
        except UnicodeDecodeError as error:
            row = data.count(b"\n", 0, error.start) + 1
            raise InputError(f"{path}: row {row}: broken encoding, not UTF-8 at byte {error.start}") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error.__cause__
        if not records:
            raise InputError(f"{path}: the file has columns but no rows")
        return records


def _stating(records: list[Record]) -> Record:
    """The row that states the classes, if any does: the first, unless the file was sorted."""
    return next((record for record in records if record.classes), records[0])


def _from_records(records: list[Record], class_names: Sequence[str] | None, num_classes: int | None) -> LabelArrays:
    shown = {name for record in records for name in record.shown}
    tokens = shown | {record.answer for record in records if not _says_none(record.answer)} - {""}
    stating = _stating(records)
    names, index = _classes(stating.classes, stating.where, tokens, class_names, num_classes)
    flat = [_look_up(index, name, record.where) for record in records for name in record.shown]
    answer = np.array([_picked(index, record) for record in records], np.int64)
    sizes = [len(record.shown) for record in records]
    # kept even if they are just the row numbers: files are joined by item, not by row
    items = [record.item for record in records]
    chances = None
    if any(record.probabilities for record in records):
        chances = [chance for record in records for chance in _chances(record)]
    try:
        return _checked(np.array(flat, np.int64), sizes, answer, items, chances, names, index)
    except InputError as error:
        # the check counts rows of labels; name the row of the file instead
        row = re.match(r"row (\d+): (.*)", str(error), re.DOTALL)
        if row is None:
            raise
        raise InputError(f"{records[int(row[1])].where}: {row[2]}") from error


def _from_columns(columns: Columns, class_names: Sequence[str] | None, num_classes: int | None) -> LabelArrays:
    """The same from whole columns, all rows at once."""
    numbers = columns.tokens.numbers
    names, index = _classes(columns.classes, "", numbers.keys() - {""}, class_names, num_classes)
    to_class = np.array([NONE if text == "" else _look_up(index, text, "") for text in numbers], np.int32)
    shown, answer = to_class[columns.shown], to_class[columns.answer].astype(np.int64)
    return _checked(shown, columns.sizes, answer, columns.items, columns.chances, names, index)


def _checked(
    classes: NDArray[Any],
    sizes: ArrayLike,
    answer: NDArray[np.int64],
    items: list[str],
    chances: ArrayLike | None,
    names: tuple[str, ...] | None,
    index: dict[str, int],
) -> LabelArrays:
    """The labels of a file, if people can have given them."""
    count = checked_count(max(index.values()) + 1)
    labels = LabelArrays(classes, offsets_of(sizes), answer, count, checked_names(names, count), items, chances)
    check_rows(classes, labels.offsets, answer, count, names)
    checked_inclusion(chances, labels.offsets)
    return labels


def _chances(record: Record) -> list[float]:
    """The inclusion probabilities of a row; NaN for those that are not stated."""
    size = len(record.shown)
    if not record.probabilities:
        return [math.nan] * size
    texts = record.probabilities.split("|")
    if len(texts) != size:
        raise InputError(f"{record.where}: {len(texts)} probabilities for the {size} classes shown")
    try:
        return [float(text) if text else math.nan for text in texts]
    except ValueError:
        raise InputError(f"{record.where}: probabilities has {record.probabilities!r}, expected numbers") from None


def _classes(
    stated: str, where: str, tokens: Set[str], class_names: Sequence[str] | None, num_classes: int | None
) -> tuple[tuple[str, ...] | None, dict[str, int]]:
    """The class names (None if there are none) and the index of each."""
    if num_classes is not None and num_classes < 2:
        raise InputError(f"num_classes: expected at least 2, got {num_classes}")
    whole = all(_is_index(token) for token in tokens)
    if _is_index(stated):
        if int(stated) < 2:
            raise InputError(f"{where}: {stated} classes are stated, expected at least 2")
        indices, num_classes = True, int(stated) if num_classes is None else num_classes
    elif stated:
        indices, class_names = False, _stated(stated, where) if class_names is None else class_names
    else:
        # names may look like numbers, so tokens that are known names are names
        indices = whole and not (class_names is not None and tokens <= set(class_names))
    if indices:
        count = num_classes or (len(class_names) if class_names else max(map(int, filter(_is_index, tokens))) + 1)
        if count > MOST_INDICES:
            raise InputError(f"{where}: {count} classes are out of range, expected at most {MOST_INDICES}")
        return (tuple(class_names) if class_names else None), _Indices(max(count, 2))
    if class_names is None:
        class_names = sorted(tokens)
        if num_classes is not None and len(class_names) != num_classes:
            raise InputError(f"{len(class_names)} class names occur, expected {num_classes}: say class_names")
    if len(set(class_names)) != len(class_names):
        raise InputError("a class name occurs twice in the list of classes")
    return tuple(class_names), {name: k for k, name in enumerate(class_names)}


def _stated(classes: str, where: str) -> list[str]:
    names = split_at(classes, where)
    if len(names) < 2 or "" in names or len(set(names)) != len(names):
        raise InputError(f"{where}: the column 'classes' does not hold two or more different names")
    return names


class _Indices(dict[str, int]):
    """Classes named by their index: "0" is 0. Entries are made when they are asked for, since K may be large."""

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


def _says_none(answer: str) -> bool:
    return answer.strip().lower() == "none"


def _picked(index: dict[str, int], record: Record) -> int:
    if record.answer == "":
        return NONE
    with suppress(KeyError):
        return index[record.answer]
    if _says_none(record.answer):
        raise InputError(f"{record.where}: no class is named {record.answer!r}; leave it empty for None of those shown")
    return _look_up(index, record.answer, record.where)


def _look_up(index: dict[str, int], name: str, where: str) -> int:
    try:
        return index[name]
    except KeyError:
        if isinstance(index, _Indices):
            raise InputError(f"{where}: class {name!r} is out of range, expected 0..{index.count - 1}") from None
        alike = [known for known in index if plain_name(known) == plain_name(name)]
        hint = f": did you mean {alike[0]!r}?" if alike else f" ({shown_names(list(index))})"
        raise InputError(
            f"{where}: class {name!r} is out of range, expected one of the {len(index)} classes{hint}"
        ) from None

"""From labels as a file has them to numbered classes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import UNLABELLED, Dataset, Inputs, Kind, Split
from shortlist.errors import InputError
from shortlist.internal.names import tell_alike

_LOG = logging.getLogger(__name__)
MISSING = frozenset({"nan", "none", "null", "n/a", "na", "<na>", "#n/a"})
"""What programs write for a missing value."""


@dataclass(frozen=True)
class RawSplit:
    """Items as read; labels are class names, None for an item whose class is not known."""

    x: Inputs
    labels: Sequence[str | None]
    items: Sequence[str] | None
    where: str


def class_order(labels: Iterable[str | None]) -> tuple[str, ...]:
    """The classes that occur: by size if all are whole numbers, else alphabetically.

    >>> class_order(["10", "9", None, "9"]), class_order(["b", "10", "a"])
    (('9', '10'), ('10', 'a', 'b'))
    """
    found = {label for label in labels if label is not None}
    if all(_is_integer(label) for label in found):
        return tuple(sorted(found, key=lambda label: (int(label), label)))
    return tuple(sorted(found))


def assemble(
    name: str, kind: Kind, train: RawSplit, test: RawSplit | None, class_names: Sequence[str] | None
) -> Dataset:
    """A dataset from what was read, with the classes stated or those that occur."""
    if len(train.labels) == 0:
        raise InputError(f"{train.where} holds no items")
    train, test = _once(train), None if test is None else _once(test)
    both = [*train.labels, *(test.labels if test is not None else ())]
    classes = class_order(both) if class_names is None else tuple(str(c) for c in class_names)
    if len(set(classes)) != len(classes):
        raise InputError(f"a class is named twice in the class names {', '.join(classes)}")
    _tell_odd_classes(classes, train.where)
    splits = [_split(raw, classes) for raw in (train, test) if raw is not None]
    return Dataset(name, splits[0], splits[1] if len(splits) > 1 else None, classes, kind)


def _once(raw: RawSplit) -> RawSplit:
    """Only the first row of each item, as in `annotate init`; a warning says how many are left out."""
    first = {} if raw.items is None else {item: row for row, item in reversed(list(enumerate(raw.items)))}
    if raw.items is None or len(first) == len(raw.items):
        return raw
    rows = sorted(first.values())
    twice = next(item for row, item in enumerate(raw.items) if first[item] != row)
    _LOG.warning(
        "%s: some items occur more than once, such as %r: the first row of each counts, left out: %d",
        *(raw.where, twice, len(raw.items) - len(rows)),
    )
    x = [raw.x[row] for row in rows] if isinstance(raw.x, list) else raw.x[rows]
    return RawSplit(x, [raw.labels[row] for row in rows], [raw.items[row] for row in rows], raw.where)


def _tell_odd_classes(classes: tuple[str, ...], where: str) -> None:
    """Warn about classes that are probably the same, and about names that are probably not classes."""
    if remark := tell_alike(classes):
        _LOG.warning("%s: %s", where, remark)
    for name in classes:
        if name.casefold() in MISSING:
            _LOG.warning("%s: %r is taken for a class: leave the cell empty where the class is not known", where, name)


def _split(raw: RawSplit, classes: tuple[str, ...]) -> Split:
    items = None if raw.items is None else np.asarray(raw.items, np.str_)
    return Split(raw.x, _encode(raw, classes), items)  # type: ignore[arg-type]


def _encode(raw: RawSplit, classes: tuple[str, ...]) -> NDArray[np.int64] | None:
    if all(label is None for label in raw.labels):
        return None
    place: dict[str | None, int] = {label: i for i, label in enumerate(classes)}
    place[None] = UNLABELLED
    try:
        return np.array([place[label] for label in raw.labels], np.int64)
    except KeyError as error:
        row = raw.labels.index(error.args[0]) + 1
        raise InputError(
            f"{raw.where}: row {row} has the class {error.args[0]!r}, which is not among the class names"
        ) from None


def _is_integer(label: str) -> bool:
    digits = label.removeprefix("-")
    return digits.isascii() and digits.isdigit()

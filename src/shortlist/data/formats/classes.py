"""Labels as they stand in a file made into numbered classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shortlist.data.dataset import UNLABELLED, Dataset, Inputs, Kind, Split
from shortlist.errors import InputError


@dataclass(frozen=True)
class RawSplit:
    """Items as read: labels are class names, None for an item whose class is not known."""

    x: Inputs
    labels: Sequence[str | None]
    items: Sequence[str] | None
    where: str


def class_order(labels: Iterable[str | None]) -> tuple[str, ...]:
    """The classes that occur, numbers by size where all are whole numbers, else by the alphabet.

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
    """A dataset from what was read, with the classes that occur or those that are stated."""
    if len(train.labels) == 0:
        raise InputError(f"{train.where} holds no items")
    both = [*train.labels, *(test.labels if test is not None else ())]
    classes = class_order(both) if class_names is None else tuple(str(c) for c in class_names)
    if len(set(classes)) != len(classes):
        raise InputError(f"a class is named twice in the class names {', '.join(classes)}")
    splits = [_split(raw, classes) for raw in (train, test) if raw is not None]
    return Dataset(name, splits[0], splits[1] if len(splits) > 1 else None, classes, kind)


def _split(raw: RawSplit, classes: tuple[str, ...]) -> Split:
    items = None if raw.items is None else np.asarray(raw.items, np.str_)
    if items is not None:
        values, counts = np.unique(items, return_counts=True)
        if len(values) != len(items):
            raise InputError(f"{raw.where}: item {str(values[counts > 1][0])!r} occurs more than once")
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

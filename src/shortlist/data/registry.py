"""The registry of datasets, and `load`, which takes a registered name or a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from shortlist.data.dataset import Dataset, Kind
from shortlist.data.formats.images import ImageSize
from shortlist.data.formats.load import load_path
from shortlist.data.formats.table import Columns
from shortlist.data.source import Source
from shortlist.data.sources import banking77, cifar10, digits, fashion, kuzushiji, letter, mnist
from shortlist.errors import InputError, unknown_name

_SOURCES: dict[str, Source] = {
    module.SOURCE.name: module.SOURCE for module in (digits, mnist, fashion, kuzushiji, cifar10, letter, banking77)
}


class DatasetRow(NamedTuple):
    """One line of `shortlist datasets`."""

    name: str
    what: str
    kind: Kind
    num_classes: int
    train: int
    test: int
    present: bool


def names() -> tuple[str, ...]:
    """The names that `load` knows."""
    return tuple(_SOURCES)


def describe() -> list[DatasetRow]:
    """What each known dataset is and whether it is on this machine, for the command line."""
    return [
        DatasetRow(s.name, s.what, s.kind, s.num_classes, s.train_size, s.test_size, s.present())
        for s in _SOURCES.values()
    ]


def load(
    data: str | os.PathLike[str],
    *,
    text_column: str | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    item_column: str | None = None,
    test: str | os.PathLike[str] | None = None,
    image_size: ImageSize = None,
    class_names: Sequence[str] | None = None,
) -> Dataset:
    """A known dataset by name, or your own by path.

    Args:
        data: a name of `names()`, a folder of class folders (or of train/ and test/ with class folders in them), a
            .csv, .tsv, .json, .jsonl, .parquet or .xlsx file with a text or image column, a folder that Hugging Face's
            datasets saved, or an .npz file.
        text_column: the column of texts in a table, by default "text".
        image_column: the column of image paths (relative to the table's folder), by default "image".
        label_column: the column of classes, by default "label"; without it, or where it is empty, classes are unknown.
        item_column: the column of item names, by default "item"; without it they are the row numbers.
        test: your own data of the same form, to score on.
        image_size: the height and width, or one number for both, to resize your images to.
        class_names: the classes in order, if not all of them occur in the data.

    Raises:
        InputError: one line that names what is wrong and where.
    """
    own = {
        "text_column": text_column,
        "image_column": image_column,
        "label_column": label_column,
        "item_column": item_column,
        "test": test,
        "image_size": image_size,
        "class_names": class_names,
    }
    given = [name for name, value in own.items() if value is not None]
    if isinstance(data, str) and data in _SOURCES:
        if given:
            raise InputError(f"{', '.join(given)} can be stated only for your own data, {data!r} is a known dataset")
        return _SOURCES[data].read()
    if data == "":  # a path would be this folder
        raise InputError("no data: expected a name or a path, got ''")
    path = Path(data)
    if not os.path.lexists(path):
        if isinstance(data, str) and not path.suffix and os.sep not in data:
            raise unknown_name("dataset", data, names())
        raise InputError(f"no such file or folder: {path}")
    columns = Columns(text_column, image_column, label_column, item_column)
    try:
        found = load_path(path, None if test is None else Path(test), columns, image_size, class_names)
    except OSError as error:  # no permission, a link to nothing, a disk that fails
        raise InputError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error
    if test is not None and found.test is not None and found.test.y is None:
        raise InputError(f"{test}: the classes of its items are not known, so there is nothing to score on")
    return found

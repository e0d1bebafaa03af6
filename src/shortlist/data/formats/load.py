"""The reader that a path needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from shortlist.data.dataset import Dataset
from shortlist.data.formats.folder import load_folder
from shortlist.data.formats.hugging_face import is_hugging_face, read_hugging_face
from shortlist.data.formats.images import ImageSize
from shortlist.data.formats.npz import load_npz
from shortlist.data.formats.table import TABLE_SUFFIXES, Columns, dataset_of, is_table, load_table, read_table
from shortlist.errors import InputError


def load_path(
    path: Path,
    test: Path | None,
    columns: Columns,
    image_size: ImageSize,
    class_names: Sequence[str] | None,
) -> Dataset:
    """Read `path`, and `test` of the same form: a folder, a table or an .npz file."""
    if test is not None and not test.exists():
        raise InputError(f"no such file or folder: {test}")
    suffix = "" if path.is_dir() else path.suffix.lower()
    if not is_table(path):
        for name, column in asdict(columns).items():
            if column is not None:
                raise InputError(f"{name}_column is {column!r}, and {path} has no columns: only a table has")
    if is_hugging_face(path):
        tables = [table for table in read_hugging_face(path) if table is not None]
        if test is not None:
            tables = [tables[0], read_table(test)]
        return dataset_of(path.name, [path, test or path][: len(tables)], tables, columns, image_size, class_names)
    if path.is_dir():
        if test is not None and not test.is_dir():
            raise InputError(f"{test} is not a folder, but the training data {path} is one")
        return load_folder(path, test, image_size, class_names)
    if suffix in TABLE_SUFFIXES:
        if test is not None and test.suffix.lower() not in TABLE_SUFFIXES:
            raise InputError(f"{test} must be one of {', '.join(TABLE_SUFFIXES)}, as the training data is")
        return load_table(path, test, columns, image_size, class_names)
    if suffix == ".npz":
        return load_npz(path, test, class_names)
    raise InputError(f"{path} is neither a folder nor one of {', '.join(TABLE_SUFFIXES)}, .npz")

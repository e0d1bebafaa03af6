"""A folder that the Hugging Face library `datasets` saved (`save_to_disk`): Arrow files, described by JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shortlist.errors import InputError, first_line

SPLITS, STATE, INFO = "dataset_dict.json", "state.json", "dataset_info.json"


def is_hugging_face(path: Path) -> bool:
    """Whether `path` is such a folder."""
    return (path / SPLITS).is_file() or (path / STATE).is_file()


def read_hugging_face(path: Path) -> tuple[dict[str, list[Any]], dict[str, list[Any]] | None]:
    """The columns of its training items, and of its test items if it has a part named test."""
    if not (path / SPLITS).is_file():
        return _columns(path), None
    splits = _json(path / SPLITS).get("splits", [])
    if "train" not in splits:
        raise InputError(f"{path}: has the parts {', '.join(map(str, splits)) or 'none'}, expected one named train")
    return _columns(path / "train"), _columns(path / "test") if "test" in splits else None


def _columns(folder: Path) -> dict[str, list[Any]]:
    import pyarrow

    state, info = _json(folder / STATE), _json(folder / INFO)
    try:
        parts = []
        for part in state.get("_data_files", []):
            with pyarrow.memory_map(str(folder / part["filename"])) as source:
                parts.append(pyarrow.ipc.open_stream(source).read_all())
        columns = columns_of(pyarrow.concat_tables(parts), folder)
    except (pyarrow.ArrowException, OSError, LookupError, TypeError) as error:
        raise InputError(f"{folder} holds no Arrow files that can be read: {first_line(error)}") from error
    try:
        for name, kind in info.get("features", {}).items():
            if isinstance(kind, dict) and kind.get("_type") == "ClassLabel" and name in columns:
                names = kind["names"]
                columns[name] = [None if value is None or value < 0 else names[value] for value in columns[name]]
    except (LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / INFO} does not name the classes of its labels: {first_line(error)}") from error
    return columns


def columns_of(table: Any, path: Path) -> dict[str, list[Any]]:
    """The columns of an Arrow table as lists of Python objects."""
    columns = {}
    for name in table.column_names:
        try:
            columns[name] = table.column(name).to_pylist()
        except (ValueError, OverflowError) as error:  # a date that Python does not have, text that is not UTF-8
            raise InputError(f"{path}: column {name!r} cannot be read: {first_line(error)}") from error
    return columns


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}

"""A folder that the Hugging Face library `datasets` saved (`save_to_disk`): Arrow files and what they mean, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shortlist.errors import InputError

SPLITS, STATE, INFO = "dataset_dict.json", "state.json", "dataset_info.json"


def is_hugging_face(path: Path) -> bool:
    """Whether that is such a folder."""
    return (path / SPLITS).is_file() or (path / STATE).is_file()


def read_hugging_face(path: Path) -> tuple[dict[str, list[Any]], dict[str, list[Any]] | None]:
    """The columns of its training items, and of its test items where it has a part of that name."""
    if not (path / SPLITS).is_file():
        return _columns(path), None
    splits = _json(path / SPLITS).get("splits", [])
    if "train" not in splits:
        raise InputError(f"{path}: has the parts {', '.join(map(str, splits)) or 'none'}, expected one named train")
    return _columns(path / "train"), _columns(path / "test") if "test" in splits else None


def _columns(folder: Path) -> dict[str, list[Any]]:
    import pyarrow

    files = [folder / str(part.get("filename")) for part in _json(folder / STATE).get("_data_files", [])]
    try:
        parts = []
        for file in files:
            with pyarrow.memory_map(str(file)) as source:
                parts.append(pyarrow.ipc.open_stream(source).read_all())
        table = pyarrow.concat_tables(parts)
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{folder} holds no Arrow files that can be read: {str(error).splitlines()[0]}") from error
    for name, kind in _json(folder / INFO).get("features", {}).items():
        if isinstance(kind, dict) and kind.get("_type") == "ClassLabel" and name in columns:
            names = kind["names"]
            columns[name] = [None if value is None or value < 0 else names[value] for value in columns[name]]
    return columns


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}

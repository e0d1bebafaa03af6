"""Answers out and in: our own files, plain labels, Label Studio's, crowd-kit's.

An export is one file here with a function that writes it and one line in `EXPORTS`; command line and API read that.
"""

from collections.abc import Callable
from pathlib import Path

from shortlist.annotate.formats import answers, corrections, crowd_kit, dawid_skene, label_studio, labels, second_look
from shortlist.annotate.project.project import Project

EXPORTS: dict[str, Callable[[Project, Path], int]] = {
    "answers.csv": answers.write_csv,
    "answers.jsonl": answers.write_jsonl,
    "answers.parquet": answers.write_parquet,
    "gold-answers.csv": answers.write_gold_csv,
    "labels.csv": labels.write_csv,
    "second-look.csv": second_look.write_csv,
    "crowd-kit.csv": crowd_kit.write_csv,
    "dawid-skene.csv": dawid_skene.write_csv,
    "corrections.csv": corrections.write_csv,
    "label-studio.json": label_studio.write_tasks,
    "label-studio.xml": label_studio.write_config,
}
"""What can be exported, by the name of the file; each function writes to a path and returns the number of rows."""

_MEDIA_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".json": "application/json",
    ".xml": "application/xml",
}


def media_type(name: str) -> str:
    """The type under which an export is sent to a browser."""
    return _MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")

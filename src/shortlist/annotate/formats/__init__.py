"""Answers out and in: our own files, plain labels, Label Studio's, crowd-kit's. One file a format."""

from collections.abc import Callable
from pathlib import Path

from shortlist.annotate.formats import answers, crowd_kit, label_studio, labels
from shortlist.annotate.project.project import Project

EXPORTS: dict[str, Callable[[Project, Path], int]] = {
    "answers.csv": answers.write_csv,
    "answers.jsonl": answers.write_jsonl,
    "answers.parquet": answers.write_parquet,
    "gold-answers.csv": answers.write_gold_csv,
    "labels.csv": labels.write_csv,
    "crowd-kit.csv": crowd_kit.write_csv,
    "label-studio.json": label_studio.write_tasks,
    "label-studio.xml": label_studio.write_config,
}
"""What can be exported, by the name of the file; each writes to a path and returns how many rows."""

MEDIA_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".json": "application/json",
    ".xml": "application/xml",
}

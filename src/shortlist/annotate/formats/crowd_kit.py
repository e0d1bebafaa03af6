"""crowd-kit's table: task, worker, label. Its aggregators know no shortlists, so None is a label of its own."""

import csv
from pathlib import Path

from shortlist.annotate.formats.answers import live_answers
from shortlist.annotate.project import Project

NONE_LABEL = "__none__"


def write_csv(project: Project, path: Path) -> int:
    """Every live answer as task, worker, label."""
    with project.store.read() as connection, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(["task", "worker", "label"])
        rows = ([row["item"], row["annotator"], row["answer"] or NONE_LABEL] for row in live_answers(connection))
        return sum(1 for row in rows if writer.writerow(row))

"""crowd-kit's table: task, worker, label. Its aggregators know no shortlists, so None is a label of its own.

Each person has one row a task: a None that was asked again is not one more vote for None. Gold items are left out:
their lists hold the class oftener, so that how often somebody says None would be that of neither kind.
"""

import csv
from pathlib import Path

from shortlist.annotate.formats.answers import live_answers
from shortlist.annotate.formats.labels import voices
from shortlist.annotate.project.project import Project

NONE_LABEL = "__none__"


def write_csv(project: Project, path: Path) -> int:
    """What each person said of each item as task, worker, label."""
    with project.store.read() as connection, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(["task", "worker", "label"])
        said = voices(row for row in live_answers(connection) if row["gold"] is None)
        rows = ([item, annotator, answer or NONE_LABEL] for (item, annotator), answer in said.items())
        return sum(1 for row in rows if writer.writerow(row))

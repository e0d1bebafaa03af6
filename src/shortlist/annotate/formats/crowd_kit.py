"""crowd-kit's table: task, worker, label. Its aggregators know no shortlists, so None is a label of its own.

Each person has one row per task: a None that was asked again is not another vote for None. Gold items are left out:
their lists hold the right class more often than others do, which would distort how often somebody says None.
"""

import csv
from pathlib import Path

from shortlist.annotate.formats.answers import standing_answers
from shortlist.annotate.formats.labels import picks
from shortlist.annotate.project.project import Project
from shortlist.internal.cells import guard_cell

NONE_LABEL = "__none__"


def write_csv(project: Project, path: Path) -> int:
    """What each person said about each item."""
    with project.store.read() as connection, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(["task", "worker", "label"])
        picked = picks(row for row in standing_answers(connection) if row["gold"] is None)
        rows = ((item, annotator, answer or NONE_LABEL) for (item, annotator), answer in picked.items())
        return sum(1 for row in rows if writer.writerow(map(guard_cell, row)))

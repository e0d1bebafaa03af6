"""What reviewers said, each correction and each undo in a row: who gave an item which class, why and when."""

import csv
from pathlib import Path

from sqlalchemy import select

from shortlist.annotate.db.schema import Correction, Item
from shortlist.annotate.db.statements import class_names
from shortlist.annotate.formats.answers import reviewer_name
from shortlist.annotate.project.project import Project
from shortlist.internal.cells import guard_cell

COLUMNS = ("item", "version", "kind", "class", "reviewer", "why", "at")


def write_csv(project: Project, path: Path) -> int:
    """Oldest first; the class is empty where there is none, and for an undo."""
    statement = select(Correction, Item.name.label("item")).join(Item, Item.id == Correction.item_id)
    with project.store.read() as connection, path.open("w", newline="", encoding="utf-8") as file:
        writer, names = csv.writer(file, lineterminator="\r\n"), class_names(connection)
        writer.writerow(COLUMNS)
        rows = connection.execute(statement.order_by(Correction.id)).all()
        for row in rows:
            label = "" if row.class_id is None else guard_cell(names[row.class_id])
            said = (guard_cell(reviewer_name(row.author)), guard_cell(row.why), row.at)
            writer.writerow((guard_cell(row.item), row.version, row.kind, label, *said))
    return len(rows)

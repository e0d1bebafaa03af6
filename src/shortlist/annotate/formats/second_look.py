"""Items worth a second look (`project.second_look`), the most doubtful first, as a table."""

import csv
from pathlib import Path

from shortlist.annotate.project.project import Project
from shortlist.annotate.project.second_look import second_look
from shortlist.internal.cells import guard_cell

COLUMNS = ("item", "label", "believed", "chance", "people", "refused", "reason")


def write_csv(project: Project, path: Path) -> int:
    """`people` and `refused` read like `cat: 2; dog: 1`."""
    looks = second_look(project)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for look in looks:
            chance = "" if look.chance is None else f"{look.chance:.4f}"
            counts = [_counts(look.people), _counts(look.refused)]
            names = [guard_cell(name or "") for name in (look.item, look.label, look.believed)]
            writer.writerow([*names, chance, *map(guard_cell, counts), look.reason])
    return len(looks)


def _counts(people: dict[str, int]) -> str:
    return "; ".join(f"{name}: {count}" for name, count in people.items())

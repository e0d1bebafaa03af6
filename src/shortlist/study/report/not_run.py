"""What was not run: every missing cell by name, under its dataset and the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.methods import PROTOCOLS
from shortlist.study.plan import paper
from shortlist.study.plan.grid import TRIALS, Cell, plan_run
from shortlist.study.plan.recipes import Recipes
from shortlist.study.report.tables import USUAL, Table
from shortlist.study.run.batches import Pace, groups
from shortlist.study.run.driver import BATCH_MINUTES

Reason = dict[str, Any]
"""Of not-run.json: "why", and which cells it is for."""
UNTOLD = "not run yet"


@dataclass(frozen=True)
class MissingCells:
    """Cells that have no run: one method in one table."""

    table: str
    title: str
    places: tuple[str, ...]
    protocols: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}, {self.title} ({' and '.join(self.protocols)}): {', '.join(self.places)}"


@dataclass(frozen=True)
class NotRun:
    """What is missing of a dataset for one reason."""

    dataset: str
    why: str
    missing: tuple[MissingCells, ...]
    minutes: float
    """What all trials of these cells would take on one H200, a guess."""

    @property
    def cells(self) -> int:
        """How many."""
        return sum(len(part.protocols) * len(part.places) for part in self.missing)


def find_not_run(tables: Sequence[Table], reasons: Sequence[Reason], recipes: Recipes) -> list[NotRun]:
    """Every cell that the study owes and has no run, with the first reason that fits."""
    found: dict[tuple[str, str, str, str], list[Cell]] = {}
    for table in tables:
        for cell in _owed(table):
            place = (table.dataset, table.name, cell.variant.title, cell.variant.protocol)
            found.setdefault(place, []).append(cell)
    by_reason: dict[tuple[str, str], dict[tuple[str, str, tuple[str, ...]], list[str]]] = {}
    cells: dict[tuple[str, str], list[Cell]] = {}
    for (dataset, name, title, protocol), missing in found.items():
        stated = {"dataset": dataset, "table": name, "protocol": protocol, "method": title}
        reason = (dataset, _why(stated, reasons))
        by_reason.setdefault(reason, {}).setdefault((name, title, tuple(map(_place, missing))), []).append(protocol)
        cells.setdefault(reason, []).extend(missing)
    return [
        NotRun(
            *reason,
            tuple(MissingCells(*row, tuple(protocols)) for row, protocols in rows.items()),
            _minutes(cells[reason], recipes),
        )
        for reason, rows in by_reason.items()
    ]


def _minutes(cells: Sequence[Cell], recipes: Recipes) -> float:
    runs = [plan_run(cell, trial, recipes) for cell in dict.fromkeys(cells) for trial in range(TRIALS)]
    return Pace(cuda=True).all_seconds(groups(runs), 60 * BATCH_MINUTES) / 60


def _owed(table: Table) -> list[Cell]:
    """The cells of a table that the study owes and has not run; cells that share a run are named once."""
    rows = [row for group in table.groups for row in group.rows if row.variant.text in USUAL]
    results = [row.by[protocol] for row in rows for protocol in PROTOCOLS]
    return [result.cell for result in results if not result.rows and result.cell.run_as() == result.cell]


def _place(cell: Cell) -> str:
    """Inside its table, where classes decide the size."""
    if cell.classes != paper.ALL_CLASSES:
        return f"classes {cell.classes}"
    return "all labels" if cell.size is None else f"size {cell.size}"


def _why(stated: dict[str, str], reasons: Sequence[Reason]) -> str:
    for reason in reasons:
        if all(stated[name] == reason[name] for name in stated if name in reason):
            return str(reason["why"])
    return UNTOLD

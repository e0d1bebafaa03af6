"""What was not run: every missing cell by name, under its dataset and the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.study.plan import paper
from shortlist.study.plan.grid import Cell
from shortlist.study.report.tables import PROTOCOLS, USUAL, Table

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

    @property
    def cells(self) -> int:
        """How many."""
        return sum(len(part.protocols) * len(part.places) for part in self.missing)


def find_not_run(tables: Sequence[Table], reasons: Sequence[Reason]) -> list[NotRun]:
    """Every cell of the tables that has no run, with the first reason that fits; additions owe nothing."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for table in tables:
        for cell in _owed(table):
            place = (table.dataset, table.name, cell.variant.title, cell.variant.protocol)
            found.setdefault(place, []).append(_place(cell))
    by_reason: dict[tuple[str, str], dict[tuple[str, str, tuple[str, ...]], list[str]]] = {}
    for (dataset, name, title, protocol), places in found.items():
        stated = {"dataset": dataset, "table": name, "protocol": protocol, "method": title}
        rows = by_reason.setdefault((dataset, _why(stated, reasons)), {})
        rows.setdefault((name, title, tuple(places)), []).append(protocol)
    return [
        NotRun(dataset, why, tuple(MissingCells(*row, tuple(protocols)) for row, protocols in rows.items()))
        for (dataset, why), rows in by_reason.items()
    ]


def _owed(table: Table) -> list[Cell]:
    """The cells of a table that the study has to run and has not; a shared run is named once, as what it is run as."""
    rows = [row for group in table.groups for row in group.rows if row.variant.text in USUAL]
    results = [row.by[protocol] for row in rows for protocol in PROTOCOLS]
    return [result.cell for result in results if not result.rows and result.cell.canonical() == result.cell]


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

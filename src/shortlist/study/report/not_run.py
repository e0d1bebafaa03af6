"""What was not run: every missing cell by name, under its dataset and the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.study.plan import paper
from shortlist.study.plan.grid import Cell
from shortlist.study.report.tables import PROTOCOLS, USUAL, View

Reason = dict[str, Any]
"""Of not-run.json: "why", and which cells it is for."""
UNTOLD = "not run yet"


@dataclass(frozen=True)
class Missing:
    """Cells that have no run: one method in one table."""

    table: str
    title: str
    protocols: tuple[str, ...]
    places: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}, {self.title} ({' and '.join(self.protocols)}): {', '.join(self.places)}"


@dataclass(frozen=True)
class Gap:
    """What is missing of a dataset for one reason."""

    dataset: str
    why: str
    missing: tuple[Missing, ...]

    @property
    def cells(self) -> int:
        """How many."""
        return sum(len(part.protocols) * len(part.places) for part in self.missing)


def gaps(views: Sequence[View], reasons: Sequence[Reason]) -> list[Gap]:
    """Every cell of the views that has no run, with the first reason that fits; additions owe nothing."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for shown in views:
        for cell in _owed(shown):
            place = (shown.dataset, shown.table, cell.line.title, cell.line.protocol)
            found.setdefault(place, []).append(_place(cell))
    by_reason: dict[tuple[str, str], dict[tuple[str, str, tuple[str, ...]], list[str]]] = {}
    for (dataset, table, title, protocol), places in found.items():
        stated = {"dataset": dataset, "table": table, "protocol": protocol, "method": title}
        of = by_reason.setdefault((dataset, _why(stated, reasons)), {})
        of.setdefault((table, title, tuple(places)), []).append(protocol)
    return [
        Gap(*of, tuple(Missing(table, title, tuple(told), places) for (table, title, places), told in parts.items()))
        for of, parts in by_reason.items()
    ]


def _owed(shown: View) -> list[Cell]:
    """The cells of a table that the study has to run and has not; a shared run is named once, as what it is run as."""
    rows = [row for group in shown.groups for row in group.rows if row.line.text in USUAL]
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

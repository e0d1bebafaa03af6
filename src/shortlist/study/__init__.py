"""The paper's study: its tables as a grid of runs, the ledger of what was run, the choice of settings, the report.

`plan` says which runs there are, `run` trains what the ledger lacks, `choose` finds settings by validation alone,
`report` makes tables and pictures of the ledger, and `commands` puts them together for `shortlist reproduce`.

From a command to a figure, step by step:

    Wanted      the tables, datasets, methods, sizes and trials asked for            plan/grid.py
    Cell        one figure of a table: dataset, classes, size and MethodVariant      plan/grid.py, plan/variants.py
    Recipe      the settings of its variant: chosen, borrowed or a default           plan/recipes.py
    PlannedRun  a trial of a cell: its RunConfig, and its key in the ledger          plan/grid.py, plan/run_keys.py
    RunBatch    runs that the ledger lacks and that are trained together             run/driver.py, run/batches.py
    Row         what came of a run: a line of the Ledger                             run/worker.py, run/ledger.py
    CellResult  the rows that stand for a cell, their mean and spread                report/results.py
    Content     tables, overviews, checks and pictures                               report/content.py

Settings are chosen on the same way: a Point is settings to try, its runs are rows of tuning.jsonl, a Scored point has
what they came to, and the one that is chosen is a row of its own, which Recipes reads.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shortlist.study.commands import Study
    from shortlist.study.plan.grid import PARTS, PlannedRun, Wanted
    from shortlist.study.plan.variants import checked_protocols
    from shortlist.study.report.page import write_report
    from shortlist.study.run.driver import Budget, DriveOutcome

__all__ = [
    "PARTS",
    "Budget",
    "DriveOutcome",
    "PlannedRun",
    "Study",
    "Wanted",
    "checked_protocols",
    "write_report",
]

_MODULES = {
    "commands": ("Study",),
    "plan.grid": ("PARTS", "PlannedRun", "Wanted"),
    "plan.variants": ("checked_protocols",),
    "report.page": ("write_report",),
    "run.driver": ("Budget", "DriveOutcome"),
}


def __getattr__(name: str) -> Any:
    """Loaded when first used: a worker needs no page, a page no GPU."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

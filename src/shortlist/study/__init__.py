"""The paper's study: its tables as a grid of runs, the ledger of what was run, the choice of settings, the report.

`plan` says which runs there are, `run` trains those that the ledger lacks, `choose` finds settings by validation alone,
`report` makes tables and pictures from the ledger, and `commands` joins them for `shortlist reproduce`.

One figure of Table 1, from `shortlist reproduce table1` to `shortlist report`:

    made by                                  what it is
    dataset_names(words)    -> names         the datasets asked for; data of one's own is read     plan/own_data.py
    Wanted                                   the tables, datasets, methods, sizes, trials asked for   plan/grid.py
    cells(wanted)           -> Cell          one figure: dataset, classes, size, MethodVariant        plan/grid.py
    Recipes.of(variant)     -> Recipe        its settings: chosen, borrowed or a default              plan/recipes.py
    plan_run(cell, trial)   -> PlannedRun    a trial: its RunConfig, whose hash is the ledger's key   plan/grid.py
    drive(runs)             -> RunBatch      runs that the ledger lacks, trained together             run/driver.py
    train_batch(batch)      -> Row           the result of a run: one line of the Ledger              run/worker.py
    Results.of(cell)        -> CellResult    the rows of a cell; `.last` is their Figure, mean ± std  report/results.py
    build_table(...)        -> Table         a row for each method, both protocols beside the paper   report/tables.py
    gather(folder)          -> Content       tables, overviews, checks and pictures of a report       report/content.py

Settings are chosen by the same path: a Point is settings to try, its runs are rows of tuning.jsonl, a Scored point has
their score, and the choice is a row of its own, which Recipes reads.
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

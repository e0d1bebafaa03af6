"""The paper's study: its tables as a grid of runs, the ledger of what was run, the choice of settings, the report.

`plan` says which runs there are, `run` trains what the ledger lacks, `choose` finds settings by validation alone,
`report` makes tables and pictures of the ledger, and `commands` puts them together for `shortlist reproduce`.
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

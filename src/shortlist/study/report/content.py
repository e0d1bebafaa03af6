"""What a report says, read from a folder's ledger; `markdown` and `page` lay it out."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shortlist.errors import InputError
from shortlist.internal.provenance import short
from shortlist.study.choose.points import TRIED
from shortlist.study.plan.datasets import QUICK, add_stored, names, study_dataset
from shortlist.study.plan.recipes import CHOICE, Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.claims import Check, checks
from shortlist.study.report.curves import figure2
from shortlist.study.report.epochs import EpochTable, epoch_table
from shortlist.study.report.not_run import NotRun, Reason, find_not_run
from shortlist.study.report.overview import Overview, beyond_overview, table1_overview
from shortlist.study.report.paper_claims import paper_checks
from shortlist.study.report.results import Results
from shortlist.study.report.size_curves import by_size
from shortlist.study.report.tables import Table, build_table, problem
from shortlist.study.run.ledger import FOLDER, RUN, SEARCH, TUNING, Ledgers, Row

REASONS = "not-run.json"
"""Why cells were not run: a list of {"dataset", "table", "protocol", "method", "why"}; only "why" is required."""
TABLES = ("table1", "table2", "table3", "table4", "table5")


@dataclass(frozen=True)
class Content:
    """The parts of a report; a part without content is empty."""

    runs: list[Row]
    """By cell and trial."""
    tables: list[Table]
    overviews: list[Overview]
    beyond: list[Overview]
    checks: list[Check]
    paper_checks: list[Check]
    """Of the paper's claims."""
    epochs: list[EpochTable]
    not_run: list[NotRun]
    sizes: dict[str, str]
    """Accuracy by size: SVG text by the name of its file."""
    curves: dict[str, str]
    """Figure 2, in the same form."""
    settings: list[dict[str, Any]]
    choices: list[Row]
    tried: dict[str, Row]
    """The runs that settings were chosen among, by key."""
    searched: bool
    facts: str

    @property
    def own(self) -> bool:
        """Whether all runs are on data of one's own."""
        return bool(self.runs) and all("data" in row for row in self.runs)

    @property
    def cells(self) -> int:
        """How many were run."""
        return len({result.cell.run_as() for table in self.tables for result in table.results() if result.rows})


def gather(folder: Path, say: Callable[[str], None] = lambda line: None) -> Content:
    """Read the ledger of a folder of results."""
    ledgers = Ledgers(folder, say)
    if not ledgers.folder.is_dir():
        raise InputError(f"{folder} holds no folder {FOLDER}: run `shortlist reproduce ... --results {folder}` first")
    tuned = ledgers.of(TUNING).rows()
    rows = [row for name in ledgers.datasets() for row in ledgers.of(name).rows() if row.get("kind") == RUN]
    for row in rows:
        add_stored(row)
    recipes = Recipes(tuned)
    results = Results(rows, recipes)
    for dataset in results.datasets():
        for text in results.variants(dataset):
            if (why := problem(text)) is not None:
                say(f"{dataset}: the runs of {text} are in no table: {why}")
    reasons = _reasons(folder)
    datasets = _datasets(results, reasons)
    tables = [build_table(name, dataset, results) for dataset in datasets for name in TABLES]
    return Content(
        runs=sorted(rows, key=lambda r: (r["dataset"], r["classes"], -(r["size"] or 99), r["line"], r["trial"])),
        tables=[shown for shown in tables if any(result.rows for result in shown.results())],
        overviews=[found for name in datasets if (found := table1_overview(name, results)) is not None],
        beyond=[found for name in datasets if (found := beyond_overview(name, results)) is not None],
        checks=checks(results),
        paper_checks=paper_checks(results),
        epochs=[table for name in datasets if (table := epoch_table(name, results)) is not None],
        not_run=find_not_run([shown for shown in tables if study_dataset(shown.dataset).in_paper], reasons, recipes),
        sizes=_pictures("sizes", by_size, results),
        curves=_pictures("figure2", figure2, results),
        settings=settings_rows(rows, results),
        choices=[row for row in tuned if row.get("kind") == CHOICE],
        tried={row["key"]: row for row in tuned if row.get("kind") == TRIED},
        searched=bool(len(ledgers.of(SEARCH))),
        facts=provenance_text(rows),
    )


def _pictures(kind: str, draw: Callable[[str, Results], str | None], results: Results) -> dict[str, str]:
    """One per dataset."""
    return {f"{kind}-{name}.svg": svg for name in results.datasets() if (svg := draw(name, results)) is not None}


def provenance_text(rows: Sequence[Row]) -> str:
    """The hardware, versions and commits of the runs, in a sentence."""
    if not rows:
        return "No run yet."
    seconds = Counter[str]()
    for row in rows:
        seconds[row["hardware"]] += row["seconds"]
    runs = Counter(row["hardware"] for row in rows)
    machines = ", ".join(f"{name}: {count} in {seconds[name] / 3600:.2f} hours" for name, count in runs.most_common())
    torch = _counted(f"torch {row['versions']['torch']}" for row in rows)
    commits = _counted(short(row["commit"]) if row["commit"] else "commit unknown" for row in rows)
    days = sorted({row["date"][:10] for row in rows})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{len(rows)} runs, {span}; {machines}; {torch}; commits: {commits}."


def _counted(values: Iterable[str]) -> str:
    return ", ".join(f"{value} ({count})" for value, count in Counter(values).most_common())


def settings_rows(rows: Sequence[Row], results: Results) -> list[dict[str, Any]]:
    """One row per variant and setting: what its runs share, how many they are, and whether the tables show them."""
    shown = [cell for cell in results.cells() if problem(cell.variant.text) is None]
    in_tables = {row["key"] for cell in shown for row in results.of(cell).rows}
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        c = row["config"]
        place = (row["dataset"], MethodVariant.from_row(row), row["recipe"])
        shared = tuple(
            repr(c[name]) for name in ("optimiser", "lr", "weight_decay", "schedule", "batch_size", "epochs")
        )
        entry = found.setdefault(
            (*place, *shared, repr(c["method_options"])),
            {**row, "config": c, "count": 0, "time": 0.0, "shown": False},
        )
        entry["shown"] |= row["key"] in in_tables
        entry["count"] += 1
        entry["time"] += row["seconds"]
    return sorted(found.values(), key=lambda entry: (entry["dataset"], entry["line"], entry["protocol"]))


def _datasets(results: Results, reasons: Sequence[Reason]) -> list[str]:
    """Datasets with runs, or with a reason why there are none: the paper's four first, one's own data last."""
    known = [*names(), *(name + QUICK for name in names())]
    known += [name for name in results.datasets() if study_dataset(name).own]
    told = {*results.datasets(), *(reason.get("dataset") for reason in reasons)}
    return [name for name in known if name in told]


def _reasons(folder: Path) -> list[Reason]:
    path = folder / REASONS
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}") from error
    if not isinstance(content, list) or not all(isinstance(reason, dict) and "why" in reason for reason in content):
        raise InputError(f'{path}: expected a list of objects with "why"')
    return content

"""`shortlist report`: report.html, report.md and the pictures, from a folder's ledger alone."""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shortlist.errors import InputError
from shortlist.files import atomic_write
from shortlist.study.choose import tuning
from shortlist.study.plan.datasets import names, study_set
from shortlist.study.plan.grid import Cell
from shortlist.study.plan.recipes import CHOICE, Recipes
from shortlist.study.plan.variants import Line
from shortlist.study.report import (
    claims,
    markdown,
)
from shortlist.study.report import (
    curves as figures,
)
from shortlist.study.report import (
    not_run as gaps,
)
from shortlist.study.report import (
    overview as glances,
)
from shortlist.study.report import (
    size_curves as size_figure,
)
from shortlist.study.report import (
    tables as views,
)
from shortlist.study.report.results import Results
from shortlist.study.run.ledger import FOLDER, SEARCH, TUNING, Ledgers, Row
from shortlist.study.run.provenance import short

REASONS = "not-run.json"
"""Why cells were not run: a list of {"dataset", "table", "protocol", "method", "why"}, all but the last optional."""
STUDY, RESULTS_PAGE = "results", Path("docs", "results.md")
"""The study's own folder, and the page beside it that shows its main tables between the marks."""
MARKS = ("<!-- written by `shortlist report results` -->", "<!-- to here -->")
TABLES = ("table1", "table2", "table3", "table4", "table5")


class Written(NamedTuple):
    """What a report came to."""

    page: Path
    text: Path
    runs: int
    cells: int
    missing: int


def write_report(results: Path, say: Callable[[str], None] = lambda line: None) -> Written:
    """Read the ledger under `results` and write the report beside it."""
    ledgers = Ledgers(results, say)
    if not ledgers.folder.is_dir():
        raise InputError(f"{results} holds no folder {FOLDER}: run `shortlist reproduce ... --results {results}` first")
    tuned = ledgers.of(TUNING).rows()
    recipes = Recipes(tuned)
    rows = [row for name in ledgers.datasets() for row in ledgers.of(name).rows()]
    outcome = Results(rows, recipes)
    for dataset in outcome.datasets():
        for text in outcome.lines(dataset):
            if (why := views.problem(text)) is not None:
                say(f"{dataset}: the runs of {text} are in no table: {why}")
    reasons = _reasons(results)
    datasets = _datasets(outcome, reasons)
    shown = [views.view(table, dataset, outcome) for dataset in datasets for table in TABLES]
    missing = gaps.gaps([view for view in shown if study_set(view.dataset).in_paper], reasons)
    shown = [view for view in shown if any(result.rows for result in view.results())]
    checks = claims.checks(outcome)
    glanced = [found for name in datasets if (found := glances.glance(name, outcome)) is not None]
    beyond = [found for name in datasets if (found := glances.beyond(name, outcome)) is not None]
    curves = _pictures("figure2", figures.figure2, outcome, results)
    sizes = _pictures("sizes", size_figure.by_size, outcome, results)
    facts = provenance_text(rows)
    text = markdown.report_text(shown, glanced, beyond, checks, missing, list(sizes), list(curves), facts)
    atomic_write(results / "report.md", text)
    if _into_results_page(results, markdown.results_text(glanced, checks, facts)):
        say(f"the study's block of {RESULTS_PAGE} beside {results} was renewed")
    page = render(
        folder=results,
        views=shown,
        glances=glanced,
        beyond=beyond,
        checks=checks,
        gaps=missing,
        sizes=[Markup(svg) for svg in sizes.values()],
        curves=[Markup(svg) for svg in curves.values()],
        settings=settings_rows(rows, _in_tables(rows, outcome)),
        tried=_tried(tuned),
        choices=[row for row in tuned if row["kind"] == CHOICE],
        searches=sorted(path.name for path in results.glob("search-*.md")) if ledgers.of(SEARCH) else [],
        runs=sorted(
            rows, key=lambda row: (row["dataset"], row["classes"], -(row["size"] or 99), row["line"], row["trial"])
        ),
        facts=facts,
        explanation=markdown.EXPLANATION,
        beyond_explanation=markdown.BEYOND,
    )
    atomic_write(results / "report.html", page)
    cells = {result.cell.canonical() for view in shown for result in view.results() if result.rows}
    absent = sum(gap.cells for gap in missing)
    return Written(results / "report.html", results / "report.md", len(rows), len(cells), absent)


def _pictures(kind: str, draw: Callable[[str, Results], str | None], outcome: Results, results: Path) -> dict[str, str]:
    """One a dataset, as files of their own and, by these files' names, for the page."""
    drawn = {f"{kind}-{name}.svg": svg for name in outcome.datasets() if (svg := draw(name, outcome)) is not None}
    (results / "figures").mkdir(exist_ok=True)
    for name, svg in drawn.items():
        atomic_write(results / "figures" / name, svg + "\n")
    return drawn


def _into_results_page(results: Path, text: str) -> bool:
    """Put the main tables between the marks of the page beside the study's own folder; whether that changed it."""
    folder = results.resolve()
    path = folder.parent / RESULTS_PAGE
    if folder.name != STUDY or not path.is_file():  # somebody's own runs beside it say nothing about the study
        return False
    old = path.read_text()
    before, begin, rest = old.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    new = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    if not (begin and end) or new == old:
        return False
    atomic_write(path, new)
    return True


def render(**content: Any) -> str:
    """The page: one file, nothing loaded from elsewhere."""
    environment = Environment(
        loader=PackageLoader("shortlist.study.report", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters.update(number=_html_number, signed=markdown.signed, percent=_percent, plain=_plain, short=short)
    environment.globals["protocols"] = views.PROTOCOLS
    return environment.get_template("page.html").render(**content)


def provenance_text(rows: Sequence[Row]) -> str:
    """On what, with which versions, from which commits."""
    if not rows:
        return "No run yet."
    hours = sum(row["seconds"] for row in rows) / 3600
    machines = _counted(row["hardware"] for row in rows)
    torch = _counted(f"torch {row['versions']['torch']}" for row in rows)
    commits = _counted(short(row["commit"]) if row["commit"] else "commit unknown" for row in rows)
    days = sorted({row["date"][:10] for row in rows})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{len(rows)} runs, {hours:.2f} hours of computing, {span}; {machines}; {torch}; commits: {commits}."


def _counted(values: Iterable[str]) -> str:
    return ", ".join(f"{value} ({count})" for value, count in Counter(values).most_common())


def _in_tables(rows: Sequence[Row], outcome: Results) -> set[str]:
    """The keys of the runs that stand for their cell."""
    found = {Cell.from_dict(row) for row in rows if row["kind"] == "run"}
    return {row["key"] for cell in found if views.problem(cell.line.text) is None for row in outcome.of(cell).rows}


def settings_rows(rows: Sequence[Row], in_tables: Container[str] = ()) -> list[dict[str, Any]]:
    """One row for each line and setting: what its runs share, how many they are, and whether the tables show them."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        c = row["config"]
        place = (row["dataset"], Line.of_row(row), row["recipe"])
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


def _datasets(outcome: Results, reasons: Sequence[gaps.Reason]) -> list[str]:
    """What was run, and what there is a reason not to have run: the paper's four first."""
    known = [*names(), *(f"{name}-quick" for name in names())]
    told = {*outcome.datasets(), *(reason.get("dataset") for reason in reasons)}
    return [name for name in known if name in told]


def _tried(tuned: Sequence[Row]) -> dict[str, Row]:
    return {row["key"]: row for row in tuned if row["kind"] == tuning.TRIED}


def _reasons(results: Path) -> list[gaps.Reason]:
    path = results / REASONS
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}") from error
    if not isinstance(content, list) or not all(isinstance(reason, dict) and "why" in reason for reason in content):
        raise InputError(f'{path}: expected a list of objects with "why"')
    return content


def _html_number(figure: Any, bold: bool = False) -> Markup:
    return Markup("–" if figure is None else figure.text("<strong>{}</strong>" if bold else "{}"))


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def _plain(options: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())

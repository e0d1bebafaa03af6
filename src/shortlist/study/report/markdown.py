"""The report's tables as Markdown."""

from collections.abc import Iterable, Sequence
from itertools import compress

from shortlist.study.plan.paper import Figure
from shortlist.study.report.claims import Check
from shortlist.study.report.content import Content
from shortlist.study.report.epochs import EpochTable
from shortlist.study.report.not_run import NotRun
from shortlist.study.report.overview import Overview
from shortlist.study.report.tables import Table, TableRow

TITLE, OWN_TITLE = "The paper's study, re-run", "Methods compared on your own data"
COLUMNS = (
    "method", "paper reports", "ours, paper's protocol", "difference", "less SL, paired", "last ten", "ours, fair",
    "less likelihood, paired", "last ten", "notes",
)  # fmt: skip
PAPERS = ("paper reports", "difference")
"""The columns that data of one's own does not have."""
EXPLANATION = (
    "Test accuracy in percent, mean ± standard deviation over the trials (n - 1), after the last epoch; “last ten” is"
    " the mean of the last ten epochs. No best test epoch is picked; “epoch chosen” is the one that did best on a"
    " held-out tenth of the training answers, which those runs do not train on. “Paired” differences are between runs"
    " of the same trial, ± their standard error. Paper's protocol: the baselines see the None answers"
    " only; fair: every method sees every answer. OL, SL and likelihood are the same under both and run once. Bold: the"
    " best of its column in a group, among those without augmentation; “augmented” is with random crops, on CIFAR10"
    " with flips, too."
)

BEYOND = (
    "Methods with random crops (and flips, on CIFAR10), fed with every answer, with settings chosen by one rule where"
    " nothing else is said; the likelihood also with averaged weights (decay 0.999 per step). OL has the ordinary"
    " label of every item."
)


def number(figure: Figure | None, bold: bool = False) -> str:
    """`91.64 ± 0.25`.

    >>> number(Figure(91.641, 0.25), bold=True)
    '**91.64** ± 0.25'
    """
    return "–" if figure is None else figure.text("**{}**" if bold else "{}")


def signed(difference: float | None) -> str:
    """`+0.31`."""
    return "" if difference is None else f"{difference:+.2f}"


def _line(cells: Iterable[str]) -> str:
    r"""Of a table.

    >>> _line(["Mine, |C| known", "91.64"])
    '| Mine, \\|C\\| known | 91.64 |'
    """
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def table_text(table: Table) -> str:
    """A table, its groups one after another."""
    parts = [f"### {table.title}", *([table.note] if table.note else [])]
    shown = [table.compared or column not in PAPERS for column in COLUMNS]
    for group in table.groups:
        lines = [_line(compress(cells, shown)) for cells in (COLUMNS, *map(_cells, group.rows))]
        parts.append("\n".join([f"**{group.title}**\n", lines[0], "|---" * sum(shown) + "|", *lines[1:]]))
    return "\n\n".join(parts)


def _cells(row: TableRow) -> list[str]:
    ours, fair = row.by["paper"], row.by["fair"]
    return [
        row.title,
        number(row.reported, "reported" in row.best),
        number(ours.last, "paper" in row.best),
        signed(row.difference),
        str(row.to_sl or ""),
        number(ours.last_ten),
        number(fair.last, "fair" in row.best),
        str(row.to_likelihood or ""),
        number(fair.last_ten),
        row.notes,
    ]


def overview_text(overview: Overview) -> str:
    """A table in a few rows."""
    lines = [
        f"| {overview.title} | " + " | ".join(f"l = {size}" for size in overview.sizes) + " |",
        "|---" * (len(overview.sizes) + 1) + "|",
    ]
    lines += [_line([name, *map(number, figures)]) for name, figures in overview.rows]
    return "\n".join([*lines, *(["", *(f"- {remark}" for remark in overview.remarks)] if overview.remarks else [])])


def checks_text(checks: Sequence[Check]) -> str:
    """What was to be shown, and whether it was."""
    lines = ["| claim | holds | cells | where not | not run |", "|---|---|---|---|---|"]
    lines += [
        f"| {c.claim} | {c.answer} | {c.held} of {c.cells} | {'; '.join(c.told)} | {', '.join(c.missing)} |"
        for c in checks
    ]
    return "\n".join(lines)


EPOCHS = (
    "The paper does not say which epoch it reports. “Last” trains on all items for all epochs. “Epoch chosen” ends with"
    " the epoch that did best on a held-out tenth of the answers, and trains on the rest; “the same runs, last” is"
    " where those end. “Best test epoch” is the mean over the trials of “last” of each one's best test accuracy: a"
    " diagnosis of what looking at the test items would give, not a result. * with settings chosen earlier: those"
    " chosen now were run with the epoch chosen only."
)


def epochs_text(table: EpochTable) -> str:
    """SL's cells by the epoch that is reported."""
    lines = [
        f"| SL, {table.title} | the paper | ours, last | less the paper | ours, epoch chosen | less the paper |"
        " the same runs, last | best test epoch of “ours, last” (diagnosis) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table.rows:
        cells = [row.place, number(row.reported), number(row.last.last), signed(row.last.difference)]
        cells += [number(row.chosen.last), signed(row.chosen.difference)]
        cells += [number(row.chosen.last_epoch), number(row.best)]
        lines.append(_line(cells))
    return "\n".join(lines)


def results_text(content: Content) -> str:
    """The main tables and the claims, for the page of results."""
    if not content.overviews:
        return "There is no run yet."
    tables = [overview_text(overview) for overview in content.overviews]
    claims = [checks_text([*content.paper_checks, *content.checks])] if content.checks or content.paper_checks else []
    return "\n\n".join([*tables, *map(epochs_text, content.epochs), *claims, content.facts])


def not_run_text(missing: Sequence[NotRun]) -> str:
    """Every cell that is missing."""
    parts = [
        f"**{part.dataset}**, {part.cells} cells, about {part.minutes:.0f} minutes on one H200: {part.why}\n\n"
        + "\n".join(f"- {cells}" for cells in part.missing)
        for part in missing
    ]
    return "\n\n".join(parts) or "Nothing: every cell that the study owes was run."


def report_text(content: Content) -> str:
    """The whole report."""
    parts = [f"# {OWN_TITLE if content.own else TITLE}", EXPLANATION, content.facts]
    if content.overviews:
        parts += ["## Table 1 at a glance", *map(overview_text, content.overviews)]
    if content.epochs:
        parts += ["## Which epoch: SL's rows", EPOCHS, *map(epochs_text, content.epochs)]
    if content.paper_checks:
        parts += ["## What the paper claims", checks_text(content.paper_checks)]
    if content.checks:
        parts += ["## What was to be shown", checks_text(content.checks)]
    if content.beyond:
        parts += ["## Beyond the paper", BEYOND, *map(overview_text, content.beyond)]
    if content.sizes:
        parts += ["## By size", *(f"![Accuracy by size](figures/{name})" for name in content.sizes)]
    parts += ["## Tables", *map(table_text, content.tables)]
    if content.curves:
        parts += ["## Figure 2", *(f"![Figure 2](figures/{name})" for name in content.curves)]
    parts += ["## What was not run", not_run_text(content.not_run)]
    return "\n\n".join(parts) + "\n"

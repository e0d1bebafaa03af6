"""The report's tables as Markdown."""

from collections.abc import Sequence

from shortlist.study.plan.paper import Figure
from shortlist.study.report.claims import Check
from shortlist.study.report.not_run import Gap
from shortlist.study.report.overview import Glance
from shortlist.study.report.tables import View, ViewRow

HEADER = (
    "| method | paper reports | ours, paper's protocol | difference | last ten | ours, fair | last ten | notes |\n"
    "|---|---|---|---|---|---|---|---|"
)
EXPLANATION = (
    "Test accuracy in percent, mean ± standard deviation over the trials (n - 1), after the last epoch; “last ten” is"
    " the mean of the last ten epochs. No best epoch is picked. Paper's protocol: the baselines see the None answers"
    " only; fair: every method sees every answer. OL, SL and likelihood are the same under both and run once. Bold: the"
    " best of its column in a group, among those without augmentation; “augmented” is with random crops, on CIFAR10"
    " with flips, too."
)

BEYOND = (
    "Methods with random crops (and flips, on CIFAR10), fed with every answer, with settings chosen by one rule; the"
    " likelihood also with averaged weights (decay 0.999 a step). OL has the ordinary label of every item."
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


def table_text(shown: View) -> str:
    """A table, its groups one after another."""
    parts = [f"### {shown.title}", *([shown.note] if shown.note else [])]
    for group in shown.groups:
        rows = "\n".join(_row(row) for row in group.rows)
        parts.append(f"**{group.title}**\n\n{HEADER}\n{rows}")
    return "\n\n".join(parts)


def _row(row: ViewRow) -> str:
    ours, fair = row.by["paper"], row.by["fair"]
    cells = [
        row.title,
        number(row.reported, "reported" in row.best),
        number(ours.last, "paper" in row.best),
        signed(row.difference),
        number(ours.last_ten),
        number(fair.last, "fair" in row.best),
        number(fair.last_ten),
        row.notes,
    ]
    return f"| {' | '.join(cells)} |"


def glance_text(shown: Glance) -> str:
    """Table 1 in a few rows."""
    lines = [
        f"| {shown.title} | " + " | ".join(f"l = {size}" for size in shown.sizes) + " |",
        "|---" * (len(shown.sizes) + 1) + "|",
    ]
    lines += [f"| {name} | {' | '.join(map(number, figures))} |" for name, figures in shown.rows]
    return "\n".join([*lines, *(["", *(f"- {remark}" for remark in shown.remarks)] if shown.remarks else [])])


def checks_text(checks: Sequence[Check]) -> str:
    """What was to be shown, and whether it was."""
    lines = ["| claim | holds | cells | short of it by | not run |", "|---|---|---|---|---|"]
    lines += [
        f"| {c.claim} | {c.answer} | {c.held} of {c.cells} | {', '.join([*c.below, *c.diverged])} |"
        f" {', '.join(c.missing)} |"
        for c in checks
    ]
    return "\n".join(lines)


def results_text(glances: Sequence[Glance], checks: Sequence[Check], facts: str) -> str:
    """The main tables and the claims, for the page of results."""
    if not glances:
        return "The GPU runs themselves are still to come: there is no table of ours yet."
    tables = [glance_text(shown) for shown in glances]
    return "\n\n".join([*tables, *([checks_text(checks)] if checks else []), facts])


def gaps_text(gaps: Sequence[Gap]) -> str:
    """Every cell that is missing."""
    parts = [
        f"**{gap.dataset}**, {gap.cells} cells: {gap.why}\n\n" + "\n".join(f"- {part}" for part in gap.missing)
        for gap in gaps
    ]
    return "\n\n".join(parts) or "Nothing: every cell was run."


def report_text(
    views: Sequence[View],
    glances: Sequence[Glance],
    beyond: Sequence[Glance],
    checks: Sequence[Check],
    gaps: Sequence[Gap],
    sizes: Sequence[str],
    curves: Sequence[str],
    facts: str,
) -> str:
    """The whole report."""
    parts = ["# The paper's study, re-run", EXPLANATION, facts]
    if glances:
        parts += ["## Table 1 at a glance", *(glance_text(shown) for shown in glances)]
    if checks:
        parts += ["## What was to be shown", checks_text(checks)]
    if beyond:
        parts += ["## Beyond the paper", BEYOND, *(glance_text(shown) for shown in beyond)]
    if sizes:
        parts += ["## By size", *(f"![Accuracy by size](figures/{name})" for name in sizes)]
    parts += ["## Tables", *(table_text(shown) for shown in views)]
    if curves:
        parts += ["## Figure 2", *(f"![Figure 2](figures/{name})" for name in curves)]
    parts += ["## What was not run", gaps_text(gaps)]
    return "\n\n".join(parts) + "\n"

"""The demo's table for the terminal."""

from typing import Any

from rich.table import Table

from shortlist.demo.page import in_short, labels_of, percent, protocol_of

LEGEND = """\
shown     classes on each list, drawn at random; all: ordinary labelling
method    OL: ordinary labels. SL: the paper's method. CC, RC: its rivals.
          likelihood: the default of Shortlist
protocol  what the rivals learn from: paper, the None answers only;
          fair, every answer; both: no difference
reads     class names that people read; 100%: every class for every item"""


def result_table(figures: dict[str, Any]) -> Table:
    """The figures of `results.json` as a table."""
    table = Table(
        title=f"Digits: test accuracy (%), mean ± standard deviation of {len(figures['seeds'])} seeds",
        caption="\n".join((LEGEND, "", *in_short(figures))),
        caption_justify="left",
    )
    for heading in ("shown", "method", "protocol"):
        table.add_column(heading)
    for heading in ("reads", "last epoch", "last ten"):
        table.add_column(heading, justify="right", no_wrap=True)
    num_classes = figures["dataset"]["classes"]
    for row in figures["lines"]:
        if row["kind"] == "same reads":
            table.add_section()
        cells = (labels_of(row, num_classes), row["title"], protocol_of(row), f"{row['reads_share']:.0%}")
        table.add_row(*cells, percent(row["last_epoch"]), percent(row["mean_of_last_ten"]))
    return table

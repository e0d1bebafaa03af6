"""The demo's table for the terminal."""

from typing import Any

from rich.table import Table

from shortlist.demo.page import labels_of, percent, protocol_of

CAPTION = (
    "shown: classes on each list. reads: class names shown in all, as a share of showing every class for every item. "
    "OL: ordinary labels. SL: the paper's method. CC, RC: rivals; protocol paper feeds them the None answers only, "
    "fair every answer."
)


def result_table(figures: dict[str, Any]) -> Table:
    """The figures of `results.json` as a table."""
    table = Table(
        title="Digits: test accuracy (%), mean ± deviation over the seeds",
        caption=CAPTION,
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

"""The demo's page: one file, nothing loaded from elsewhere."""

from typing import Any

from markupsafe import Markup

from shortlist.internal.template import render


def render_page(figures: dict[str, Any], by_epoch: str, by_reads: str) -> str:
    """report.html from the figures of `results.json` and the two pictures (SVG text)."""
    return render(
        "shortlist.demo",
        {"percent": percent, "labels_of": labels_of, "protocol_of": protocol_of, "in_short": in_short},
        figures=figures,
        by_epoch=Markup(by_epoch),
        by_reads=Markup(by_reads),
    )


def percent(over_seeds: dict[str, Any]) -> str:
    """Mean and standard deviation over the seeds, in percent.

    >>> percent({"mean": 0.9512, "std": 0.004})
    '95.1 ± 0.4'
    """
    return f"{100 * over_seeds['mean']:.1f} ± {100 * over_seeds['std']:.1f}"


def labels_of(row: dict[str, Any], num_classes: int) -> str:
    """How many classes people were shown, and for what share of the items if not for all."""
    if row["kind"] == "all items":
        return "all"
    if row["kind"] == "same reads":
        return f"all, {row['reads_share']:.0%} of items"
    return f"{row['size']} of {num_classes}"


def in_short(figures: dict[str, Any]) -> list[str]:
    """A sentence for each size: the default method compared with ordinary labels at full cost and at the same cost."""

    def accuracy(**wanted: object) -> str:
        (row,) = [row for row in figures["lines"] if all(row[name] == value for name, value in wanted.items())]
        return f"{100 * row['last_epoch']['mean']:.1f} %"

    return [
        f"Reading {size} of {figures['dataset']['classes']} names per image trains a classifier (likelihood) that is "
        f"right on {accuracy(method='likelihood', size=size)} of the test images. Ordinary labels reach "
        f"{accuracy(kind='all items')} with all names read, and {accuracy(kind='same reads', size=size)} with as few "
        "reads, spent on fewer images."
        for size in figures["sizes"]
    ]


def protocol_of(row: dict[str, Any]) -> str:
    """The protocol of a rival; the other methods are the same under both."""
    return row["protocol"] or "both"

"""The demo's page: one file, nothing loaded from elsewhere."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render_page(figures: dict[str, Any], by_epoch: str, by_reads: str) -> str:
    """report.html from the figures of `results.json` and the two pictures (SVG text)."""
    environment = Environment(
        loader=PackageLoader("shortlist.demo", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters.update(percent=percent, labels_of=labels_of, protocol_of=protocol_of)
    page = environment.get_template("page.html")
    return page.render(figures=figures, by_epoch=Markup(by_epoch), by_reads=Markup(by_reads))


def percent(over_seeds: dict[str, Any]) -> str:
    """Mean and standard deviation over the seeds, in percent.

    >>> percent({"mean": 0.9512, "std": 0.004})
    '95.1 ± 0.4'
    """
    return f"{100 * over_seeds['mean']:.1f} ± {100 * over_seeds['std']:.1f}"


def labels_of(line: dict[str, Any], num_classes: int) -> str:
    """How many classes people were shown, and for how many items where not for all."""
    if line["kind"] == "all items":
        return "all"
    if line["kind"] == "same reads":
        return f"all, {line['reads_share']:.0%} of items"
    return f"{line['size']} of {num_classes}"


def protocol_of(line: dict[str, Any]) -> str:
    """The protocol a rival was run under; the other methods are the same under both."""
    return line["protocol"] or "both"

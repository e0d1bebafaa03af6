"""The demo's two pictures as SVG text: accuracy by epoch, and accuracy against labels read.

Methods look as in the study's pictures. A dashed line was fed the None answers only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from shortlist.demo.grid import Outcome, deviation
from shortlist.demo.rows import DemoRow
from shortlist.internal.drawing import LOOKS, drawing_style, svg_text

FONT_SIZE = 11


def accuracy_by_epoch(outcomes: Sequence[Outcome], num_classes: int) -> str:
    """One panel per size: the mean of the seeds by epoch, with a band of one standard deviation."""
    sizes = sorted({o.row.size for o in outcomes if o.row.size is not None})
    with drawing_style("by-epoch", FONT_SIZE):
        figure = Figure(figsize=(5 * len(sizes), 4.2), layout="constrained")
        panels: list[Any] = list(np.atleast_1d(figure.subplots(1, len(sizes), sharey=True)))
        for panel, size in zip(panels, sizes, strict=True):
            for outcome in _drawn(outcomes, size):
                epochs = np.arange(1, outcome.accuracy.shape[1] + 1)
                mean, spread = 100 * outcome.accuracy.mean(0), 100 * deviation(outcome.accuracy)
                look = _look(outcome.row)
                panel.plot(epochs, mean, label=_label(outcome.row, num_classes), lw=1.8, **look)
                panel.fill_between(epochs, mean - spread, mean + spread, color=look["color"], alpha=0.15, lw=0)
            panel.set(title=f"shortlists of {size} of {num_classes} classes", xlabel="epoch")
        lowest = min(100 * o.accuracy.mean(0)[len(o.accuracy[0]) // 8] for o in outcomes)
        panels[0].set(ylabel="test accuracy (%)", ylim=(5 * np.floor(lowest / 5), 100))
        panels[-1].legend(loc="lower right", fontsize=9, framealpha=0.9)
        return svg_text(figure, "Test accuracy by epoch for each method, mean of the seeds with a band")


def accuracy_by_reads(outcomes: Sequence[Outcome], items: int, num_classes: int) -> str:
    """Mean of the last ten epochs against class names read per item; bars of one standard deviation."""
    with drawing_style("by-reads", FONT_SIZE):
        figure = Figure(figsize=(7, 4.4), layout="constrained")
        axes: Any = figure.subplots()
        families = _families(outcomes)
        for place, family in enumerate(families):
            row = family[0].row
            nudge = 0.05 * (place - (len(families) - 1) / 2)  # side by side, not one hidden by another
            reads = np.array([o.reads / items for o in family]) + nudge
            mean = [100 * o.last_ten.mean() for o in family]
            spread = [100 * deviation(o.last_ten) for o in family]
            look = _look(row)
            axes.errorbar(reads, mean, spread, marker=LOOKS[row.method][2], ms=6, capsize=3, lw=1.5,
                          label=_label(row, num_classes, curve=True), **look)  # fmt: skip
        axes.set(xlabel=f"class names read per item (ordinary labels: {num_classes})")
        axes.set(ylabel="test accuracy (%)", xlim=(0, num_classes + 0.5))
        axes.legend(loc="lower right", fontsize=9, framealpha=0.9)
        return svg_text(figure, "Test accuracy against class names read per item, for each method")


def _drawn(outcomes: Sequence[Outcome], size: int) -> list[Outcome]:
    """What a panel shows: ordinary labels of all items, and the rows of this size, without CC fed every answer.

    That one is the likelihood itself.
    """
    rows = [o for o in outcomes if o.row.kind == "all items" or o.row.size == size]
    return [o for o in rows if o.row.kind != "same reads" and (o.row.method, o.row.protocol) != ("cc", "fair")]


def _families(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """The outcomes of each curve, by rising reads; ordinary labels of some or all items are one curve."""
    found: dict[tuple[str, str | None], list[Outcome]] = {}
    for outcome in outcomes:
        row = outcome.row
        if (row.method, row.protocol) != ("cc", "fair"):
            found.setdefault((row.method, row.protocol), []).append(outcome)
    return [sorted(family, key=lambda o: o.reads) for family in found.values()]


def _label(row: DemoRow, num_classes: int, *, curve: bool = False) -> str:
    if row.method == "ol":
        return (
            "OL: ordinary labels, of as many items as that pays for"
            if curve
            else f"OL: ordinary labels ({num_classes} reads)"
        )
    if row.method == "likelihood":
        return "likelihood (= CC, every answer)"
    if row.protocol is None:
        return "SL, the paper's (total form)"
    return f"{row.title}, {'None answers only' if row.protocol == 'paper' else 'every answer'}"


def _look(row: DemoRow) -> dict[str, Any]:
    return {"color": LOOKS[row.method][0], "linestyle": "--" if row.protocol == "paper" else "-"}

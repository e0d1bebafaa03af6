"""The demo's two pictures as SVG text: accuracy by epoch, and accuracy against labels read.

Colours are Okabe and Ito's, told apart by the colour-blind; the protocol is told by the stroke and every method by a
marker of its own, so nothing hangs on colour alone.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from shortlist.demo.grid import Outcome, deviation
from shortlist.demo.rows import Line

COLOURS = {"ol": "#000000", "sl": "#E69F00", "likelihood": "#0072B2", "cc": "#009E73", "rc": "#CC79A7"}
MARKERS = {"ol": "s", "sl": "^", "likelihood": "o", "cc": "D", "rc": "v"}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and read aloud
    "font.size": 11,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
}


def accuracy_by_epoch(outcomes: Sequence[Outcome], num_classes: int) -> str:
    """One panel a size: the mean of the seeds by epoch, with a band of one standard deviation."""
    sizes = sorted({o.line.size for o in outcomes if o.line.size is not None})
    with _style("by-epoch"):
        figure = Figure(figsize=(5 * len(sizes), 4.2), layout="constrained")
        panels: list[Any] = list(np.atleast_1d(figure.subplots(1, len(sizes), sharey=True)))
        for panel, size in zip(panels, sizes, strict=True):
            for outcome in _drawn(outcomes, size):
                epochs = np.arange(1, outcome.accuracy.shape[1] + 1)
                mean, spread = 100 * outcome.accuracy.mean(0), 100 * deviation(outcome.accuracy)
                look = _look(outcome.line)
                panel.plot(epochs, mean, label=_label(outcome.line, num_classes), lw=1.8, **look)
                panel.fill_between(epochs, mean - spread, mean + spread, color=look["color"], alpha=0.15, lw=0)
            panel.set(title=f"shortlists of {size} of {num_classes} classes", xlabel="epoch")
        lowest = min(100 * o.accuracy.mean(0)[len(o.accuracy[0]) // 8] for o in outcomes)
        panels[0].set(ylabel="test accuracy (%)", ylim=(5 * np.floor(lowest / 5), 100))
        panels[-1].legend(loc="lower right", fontsize=9, framealpha=0.9)
        return _svg(figure, "Test accuracy by epoch for each method, mean of the seeds with a band")


def accuracy_by_reads(outcomes: Sequence[Outcome], items: int, num_classes: int) -> str:
    """Mean of the last ten epochs against class names read per item; bars of one standard deviation."""
    with _style("by-reads"):
        figure = Figure(figsize=(7, 4.4), layout="constrained")
        axes: Any = figure.subplots()
        families = _families(outcomes)
        for place, family in enumerate(families):
            line = family[0].line
            nudge = 0.05 * (place - (len(families) - 1) / 2)  # side by side, where they would hide one another
            reads = np.array([o.reads / items for o in family]) + nudge
            mean = [100 * o.last_ten.mean() for o in family]
            spread = [100 * deviation(o.last_ten) for o in family]
            look = _look(line)
            axes.errorbar(reads, mean, spread, marker=MARKERS[line.method], ms=6, capsize=3, lw=1.5,
                          label=_label(line, num_classes, curve=True), **look)  # fmt: skip
        axes.set(xlabel=f"class names read per item (ordinary labels: {num_classes})")
        axes.set(ylabel="test accuracy (%)", xlim=(0, num_classes + 0.5))
        axes.legend(loc="lower right", fontsize=9, framealpha=0.9)
        return _svg(figure, "Test accuracy against class names read per item, for each method")


def _drawn(outcomes: Sequence[Outcome], size: int) -> list[Outcome]:
    """What a panel shows: ordinary labels of all items, and this size; CC fed every answer is the likelihood itself."""
    rows = [o for o in outcomes if o.line.kind == "all items" or o.line.size == size]
    return [o for o in rows if o.line.kind != "same reads" and (o.line.method, o.line.protocol) != ("cc", "fair")]


def _families(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """The outcomes of one curve together, by reads; ordinary labels of few or all items are one curve."""
    found: dict[tuple[str, str | None], list[Outcome]] = {}
    for outcome in outcomes:
        line = outcome.line
        if (line.method, line.protocol) != ("cc", "fair"):
            found.setdefault((line.method, line.protocol), []).append(outcome)
    return [sorted(family, key=lambda o: o.reads) for family in found.values()]


def _label(line: Line, num_classes: int, *, curve: bool = False) -> str:
    if line.method == "ol":
        return (
            "OL: ordinary labels, of as many items as that pays for"
            if curve
            else f"OL: ordinary labels ({num_classes} reads)"
        )
    if line.method == "likelihood":
        return "likelihood (= CC, every answer)"
    if line.protocol is None:
        return "SL, the paper's (total form)"
    return f"{line.title}, {'None answers only' if line.protocol == 'paper' else 'every answer'}"


def _look(line: Line) -> dict[str, Any]:
    return {"color": COLOURS[line.method], "linestyle": "--" if line.protocol == "paper" else "-"}


@contextmanager
def _style(salt: str) -> Iterator[None]:
    """Each picture's own salt, so that two of them on one page do not share the names of their parts."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": salt}):
        yield


def _svg(figure: Figure, title: str) -> str:
    """The <svg> element alone, fit to stand inside a page, with a title for those who cannot see it."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r"(<svg[^>]*)>", rf'\1 role="img" aria-label="{title}">', text, count=1)

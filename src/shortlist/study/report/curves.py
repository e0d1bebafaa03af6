"""Figure 2 as SVG text: test accuracy by epoch, mean and band over the trials, one panel per size and protocol."""

from collections.abc import Iterable
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from shortlist.internal.drawing import COLLAPSED, LOOKS, SPARE, Look, as_it_stands, drawing_style, svg_text
from shortlist.methods import PROTOCOLS, Protocol
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import SIZES, Cell
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.results import CellResult, Results
from shortlist.study.report.tables import added


def figure2(dataset: str, results: Results) -> str | None:
    """The panels of a dataset; None where it has no curve."""
    about = study_dataset(dataset)
    sizes = results.sizes(dataset) if about.own else SIZES["figure2"]
    looks = looks_of(text for text in added(dataset, results) if "+" not in text)
    panels = [
        (protocol, size, _curves(dataset, size, protocol, results, looks)) for protocol in PROTOCOLS for size in sizes
    ]
    if not any(curves for _, _, curves in panels):
        return None
    columns = [size for size in sizes if any(curves for _, shown, curves in panels if shown == size)]
    title = about.title
    with drawing_style(dataset):
        drawing = Figure(figsize=(3.2 * len(columns) + 1.6, 5.6), layout="constrained")
        axes: NDArray[Any] = drawing.subplots(2, len(columns), sharex=True, sharey=True, squeeze=False)
        handles: dict[str, Any] = {}
        heights: list[NDArray[np.float64]] = []
        for protocol, size, curves in panels:
            if size not in columns:
                continue
            panel = axes[PROTOCOLS.index(protocol), columns.index(size)]
            for text, curve in curves.items():
                handles.setdefault(
                    as_it_stands(MethodVariant.parse(text).title),
                    _draw(panel, list(looks).index(text) / len(looks), looks[text], curve),
                )
                heights.append(curve.mean(0)[len(curve[0]) // 5 :])
            panel.set_title(f"size {size}, {protocol}")
        for panel in axes.flat:
            panel.set_ylim(*_range(heights))
        for row, protocol in enumerate(PROTOCOLS):
            axes[row, 0].set_ylabel(f"test accuracy (%)\n{protocol}")
        for panel in axes[-1]:
            panel.set_xlabel("epoch")
            panel.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
        drawing.legend(handles.values(), handles.keys(), loc="outside right center", frameon=False)
        several = max(len(curve) for _, _, curves in panels for curve in curves.values()) > 1
        what = "mean of the trials by epoch" + (", ± one standard deviation" if several else "")
        drawing.suptitle(f"{title}: {what}" if len(columns) > 1 else f"{title}\n{what}")
        return svg_text(drawing, f"Test accuracy by epoch on {title} for every method, size and protocol")


def _range(heights: list[NDArray[np.float64]]) -> tuple[float, float]:
    """The part of 0..100 that is drawn, narrow enough to tell methods apart that differ by a point.

    It ends at the highest value. It begins where most curves run after their first fifth, or at the lowest end of those
    that did not collapse.
    """
    high = max(float(curve.max()) for curve in heights)
    ends = [float(curve[-1]) for curve in heights if curve[-1] > high - COLLAPSED]
    low = min([*ends, float(np.percentile([curve.min() for curve in heights], 25))])
    margin = max(0.1 * (high - low), 0.25)
    return max(0.0, low - margin), min(100.0, high + margin)


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """How every method is drawn: the usual ones, then these, with a spare look where they have none."""
    others = (name for name in dict.fromkeys(names) if name not in LOOKS)
    return LOOKS | dict(zip(others, cycle(SPARE), strict=False))


def _curves(
    dataset: str, size: int, protocol: Protocol, results: Results, texts: Iterable[str]
) -> dict[str, NDArray[np.float64]]:
    """(trials, epochs) in percent, for each variant that has runs."""
    found = {}
    for text in texts:
        variant = MethodVariant.parse(text, protocol)
        if text == "cc" and protocol == "fair":
            continue  # it is the likelihood
        cell = Cell.of_all_classes(dataset, None if variant.ordinary else size, variant)
        curve = _curve(results.of(cell))
        if curve is not None:
            found[text] = curve
    return found if any(text != "ol" for text in found) else {}


def _curve(result: CellResult) -> NDArray[np.float64] | None:
    rows = [row["accuracy"] for row in result.finished if row["accuracy"] and None not in row["accuracy"]]
    return 100 * np.array(rows, np.float64) if rows else None


def _draw(panel: Any, shift: float, look: Look, curve: NDArray[np.float64]) -> Any:
    """Draw a curve; `shift` (0 to below 1) moves its markers, so that those of two methods do not coincide."""
    colour, stroke, marker = look
    epochs = np.arange(1, curve.shape[1] + 1)
    every = max(1, len(epochs) // 6)
    mean = curve.mean(0)
    spread = curve.std(0, ddof=1) if len(curve) > 1 else np.zeros_like(mean)
    (handle,) = panel.plot(
        epochs,
        mean.round(3),
        color=colour,
        linestyle=stroke,
        marker=marker,
        markevery=(int(shift * every), every),
        ms=4,
        lw=1.4,
    )
    panel.fill_between(epochs, (mean - spread).round(3), (mean + spread).round(3), color=colour, alpha=0.15, lw=0)
    return handle

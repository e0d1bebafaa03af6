"""Test accuracy by the size of the shortlist as SVG text: every method fed with every answer, and ordinary labels."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from shortlist.internal.drawing import COLLAPSED, LOOKS, Look, as_it_stands, drawing_style, svg_text
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import Cell
from shortlist.study.plan.paper import Figure
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.curves import looks_of
from shortlist.study.report.results import Results
from shortlist.study.report.tables import added

DODGE = 0.05
"""Between two methods, in sizes."""
PANELS = {"without augmentation": "", "with augmentation": "+aug", "with two views": "+aug+strong"}
"""What is added to a method in each."""
Points = dict[int | None, Figure]
"""By size; None for ordinary labels."""


def by_size(dataset: str, results: Results) -> str | None:
    """A panel without augmentation, one with it and one with two views; None where no method was run at two sizes."""
    looks = looks_of(MethodVariant.parse(text).name for text in added(dataset, results))
    panels = {title: found for title, extra in PANELS.items() if (found := _methods(dataset, extra, results, looks))}
    if not panels:
        return None
    about = study_dataset(dataset)
    with drawing_style(f"sizes {dataset}"):
        drawing = Drawing(figsize=(4.2 * len(panels) + 1.4, 4.2), layout="constrained")
        axes: NDArray[Any] = drawing.subplots(1, len(panels), sharey=True, squeeze=False)
        handles: dict[str, Any] = {}
        for axis, (name, methods) in zip(axes.flat, panels.items(), strict=True):
            for text, points in methods.items():
                # shifted so that the bars of two methods do not coincide
                shift = DODGE * (list(looks).index(text) - len(LOOKS) / 2)
                handles[text] = _draw(axis, looks[text], shift, points)
            axis.set(title=name, xlabel=f"classes shown, of {about.num_classes}", xticks=results.sizes(dataset))
            axis.invert_xaxis()
        drawn = [points for methods in panels.values() for points in methods.values()]
        axes[0, 0].set(ylabel="test accuracy (%)", ylim=_range([f for points in drawn for f in points.values()]))
        shown = [text for text in looks if text in handles]
        titles = [as_it_stands(MethodVariant.parse(text).title) for text in shown]
        drawing.legend([handles[text] for text in shown], titles, loc="outside right center", frameon=False)
        drawing.suptitle(f"{about.title}: every answer, mean and standard deviation of the trials")
        return svg_text(drawing, f"Test accuracy by size of the shortlist on {about.title} for every method")


def _methods(dataset: str, extra: str, results: Results, looks: dict[str, Look]) -> dict[str, Points]:
    """Methods run at two sizes or more, and ordinary labels; CC is left out, as it is the likelihood here."""
    found: dict[str, Points] = {}
    for text in (text for text in looks if text != "cc"):
        variant = MethodVariant.parse(text + extra)
        sizes = (None,) if variant.ordinary else results.sizes(dataset)
        cells = {size: results.of(Cell.of_all_classes(dataset, size, variant)).last for size in sizes}
        points: Points = {size: figure for size, figure in cells.items() if figure is not None}
        if len(points) > 1 or (variant.ordinary and points):
            found[text] = points
    return found if any(text != "ol" for text in found) else {}


def _draw(axis: Any, look: Look, shift: float, points: Points) -> Any:
    """Deviations as bars; ordinary labels as a line across."""
    colour, stroke, marker = look
    if None in points:
        return axis.axhline(points[None].mean, color=colour, linestyle=stroke, lw=1.2)
    at = np.array([size for size in points if size is not None], np.float64) + shift
    means, spreads = zip(*((figure.mean, figure.std or 0.0) for figure in points.values()), strict=True)
    return axis.errorbar(
        at, means, spreads, color=colour, linestyle=stroke, marker=marker, ms=4, lw=1.2, elinewidth=0.8
    )


def _range(shown: list[Figure]) -> tuple[float, float]:
    """The part of 0..100 that is drawn: all but methods that collapsed, which would flatten the others."""
    high = max(figure.mean for figure in shown)
    low = min(figure.mean for figure in shown if figure.mean > high - COLLAPSED)
    margin = max(0.08 * (high - low), 0.1)
    return low - margin, high + margin

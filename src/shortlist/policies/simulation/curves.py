"""Runs of several ways to label, compared: means and bands on a common axis, the cost of equal accuracy, a table."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.simulation.simulate import Curve

Axis = Literal["reads", "seconds"]
FloatArray = NDArray[np.float64]
SHARE = 0.99
"""The mark of a way to label is the cost from which on it has this share of the accuracy of full labels."""


@dataclass(frozen=True)
class Band:
    """The accuracy of one way to label over its seeds, on a common axis of cost."""

    way: str
    cost: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def band(curves: Sequence[Curve], axis: Axis, *, steps: int = 400) -> Band:
    """The mean, least and largest accuracy over the seeds at `steps` evenly spaced costs.

    Between two trainings a run has the accuracy of the earlier one, and after its end that of the last one: what was in
    hand at that cost.
    """
    last = max(curve.column(axis)[-1] for curve in curves)
    first = max(curve.column(axis)[0] for curve in curves)
    cost = np.linspace(first, last, steps)
    values = np.stack([at_cost(curve, axis, cost) for curve in curves])
    return Band(curves[0].way, cost, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def at_cost(curve: Curve, axis: Axis, cost: FloatArray) -> FloatArray:
    """The accuracy at each cost: that of the last training at or before it (the first one before any)."""
    place = np.searchsorted(curve.column(axis), cost, side="right") - 1
    return curve.column("accuracy")[np.maximum(place, 0)]


def mark(curves: Sequence[Curve], axis: Axis, target: float) -> float | None:
    """The cost from which on the mean accuracy over the seeds stays at or above `target`; None: never."""
    mean = band(curves, axis, steps=4000)
    below = np.nonzero(mean.mean < target)[0]
    place = below[-1] + 1 if len(below) else 0
    return float(mean.cost[place]) if place < len(mean.cost) else None


@dataclass(frozen=True)
class Summary:
    """What one way to label cost, as shares of full labels, and where it ended; means over the seeds."""

    way: str
    seeds: int
    accuracy: float
    reads: float
    seconds: float
    questions: float
    resolved: float
    mark_reads: float | None
    """Share of the full-label reads from which on the accuracy stays at 99 % of that of full labels."""
    mark_seconds: float | None


def summarise(curves: Sequence[Curve], full: Sequence[Curve]) -> Summary:
    """One way to label compared with full labels; at the last points of `full` all items are labelled."""

    def mean_end(of: Sequence[Curve], name: str) -> float:
        return float(np.mean([getattr(curve.points[-1], name) for curve in of]))

    def cost(axis: Axis) -> tuple[float, float | None]:
        marked, whole = mark(curves, axis, SHARE * mean_end(full, "accuracy")), mean_end(full, axis)
        return mean_end(curves, axis) / whole, None if marked is None else marked / whole

    (reads, mark_reads), (seconds, mark_seconds) = cost("reads"), cost("seconds")
    return Summary(
        way=curves[0].way,
        seeds=len(curves),
        accuracy=mean_end(curves, "accuracy"),
        reads=reads,
        seconds=seconds,
        questions=mean_end(curves, "questions"),
        resolved=mean_end(curves, "resolved"),
        mark_reads=mark_reads,
        mark_seconds=mark_seconds,
    )


def curves_csv(curves: Sequence[Curve]) -> str:
    """Every point of every run, one row each."""
    rows: list[dict[str, Any]] = [row for curve in curves for row in curve.rows()]
    handle = io.StringIO()
    writer = csv.DictWriter(handle, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()})
    return handle.getvalue()


def by_way(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    """The runs of each way, in the order in which the ways first occur."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve.way, []).append(curve)
    return groups

"""The curves as files: a table, a report, and a picture of accuracy against reads and against seconds."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlist.internal.files import atomic_path, atomic_write
from shortlist.policies.simulation.curves import SHARE, Axis, band, by_way, curves_csv
from shortlist.policies.simulation.simulate import FULL, Curve

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; the line styles differ as well
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def write_curves(folder: Path, curves: Sequence[Curve], report: Mapping[str, Any]) -> None:
    """Write curve.csv, curve.json, curve.svg and curve.png; `report` is that of `Comparison.report`."""
    atomic_write(folder / "curve.csv", curves_csv(curves))
    atomic_write(folder / "curve.json", json.dumps(report, indent=1) + "\n")
    draw_curves(curves, folder / "curve", title=f"{report['data']}, {report['classes']} classes")


def draw_curves(curves: Sequence[Curve], path: str | Path, *, title: str) -> list[Path]:
    """Draw accuracy against reads and against seconds, on logarithmic axes, as `path`.svg and `path`.png.

    The dotted line is at `SHARE` of the accuracy of full labels.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "shortlist"  # the same figures give the same file
    groups = by_way(curves)
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    axes: tuple[tuple[Axis, str], ...] = (("reads", "class names shown (reads)"), ("seconds", "estimated seconds"))
    for panel, (axis, label) in zip(panels, axes, strict=True):
        for i, (way, runs) in enumerate(groups.items()):
            line = band(runs, axis)
            colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
            panel.plot(line.cost, line.mean, color=colour, linestyle=style, linewidth=1.8, label=way)
            panel.fill_between(line.cost, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
        if FULL in groups:
            ends = [run.points[-1].accuracy for run in groups[FULL]]
            panel.axhline(SHARE * sum(ends) / len(ends), color="0.35", linestyle=":", linewidth=1)
        panel.set(xscale="log", xlabel=label)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("test accuracy")
    panels[0].legend(loc="lower right", fontsize=8)
    seeds = max(len(runs) for runs in groups.values())
    noun = "seed" if seeds == 1 else "seeds (band: lowest to highest)"
    figure.suptitle(f"{title}, {seeds} {noun}", fontsize=11, parse_math=False)
    written = []
    for suffix in (".svg", ".png"):
        target = Path(path).with_suffix(suffix)
        metadata = {"Date": None} if suffix == ".svg" else None
        with atomic_path(target) as temporary:
            figure.savefig(temporary, format=suffix[1:], dpi=120, metadata=metadata)
        written.append(target)
    plt.close(figure)
    return written

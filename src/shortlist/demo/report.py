"""The demo from start to end: train, count, draw, and write demo/report.html and demo/results.json."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from shortlist.data import load
from shortlist.demo.grid import Outcome, deviation, train_rows
from shortlist.demo.page import render_page
from shortlist.demo.pictures import accuracy_by_epoch, accuracy_by_reads
from shortlist.demo.rows import BATCH_SIZE, EPOCHS, HIDDEN, SEEDS, SIZES, DemoRow, demo_rows
from shortlist.demo.table import result_table
from shortlist.internal.files import atomic_write, make_folder
from shortlist.internal.provenance import provenance


@dataclass(frozen=True)
class Demo:
    """What the demo found and where it is written."""

    outcomes: list[Outcome]
    figures: dict[str, Any]
    page: Path

    @property
    def table(self) -> Table:
        """The figures as a table for the terminal."""
        return result_table(self.figures)


def run_demo(
    out: Path,
    *,
    sizes: tuple[int, ...] = SIZES,
    seeds: Sequence[int] = SEEDS,
    epochs: int = EPOCHS,
    on_epoch: Callable[[str, int], None] = lambda run, total: None,
) -> Demo:
    """Run it and write `report.html`, `results.json` and the two pictures into the folder `out`.

    After every epoch `on_epoch` is called with the name of the run and the number of epochs of all runs.
    """
    began = time.perf_counter()
    make_folder(out)
    total = len(demo_rows(sizes)) * len(seeds) * epochs

    def told(row: DemoRow, seed: int) -> None:
        on_epoch(f"{row.text}, seed {seed}", total)

    outcomes = train_rows(sizes=sizes, seeds=seeds, epochs=epochs, on_epoch=told)
    digits = load("digits")
    items, num_classes = len(digits.train), digits.num_classes
    figures = {
        "command": "shortlist demo",
        "dataset": {"name": "digits", "train": items, "test": len(digits.test or ()), "classes": num_classes},
        "model": {"name": "mlp", "hidden": list(HIDDEN), "batch_size": BATCH_SIZE, "epochs": epochs},
        "sizes": list(sizes),
        "seeds": list(seeds),
        "lines": [_figures(outcome, items * num_classes) for outcome in outcomes],
        "seconds": round(time.perf_counter() - began, 1),
        **provenance("cpu"),
    }
    pictures = {
        "accuracy-by-epoch.svg": accuracy_by_epoch(outcomes, num_classes),
        "accuracy-by-reads.svg": accuracy_by_reads(outcomes, items, num_classes),
    }
    for name, svg in pictures.items():
        atomic_write(out / name, svg)
    atomic_write(out / "results.json", json.dumps(figures, indent=1) + "\n")
    atomic_write(out / "report.html", render_page(figures, *pictures.values()))
    return Demo(outcomes, figures, out / "report.html")


def _figures(outcome: Outcome, full_reads: int) -> dict[str, Any]:
    return {
        **asdict(outcome.row),
        "title": outcome.row.title,
        **asdict(outcome.settings),
        "reads": outcome.reads,
        "reads_share": round(outcome.reads / full_reads, 4),
        "last_epoch": _over_seeds(outcome.last),
        "mean_of_last_ten": _over_seeds(outcome.last_ten),
        "accuracy_by_epoch": outcome.accuracy.round(4).tolist(),
    }


def _over_seeds(values: NDArray[np.float64]) -> dict[str, Any]:
    mean, spread = float(values.mean()), float(deviation(values))
    return {"mean": round(mean, 4), "std": round(spread, 4), "seeds": values.round(4).tolist()}

"""Settings to try, how they score, and which are chosen: the same for every method.

A point is trained at every size with every seed, with a tenth of the items held out. Its score is the accuracy that all
held-out answers, None included, speak for (mean of the last ten epochs). Of all points within one standard error of the
best the first is chosen: the order of the points was fixed before they were run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.study.plan.grid import HOLDOUT, Cell, PlannedRun, config_of
from shortlist.study.plan.recipes import CHOICE, Recipe
from shortlist.study.plan.run_keys import digest
from shortlist.study.run.ledger import Ledger, Row

SIZES, SEEDS = (5, 3), (1001, 1002)
"""Of ten classes; seeds that no trial has."""
TRIED = "tried"
"""The kind of the ledger's rows that hold a run of a point."""
SETTINGS = ("lr", "weight_decay", "schedule", "optimiser", "batch_size", "method_options")


@dataclass(frozen=True)
class Point:
    """Settings to try, and where."""

    recipe: Recipe
    epochs: int
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...] = SEEDS

    def runs(self) -> list[PlannedRun]:
        """One per cell and seed, with a tenth of the items held out."""
        return [
            PlannedRun(cell, seed, config_of(cell, seed, self.recipe, self.epochs, HOLDOUT), self.recipe.source)
            for cell in self.cells
            for seed in self.seeds
        ]


@dataclass(frozen=True)
class Scored:
    """A point with the rows of its runs."""

    point: Point
    rows: tuple[Row, ...]

    @property
    def score(self) -> float:
        """The mean accuracy of its runs; one that failed counts 0."""
        return float(np.mean([row["estimate"] or 0.0 for row in self.rows]))

    @property
    def error(self) -> float:
        """Its standard error, from the numbers of held-out items."""
        errors = np.array([row["estimate_error"] or 0.0 for row in self.rows])
        return float(np.sqrt((errors**2).sum()) / len(errors))

    @property
    def settings(self) -> dict[str, Any]:
        """As a recipe has them; options at their defaults are left out."""
        return {name: self.rows[0]["config"][name] for name in SETTINGS}


def scored(points: Sequence[Point], rows: Mapping[str, Row]) -> list[Scored]:
    """The points whose runs are all stored, in their order."""
    found = []
    for point in points:
        keys = [run.key for run in point.runs()]
        if all(key in rows for key in keys):
            found.append(Scored(point, tuple(rows[key] for key in keys)))
    return found


def choose(found: Sequence[Scored]) -> Scored | None:
    """The first within a standard error of the best; None where every point failed."""
    best = max(found, key=lambda entry: entry.score, default=None)
    if best is None or not best.score:
        return None
    return next(entry for entry in found if entry.score >= best.score - best.error)


def store(
    chosen: Scored, among: Sequence[Scored], ledger: Ledger, by: str, source: str, num_classes: int | None = None
) -> bool:
    """Store a choice, for all numbers of classes or for one; False where it is stored already."""
    cell = chosen.point.cells[0]
    place = {"dataset": cell.dataset, **cell.variant.to_dict()}
    place |= {} if num_classes is None else {"num_classes": num_classes}
    keys = [row["key"] for entry in among for row in entry.rows]
    row = {
        "key": digest({"kind": CHOICE, "by": by, **place, "points": keys}),
        "kind": CHOICE,
        "by": by,
        **place,
        "settings": chosen.settings,
        "score": round(chosen.score, 6),
        "score_error": round(chosen.error, 6),
        "source": source,
        "chosen": chosen.rows[0]["key"],
        "points": keys,
        "date": chosen.rows[0]["date"],
    }
    return ledger.append(row)

"""The search for the recipe that gets SL nearest to the paper's row, by validation alone.

Rounds, on held-out answered items of two sizes at once. First a grid over the form of the risk, the normalisation
of the OVR loss, learning rate and weight decay (the normalisation `mean` is not tried: it is `sum` at a tenth of the
rate and ten times the weight decay), at 40 % of the epochs, as GPU minutes are scarce. Then its `KEPT` best points at
full length. Then the best of these with one thing changed at a time: schedule, weight decay, rate, and for the very
best batch size. Last the best `KEPT` with crops. Only what ran at full length can be chosen. Every point is kept in the
ledger, and the table of all of them is written.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shortlist.study.choose.tuning import tried_run
from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import Cell, PlannedRun
from shortlist.study.plan.recipes import Recipe
from shortlist.study.plan.run_keys import digest
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.run.ledger import Row

SIZES = (5, 3)
FORMS, NORMALISATIONS = ("total", "paper"), ("sum", "negatives")
RATES, DECAYS = (1e-1, 1e-2, 1e-3, 1e-4), (1e-4, 1e-3, 1e-2)
SCREEN = 0.4
"""The share of the epochs that the grid is run for."""
KEPT, BEST = 8, 2
"""Points of the grid that are run at full length, and points of these that the third round goes on from."""


@dataclass(frozen=True)
class Point:
    """Settings to try, at every size."""

    recipe: Recipe
    epochs: int
    augment: bool = False

    @property
    def key(self) -> str:
        """One per point."""
        return digest({**self.recipe.settings(), "epochs": self.epochs, "augment": self.augment})

    def runs(self, dataset: str) -> list[PlannedRun]:
        """One per size."""
        variant = MethodVariant("sl", "fair", self.augment)
        return [tried_run(Cell(dataset, paper.ALL_CLASSES, size, variant), self.recipe, self.epochs) for size in SIZES]


@dataclass(frozen=True)
class Scored:
    """A point with what it came to."""

    point: Point
    rows: tuple[Row, ...]

    @property
    def score(self) -> float:
        """The mean validation accuracy over the sizes; a failed run counts 0."""
        return float(np.mean([row["validation"] or 0.0 for row in self.rows]))


def grid(dataset: str, epochs: int) -> list[Point]:
    """The first round, for a full length of `epochs`."""
    batch, short = study_dataset(dataset).batch_size, max(1, round(SCREEN * epochs))
    return [
        Point(Recipe(lr, decay, "cosine", "sgd", batch, {"form": form, "normalisation": norm}, "search"), short)
        for form, norm, lr, decay in itertools.product(FORMS, NORMALISATIONS, RATES, DECAYS)
    ]


def longer(best: Sequence[Scored], epochs: int) -> list[Point]:
    """The second round: the best of the grid at full length."""
    return [replace(scored.point, epochs=epochs) for scored in best[:KEPT]]


def changed(best: Sequence[Scored]) -> list[Point]:
    """The third round: one thing changed at a time, from each of the best at full length."""
    found: dict[str, Point] = {}
    for place, scored in enumerate(best[:BEST]):
        recipe, epochs = scored.point.recipe, scored.point.epochs
        recipes = [
            replace(recipe, schedule="constant"),
            replace(recipe, schedule="step"),
            replace(recipe, lr=recipe.lr / 2),
            replace(recipe, lr=recipe.lr * 2),
            replace(recipe, weight_decay=recipe.weight_decay / 2),
            replace(recipe, weight_decay=min(1e-2, recipe.weight_decay * 3)),
        ]
        points = [Point(new, epochs) for new in recipes]
        if place == 0:
            points.append(Point(replace(recipe, batch_size=recipe.batch_size // 2), epochs))
        found |= {point.key: point for point in points}
    old = {scored.point.key for scored in best}
    return [point for key, point in found.items() if key not in old]


def cropped(best: Sequence[Scored]) -> list[Point]:
    """The last round: the best at full length with crops, as many as tuning tries of a method; it is for `sl+aug`."""
    return [replace(scored.point, augment=True) for scored in best[:KEPT]]


def scored(points: Sequence[Point], dataset: str, rows: Mapping[str, Row]) -> list[Scored]:
    """The points whose runs are all there, the best first."""
    found = []
    for point in points:
        keys = [run.key for run in point.runs(dataset)]
        if all(key in rows for key in keys):
            found.append(Scored(point, tuple(rows[key] for key in keys)))
    return ranked(found)


def ranked(found: Sequence[Scored]) -> list[Scored]:
    """The best first."""
    return sorted(found, key=lambda s: -s.score)


def table(found: Sequence[Scored], dataset: str) -> str:
    """What was tried, as Markdown, what ran longest first and of these the best."""
    sizes = " | ".join(f"size {size}" for size in SIZES)
    lines = [
        f"# The search for SL's recipe on {dataset}",
        "",
        "Held-out accuracy (%, answered items of the training data, mean of the last ten epochs); no test item was"
        " looked at. Only what ran at full length could be chosen. Written by `shortlist reproduce search`.",
        "",
        f"| epochs | form | OVR | lr | weight decay | schedule | batch | crops | {sizes} | mean |",
        "|---|---|---|---|---|---|---|---|" + "---|" * (len(SIZES) + 1),
    ]
    for entry in sorted(found, key=lambda entry: (-entry.point.epochs, -entry.score)):
        recipe, scores = entry.point.recipe, [row["validation"] for row in entry.rows]
        values = [
            str(entry.point.epochs),
            recipe.method_options["form"],
            recipe.method_options["normalisation"],
            f"{recipe.lr:g}",
            f"{recipe.weight_decay:g}",
            recipe.schedule,
            str(recipe.batch_size),
            "yes" if entry.point.augment else "no",
            *("failed" if score is None else f"{100 * score:.2f}" for score in scores),
            f"{100 * entry.score:.2f}",
        ]
        lines.append(f"| {' | '.join(values)} |")
    return "\n".join(lines) + "\n"

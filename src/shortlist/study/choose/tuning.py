"""Settings chosen by honest validation: held-out answered training items, never the test items.

The rule, the same for every variant: at most 8 points of the paper's grid (`POINTS`; 4 with strong views), 30 epochs
each, a tenth of the stochastically labelled training items held out, one seed that no trial has, at size 5; the point
with the best accuracy on the answered held-out items (mean of the last ten epochs) is used for every size and set of
classes. A variant that fails under SGD at all points is given Adam as one more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from shortlist.methods import Protocol
from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import Cell, PlannedRun, config_of
from shortlist.study.plan.recipes import CHOICE, Recipe, adam_recipe
from shortlist.study.plan.run_keys import digest
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.run.ledger import Ledger, Row

EPOCHS, SIZE, HOLDOUT, SEED = 30, 5, 0.1, 1000
TRIED = "tried"
"""The kind of the ledger's rows that hold a point."""
FAILS = 0.5
"""A variant fails under SGD if no point gets this validation accuracy (10 classes: chance is 0.1)."""

POINTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "lenet": ((1e-1, 1e-2, 1e-3, 1e-4), (1e-4, 1e-2)),
    "resnet32": ((1e-1, 5e-2, 1e-2, 1e-3), (1e-4, 1e-3)),
    "mlp": ((1e-1, 1e-2), (1e-4, 1e-2)),
}
"""Learning rates and weight decays by network. LeNet: every other of the paper's eight rates, and of its weight decays
1e-6 .. 1e-2 the two largest of every other. ResNet-32: the paper's five rates without 5e-3; of the weight decays 1e-4
and 1e-3, as 1e-2 keeps a ResNet from learning at these rates."""
STRONG_POINTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "lenet": ((1e-1, 5e-2), (1e-4, 5e-4)),
    "resnet32": ((1e-1, 5e-2), (5e-4, 1e-3)),
}
"""The same for variants with strong views, which take twice as long: around what was chosen with crops alone."""


def variants_of(methods: Sequence[str], protocols: Sequence[Protocol]) -> list[MethodVariant]:
    """The variants that are run for these methods, each once."""
    found = [MethodVariant.parse(text, protocol).canonical() for text in methods for protocol in protocols]
    return list(dict.fromkeys(found))


def tuned_cell(dataset: str, variant: MethodVariant) -> Cell:
    """Where a variant is tuned."""
    return Cell(dataset, paper.ALL_CLASSES, None if variant.ordinary else SIZE, variant)


def points(dataset: str, variant: MethodVariant, start: Recipe, epochs: int = EPOCHS) -> list[PlannedRun]:
    """The runs that are compared, in the order of the grid; `start` has what they share."""
    model = study_dataset(dataset).model
    rates, decays = STRONG_POINTS.get(model, POINTS[model]) if variant.strong else POINTS[model]
    recipes = [replace(start, lr=lr, weight_decay=decay, source="tuning") for lr in rates for decay in decays]
    return [tried_run(tuned_cell(dataset, variant), recipe, epochs) for recipe in recipes]


def adam_point(dataset: str, variant: MethodVariant, start: Recipe, epochs: int = EPOCHS) -> PlannedRun:
    """The ninth, for a variant that fails under SGD."""
    recipe = replace(adam_recipe(variant), batch_size=start.batch_size, method_options=start.method_options)
    return tried_run(tuned_cell(dataset, variant), recipe, epochs)


def tried_run(cell: Cell, recipe: Recipe, epochs: int, seed: int = SEED) -> PlannedRun:
    """A point of a search: trained without the held-out items."""
    return PlannedRun(cell, seed, config_of(cell, seed, recipe, epochs, HOLDOUT), recipe.source)


@dataclass(frozen=True)
class Choice:
    """What was chosen for a variant, out of what."""

    dataset: str
    variant: MethodVariant
    chosen: Row
    tried: tuple[Row, ...]

    @property
    def score(self) -> float:
        """The validation accuracy of the chosen point."""
        return float(self.chosen["validation"] or 0)


def fails(tried: Sequence[Row]) -> bool:
    """Whether every point of a variant failed, or hardly learned."""
    return max((row["validation"] or 0.0 for row in tried), default=0.0) < FAILS


def choose(dataset: str, variant: MethodVariant, tried: Sequence[Row]) -> Choice | None:
    """The best point on the held-out items; the first of equals. None where every point failed."""
    alive = [row for row in tried if row["validation"] is not None]
    if not alive:
        return None
    return Choice(dataset, variant, max(alive, key=lambda row: row["validation"]), tuple(tried))


def settings_of(row: Row) -> dict[str, Any]:
    """The recipe that a tried run was of."""
    names = ("lr", "weight_decay", "schedule", "optimiser", "batch_size", "method_options")
    return {name: row["config"][name] for name in names}


def store(choice: Choice, ledger: Ledger, by: str = "tune", source: str | None = None) -> bool:
    """Keep a choice; False where the same was kept before."""
    keys = [row["key"] for row in choice.tried]
    variant = choice.variant
    epochs = choice.chosen["config"]["epochs"]
    text = source or (
        f"tuned: best of {len(keys)} points of {epochs} epochs, held-out accuracy {100 * choice.score:.2f}"
        + (f" ({adam_recipe(variant).source})" if choice.chosen["config"]["optimiser"] == "adam" else "")
    )
    place = {"dataset": choice.dataset, **variant.to_dict()}
    row = {
        "key": digest({"kind": CHOICE, "by": by, **place, "points": keys}),
        "kind": CHOICE,
        "by": by,
        **place,
        "settings": settings_of(choice.chosen),
        "validation": choice.chosen["validation"],
        "source": text,
        "chosen": choice.chosen["key"],
        "points": keys,
        "date": choice.chosen["date"],
    }
    return ledger.append(row)

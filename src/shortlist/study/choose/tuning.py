"""Learning rate and weight decay of every variant, by the rule of `points`: 8 of them, 30 epochs, two sizes and seeds.

Points go from the largest rate to the smallest and, at one rate, from the smallest weight decay to the largest. The
choice is used for every size and set of classes. A variant that fails at all points gets one more: Adam.
"""

from collections.abc import Sequence
from dataclasses import replace

from shortlist.methods import Protocol
from shortlist.study.choose.points import SIZES, Point, Scored
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import Cell, shares
from shortlist.study.plan.recipes import Recipe, adam_recipe
from shortlist.study.plan.variants import SQUARE, MethodVariant

EPOCHS = 30
FAILS, CHANCES = 0.5, 5
"""A variant fails under SGD if no point gets this accuracy on held-out answers, or so many times that of chance where
there are more than ten classes."""

Grid = tuple[tuple[float, ...], tuple[float, ...]]
POINTS: dict[str, Grid] = {
    "lenet": ((1e-1, 1e-2), (1e-4, 1e-3, 1e-2, 3e-2)),
    "resnet32": ((1e-1, 1e-2), (5e-4, 1e-3, 3e-3, 1e-2)),
    "mlp": ((1e-1, 1e-2), (1e-4, 1e-2)),
}
"""Learning rates and weight decays by network. The paper's grid has smaller rates as well, which were tried with every
method and never came near the best. Its weight decays end at 1e-2; the LeNet's go one step further."""
SQUARE_SHARE = 0.1
"""Of these rates for the square loss, with which the largest diverge."""
STRONG_POINTS: dict[str, Grid] = {
    "lenet": ((1e-1, 5e-2), (1e-4, 5e-4)),
    "resnet32": ((1e-1, 5e-2), (5e-4, 1e-3)),
}
"""The same for variants with strong views, which take twice as long: around what was chosen with crops alone."""


def variants_of(methods: Sequence[str], protocols: Sequence[Protocol]) -> list[MethodVariant]:
    """The variants behind these methods, each once."""
    found = [MethodVariant.parse(text, protocol).run_as() for text in methods for protocol in protocols]
    return list(dict.fromkeys(found))


def points(dataset: str, variant: MethodVariant, start: Recipe, epochs: int = EPOCHS) -> list[Point]:
    """What is compared, in the order that decides between equal points; `start` has what they share."""
    model = study_dataset(dataset).model
    rates, decays = STRONG_POINTS.get(model, POINTS[model]) if variant.strong else POINTS[model]
    share = SQUARE_SHARE if variant.name in SQUARE else 1.0
    recipes = [
        replace(start, lr=float(f"{share * lr:.6g}"), weight_decay=decay, source="tuning")
        for lr in rates
        for decay in decays
    ]
    return [Point(recipe, epochs, _cells(dataset, variant)) for recipe in recipes]


def adam_point(dataset: str, variant: MethodVariant, start: Recipe, epochs: int = EPOCHS) -> Point:
    """One more, for a variant that fails under SGD."""
    recipe = replace(adam_recipe(variant), batch_size=start.batch_size, method_options=start.method_options)
    return Point(recipe, epochs, _cells(dataset, variant))


def _cells(dataset: str, variant: MethodVariant) -> tuple[Cell, ...]:
    sizes = (None,) if variant.ordinary else shares(SIZES, study_dataset(dataset).num_classes)
    return tuple(Cell.of_all_classes(dataset, size, variant) for size in sizes)


def fails(found: Sequence[Scored]) -> bool:
    """Whether every point of a variant failed, or hardly learned."""
    best = max((entry.score for entry in found), default=0.0)
    return best < min([FAILS, *(CHANCES / entry.point.cells[0].num_classes for entry in found)])


def source_of(chosen: Scored, among: Sequence[Scored]) -> str:
    """Who chose, and how."""
    variant, config = chosen.point.cells[0].variant, chosen.rows[0]["config"]
    sizes = " and ".join(str(cell.size) for cell in chosen.point.cells if cell.size is not None)
    return (
        f"tuned: first of {len(among)} points of {config['epochs']} epochs within a standard error of the best,"
        f" held-out accuracy {100 * chosen.score:.2f} ± {100 * chosen.error:.2f}"
        + (f" at sizes {sizes}" if sizes else "")
        + f", {len(chosen.point.seeds)} seeds"
        + (f" ({adam_recipe(variant).source})" if config["optimiser"] == "adam" else "")
    )

"""The search for SL's recipe, by held-out answers alone: which form, normalisation, rate, decay and schedule.

The paper does not say, so SL has more tries than its rivals. For each of 10, 8, 6 and 4 classes a grid is run with a
schedule of steps, one seed and 30 % of the epochs, as GPU minutes are scarce. Then its best points run at full length
with both seeds, the very best also with a cosine and with a constant rate. Only what ran at full length can be chosen,
by the rule of `points`. Every run is stored, and a table of all points is written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from shortlist.errors import InputError
from shortlist.study.choose.points import SEEDS, SIZES, Point, Scored
from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import Cell
from shortlist.study.plan.own_data import dataset_names
from shortlist.study.plan.recipes import Recipe
from shortlist.study.plan.variants import MethodVariant

PLACES: dict[int, tuple[tuple[str, int], ...]] = {
    10: tuple((paper.ALL_CLASSES, size) for size in SIZES),
    8: (("1-8", 4),),
    6: (("1-6", 3), ("5-10", 3)),
    4: (("1-4", 2), ("4-7", 2), ("7-10", 2)),
}
"""By number of classes: the sets of classes and sizes that a point is run at."""
SCREEN = 0.3
"""The share of the epochs that the grid is run for."""
KEPT = 4
"""Points of the grid that are run at full length."""
DECAYS = {"lenet": (1e-3, 1e-2, 3e-2), "resnet32": (5e-4, 3e-3, 1e-2), "mlp": (1e-4, 1e-3, 1e-2)}
"""Low, middle and high by network."""
_BOTH = ((1e-1, 0), (1e-2, 0), (1e-2, 1), (1e-2, 2), (1e-3, 1), (1e-3, 2))
FORMS: dict[str, dict[str, tuple[tuple[float, int], ...]]] = {
    "total": {"sum": _BOTH, "mean": ((1e-1, 0), (1e-1, 1)), "negatives": _BOTH},
    "equal": {"sum": _BOTH, "negatives": _BOTH},
    "paper": {"sum": ((1e-1, 0), (1e-1, 1), (1e-2, 0), (1e-2, 1))},
}
"""Form of the risk -> normalisation of its loss -> rates, each with the place of its weight decay. `mean` is `sum` at a
K-th of the rate and K times the weight decay, so that it is tried beyond the others only. The literal form, in which
answered items hardly count, has larger rates."""


def checked(words: Iterable[str]) -> tuple[str, ...]:
    """The study's names of these datasets, which must have ten classes."""
    names = dataset_names(words)
    for name in names:
        if not study_dataset(name).has_ten_classes:
            count = study_dataset(name).num_classes
            raise InputError(f"search: its recipes are for parts of ten classes, and {name} has {count}: tune instead")
    return names


def grid(dataset: str, num_classes: int, epochs: int) -> list[Point]:
    """The first round for a full length of `epochs`, in the order that decides between equal points."""
    about, short = study_dataset(dataset), max(1, round(SCREEN * epochs))
    decays = DECAYS[about.model]
    cells = tuple(Cell(dataset, classes, size, MethodVariant("sl")) for classes, size in PLACES[num_classes])
    found = []
    for form, by_normalisation in FORMS.items():
        for normalisation, rates in by_normalisation.items():
            for lr, place in rates:
                options = {"form": form, "normalisation": normalisation}
                recipe = Recipe(lr, decays[place], "step", "sgd", about.batch_size, options, "search")
                found.append(Point(recipe, short, cells, SEEDS[:1]))
    return found


def full(screened: Sequence[Scored], epochs: int) -> list[Point]:
    """The second round: the best of the grid, and its very best with other schedules."""
    best = sorted(screened, key=lambda entry: -entry.score)[:KEPT]
    points = [replace(entry.point, epochs=epochs, seeds=SEEDS) for entry in best]
    others = [replace(points[0], recipe=replace(points[0].recipe, schedule=name)) for name in ("cosine", "constant")]
    return [*points, *others] if points else []


def source_of(chosen: Scored, among: Sequence[Scored]) -> str:
    """Who chose, and how."""
    return (
        f"search: first of {len(among)} points at full length within a standard error of the best, held-out accuracy "
        f"{100 * chosen.score:.2f} ± {100 * chosen.error:.2f}"
    )


def table(found: Sequence[tuple[int, Scored, bool]], dataset: str) -> str:
    """What was tried, as Markdown: for each number of classes the longest runs first, and of these the best.

    Args:
        found: the number of classes, a point, and whether it was chosen.
        dataset: its name.
    """
    lines = [
        f"# The search for SL's recipe on {dataset}",
        "",
        "Accuracy (%) by held-out answers, None answers among them, mean of the last ten epochs, ± its standard error;"
        " no test item was looked at. Only what ran at full length could be chosen. Written by `shortlist reproduce"
        " search`.",
        "",
        "| classes | epochs | seeds | form | OVR | lr | weight decay | schedule | mean | by classes and size | |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for count, entry, chosen in sorted(found, key=lambda one: (-one[0], -one[1].point.epochs, -one[1].score)):
        recipe, point = entry.point.recipe, entry.point
        values = [
            str(count),
            str(point.epochs),
            str(len(point.seeds)),
            recipe.method_options["form"],
            recipe.method_options["normalisation"],
            f"{recipe.lr:g}",
            f"{recipe.weight_decay:g}",
            recipe.schedule,
            f"{100 * entry.score:.2f} ± {100 * entry.error:.2f}",
            ", ".join(_by_cell(entry)),
            "chosen" if chosen else "",
        ]
        lines.append(f"| {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def _by_cell(entry: Scored) -> list[str]:
    """`1-10 of size 5: 91.20 91.41`: a figure per seed."""
    seeds = len(entry.point.seeds)
    told = []
    for place, cell in enumerate(entry.point.cells):
        rows = entry.rows[place * seeds : (place + 1) * seeds]
        scores = ["failed" if row["estimate"] is None else f"{100 * row['estimate']:.2f}" for row in rows]
        told.append(f"{cell.classes} of size {cell.size}: {' '.join(scores)}")
    return told

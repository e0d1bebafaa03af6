"""Settings of a variant on a dataset, and where each choice comes from."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

from shortlist.errors import InputError
from shortlist.study.plan.datasets import StudyDataset
from shortlist.study.plan.run_keys import own_code
from shortlist.study.plan.variants import SQUARE, MethodVariant, stated_options
from shortlist.training import Optimiser, Schedule

CHOICE = "choice"
"""The kind of the ledger's rows that hold a choice."""
NOT_TUNED = "default, not tuned"
"""The source of a recipe that nothing chose."""


@dataclass(frozen=True)
class Recipe:
    """How a variant is trained, apart from what the paper fixes (network, epochs, momentum 0.9)."""

    lr: float
    weight_decay: float
    schedule: Schedule = "cosine"
    optimiser: Optimiser = "sgd"
    batch_size: int = 256
    method_options: dict[str, Any] = field(default_factory=dict)
    source: str = NOT_TUNED
    """Who chose it, and how; kept in the ledger."""

    def settings(self) -> dict[str, Any]:
        """As `RunConfig` takes them."""
        return {name: value for name, value in asdict(self).items() if name != "source"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From a row of the ledger, whose other fields are ignored."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})


# Starting points, not results. A square loss has larger gradients than cross entropy.
_CROSS_ENTROPY = {
    "lenet": Recipe(0.05, 1e-4),
    "resnet32": Recipe(0.05, 5e-4),
    "mlp": Recipe(0.1, 1e-4),
}
_SQUARE = {
    "lenet": Recipe(0.01, 1e-3),
    "resnet32": Recipe(0.01, 5e-4),
    "mlp": Recipe(0.02, 1e-4),
}
_ADAM = Recipe(1e-3, 1e-5, optimiser="adam", source="the authors' Adam, as it fails under SGD")
"""What the authors of LOG, EXP, RC and CC use: for a method that fails under the paper's SGD."""


def adam_recipe(variant: MethodVariant) -> Recipe:
    """For a variant that fails under SGD; a method of one's own has no authors who chose it."""
    return replace(_ADAM, source="Adam, as it fails under SGD") if variant.own else _ADAM


def default_recipe(dataset: StudyDataset, variant: MethodVariant) -> Recipe:
    """The settings of a variant that was not tuned."""
    table = _SQUARE if variant.name in SQUARE else _CROSS_ENTROPY
    return replace(table[dataset.model], batch_size=dataset.batch_size, method_options=variant.options)


Place = tuple[str, MethodVariant, int | None]
"""A dataset, a variant, and the number of classes that a choice is for; None: for all."""


class Choice(NamedTuple):
    """What was chosen for a place. Of two choices for a place the greater counts, compared field by field."""

    searched: bool
    """By the search for SL's recipe, which takes precedence."""
    of_this_code: bool
    """Whether the file of one's own method still says what it said then. Otherwise the choice counts only while there
    is no other, and again once the file is changed back."""
    epochs: int
    """Of the runs it rests on: a short try must not replace a full one."""
    recipe: Recipe


class Recipes:
    """The choices of a ledger; of equal ones for a place the later counts.

    Args:
        rows: of tuning.jsonl, in order; the points say how long they ran, and with which code.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._chosen: dict[Place, Choice] = {}
        points: dict[str, tuple[int, str | None]] = {}
        for row in rows:
            if row.get("kind") != CHOICE:
                points[row.get("key", "")] = (row.get("config", {}).get("epochs", 0), row.get("code"))
                continue
            place = (str(row["dataset"]), MethodVariant.from_row(row), row.get("num_classes"))
            epochs, code = points.get(row.get("chosen", ""), (0, None))
            options = stated_options(place[1].method, row["settings"].get("method_options", {}))
            recipe = Recipe.from_dict({**row["settings"], "method_options": options, "source": row["source"]})
            choice = Choice(row.get("by") == "search", code == _code_now(place[1].method), epochs, recipe)
            if place not in self._chosen or choice[:-1] >= self._chosen[place][:-1]:
                self._chosen[place] = choice

    def __len__(self) -> int:
        return len(self._chosen)

    def of(self, dataset: StudyDataset, variant: MethodVariant, num_classes: int | None = None) -> Recipe:
        """The recipe of a variant: searched for, on this dataset or one it borrows from; else tuned; else a default.

        Of searched ones, one for this number of classes goes first. A tuned one may be that of a plainer variant.
        """
        variant = variant.run_as()
        names = (dataset.name, *dataset.recipes_from)
        same = dict.fromkeys((variant, replace(variant, keep=False)))
        searched = [(name, tried, count) for count in (num_classes, None) for name in names for tried in same]
        searched = [place for place in searched if place in self._chosen and self._chosen[place].searched]
        for place in [*searched, *((name, tried, None) for name in names for tried in variant.plainer())]:
            if place in self._chosen:
                recipe, (name, tried, _) = self._chosen[place].recipe, place
                borrowed = "" if (name, tried) == (dataset.name, variant) else f" (for {tried.text} on {name})"
                return replace(recipe, source=recipe.source + borrowed)
        return default_recipe(dataset, variant)

    def start(self, dataset: StudyDataset, variant: MethodVariant) -> Recipe:
        """What tuning begins with: a default, with the schedule and options that a search found on another dataset.

        A dataset that borrows the searched recipe itself is tuned from the plain default, for comparison.
        """
        default = default_recipe(dataset, variant)
        names = (dataset.name, *dataset.recipes_from)
        for (name, tried, count), choice in self._chosen.items():
            elsewhere = choice.searched and name not in names and count is None
            if elsewhere and tried in variant.run_as().plainer():
                return replace(default, schedule=choice.recipe.schedule, method_options=choice.recipe.method_options)
        return default


def _code_now(method: str) -> str | None:
    """The code of a method of one's own, if it can be imported; a method of the package has none."""
    try:
        return own_code(method).get("code")
    except InputError:
        return None

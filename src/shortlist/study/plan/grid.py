"""The grid: the cells of each table, and the run behind each trial of a cell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from shortlist.errors import InputError, unknown_name
from shortlist.methods import PROTOCOLS, Protocol
from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.own_data import dataset_names
from shortlist.study.plan.recipes import Recipe, Recipes
from shortlist.study.plan.run_keys import canonical, key_of
from shortlist.study.plan.variants import EMA, MethodVariant
from shortlist.training import RunConfig

TABLES = ("table1", "table2", "table3", "table4", "table5", "figure2")
SIZES = {"table1": (8, 7, 6, 5, 4, 3), "table2": (8, 7, 6, 5), "figure2": (8, 7, 6, 5)}
"""Of ten classes."""
QUICK_SIZES = (5,)
BEYOND = "beyond"
"""The part that is not in the paper: every method with augmentation, every answer, and the improved likelihood."""
PARTS = (*TABLES, BEYOND)
IMPROVED = "likelihood+aug+ema"
TRIALS = 5
HOLDOUT = 0.1
"""The share of the labelled items that is held out where settings, or epochs, are chosen."""


@dataclass(frozen=True)
class Cell:
    """One figure of a table: what its trials have in common, apart from the settings."""

    dataset: str
    classes: str
    """Counted from 1: `1-10`, `5-10`."""
    size: int | None
    variant: MethodVariant

    @classmethod
    def of_all_classes(cls, dataset: str, size: int | None, variant: MethodVariant) -> Self:
        """A cell of Table 1 or 2."""
        return cls(dataset, study_dataset(dataset).all_classes, size, variant)

    @property
    def name(self) -> str:
        """For people: `fashion, classes 1-10, size 5, SL (paper)`."""
        size = "ordinary labels" if self.size is None else f"size {self.size}"
        return f"{self.dataset}, classes {self.classes}, {size}, {self.variant.title} ({self.variant.protocol})"

    def run_as(self) -> Self:
        """The cell whose runs it shows: cells that differ in name alone share theirs (`MethodVariant.run_as`)."""
        return replace(self, variant=self.variant.run_as())

    @property
    def class_indices(self) -> tuple[int, ...] | None:
        """Counted from 0; None for all."""
        low, high = class_range(self.classes)
        whole = self.classes == study_dataset(self.dataset).all_classes
        return None if whole else tuple(range(low - 1, high))

    @property
    def num_classes(self) -> int:
        """How many."""
        low, high = class_range(self.classes)
        return high - low + 1

    def to_dict(self) -> dict[str, Any]:
        """For a row of the ledger."""
        return {
            "dataset": self.dataset,
            "classes": self.classes,
            "size": self.size,
            **self.variant.to_dict(),
        }

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Self:
        """Undo `to_dict`."""
        return cls(row["dataset"], row["classes"], row["size"], MethodVariant.from_row(row))


@dataclass(frozen=True)
class PlannedRun:
    """One trial of a cell, with its settings."""

    cell: Cell
    """The one that is run (`Cell.run_as`)."""
    trial: int
    config: RunConfig
    source: str
    """Who chose the recipe, and how."""

    @property
    def key(self) -> str:
        """Its name in the ledger."""
        return key_of(self.cell.dataset, self.config)


@dataclass(frozen=True)
class Wanted:
    """The part of the grid that is asked for; None stands for all."""

    tables: tuple[str, ...] = TABLES
    datasets: tuple[str, ...] = ("mnist", "fashion", "kuzushiji", "cifar10")
    methods: tuple[str, ...] | None = None
    sizes: tuple[int, ...] | None = None
    classes: tuple[str, ...] | None = None
    protocols: tuple[Protocol, ...] = PROTOCOLS
    trials: int = TRIALS
    epochs: int | None = None
    """Instead of the paper's number."""
    quick: bool = False
    """Whether one size is enough, half of the classes, where none is stated."""

    def __post_init__(self) -> None:
        if self.classes is not None:
            ranges = ("{}-{}".format(*class_range(text)) for text in self.classes)  # 01-8 is 1-8
            object.__setattr__(self, "classes", tuple(ranges))
        object.__setattr__(self, "datasets", dataset_names(self.datasets))
        for name in ("tables", "datasets", "methods", "sizes", "classes", "protocols"):
            if (given := getattr(self, name)) is not None:  # each once, however often it is named
                object.__setattr__(self, name, tuple(dict.fromkeys(given)))
        for name in self.tables:
            if name not in PARTS:
                raise unknown_name("table", name, PARTS)
        for text in self.methods or ():
            MethodVariant.parse(text)
        for name in self.datasets:
            self._check_places(name)
        if self.trials < 1:
            raise InputError(f"trials: expected at least 1, got {self.trials}")
        if self.epochs is not None and self.epochs < 1:
            raise InputError(f"epochs: expected at least 1, got {self.epochs}")

    def _check_places(self, dataset: str) -> None:
        """Refuse tables, classes and sizes that a dataset cannot have."""
        about = study_dataset(dataset)
        subsets = [table for table in self.tables if table in paper.SUBSETS]
        if subsets and not about.has_ten_classes:
            found = f"{', '.join(subsets)}: sets of classes out of ten, and {dataset} has {about.num_classes}"
            raise InputError(f"{found}; expected other tables, such as table1")
        known = dict.fromkeys(c for table in self.tables for c in paper.SUBSETS.get(table, (about.all_classes,)))
        for text in self.classes or ():
            if text not in known:
                tables = ", ".join(self.tables)
                raise InputError(f"classes {text!r}: not in {tables}, expected some of {', '.join(known)}")
        for size in self.sizes or ():
            if not 1 <= size < about.num_classes:
                most, count = about.num_classes - 1, about.num_classes
                raise InputError(f"size: expected 1..{most} of {count} classes, got {size} for {dataset}")


def class_range(text: str) -> tuple[int, int]:
    """`4-9` -> (4, 9)."""
    low, dash, high = text.partition("-")
    if not (dash and low.isdecimal() and high.isdecimal() and 1 <= int(low) < int(high)):
        raise InputError(f"classes {text!r}: expected a range such as 4-9, counted from 1")
    return int(low), int(high)


def shares(sizes: Sequence[int], num_classes: int) -> tuple[int, ...]:
    """Sizes of ten classes as the same shares of others, rounded, each once.

    >>> shares((8, 7, 6, 5, 4, 3), 30), shares((8, 7, 6, 5, 4, 3), 7)
    ((24, 21, 18, 15, 12, 9), (6, 5, 4, 3, 2))
    """
    rounded = ((size * num_classes + 5) // 10 for size in sizes)
    return tuple(dict.fromkeys(min(max(size, 1), num_classes - 1) for size in rounded))


def sizes_of(table: str, dataset: str) -> tuple[int, ...]:
    """The sizes of a table on a dataset where none are stated."""
    return shares(SIZES.get(table, SIZES["table1"]), study_dataset(dataset).num_classes)


def cells(wanted: Wanted) -> list[Cell]:
    """Every cell asked for, as the tables name it, each once.

    Raises:
        InputError: there is none.
    """
    found: dict[Cell, None] = {}
    for dataset in wanted.datasets:
        for table in wanted.tables:
            for cell in _cells_of(table, dataset, wanted):
                found[cell] = None
    if not found:
        raise InputError(
            "no cell of the grid is asked for: check --methods, --sizes, --classes and --protocol against the table"
        )
    return list(found)


def _cells_of(table: str, dataset: str, wanted: Wanted) -> list[Cell]:
    found = []
    for classes, size in _places(table, dataset, wanted):
        for text in _methods(table, size, wanted.methods):
            for protocol in wanted.protocols:
                variant = MethodVariant.parse(text, protocol)
                if variant.ordinary == (size is None) and (table != BEYOND or protocol == "fair"):
                    found.append(Cell(dataset, classes, size, variant))
    return found


def _places(table: str, dataset: str, wanted: Wanted) -> list[tuple[str, int | None]]:
    """Classes and sizes of a table, as far as they are wanted; ordinary labels have no size."""
    if table in paper.SUBSETS:
        places: list[tuple[str, int | None]] = [(c, paper.subset_size(c)) for c in paper.SUBSETS[table]]
    else:
        # a size the paper does not have is run all the same if it is asked for
        about = study_dataset(dataset)
        usual = shares(QUICK_SIZES, about.num_classes) if wanted.quick else sizes_of(table, dataset)
        sizes = usual if wanted.sizes is None else wanted.sizes
        places = [(about.all_classes, size) for size in sizes]
        if table != "table1" or any(MethodVariant.parse(text).ordinary for text in wanted.methods or ()):
            places.append((about.all_classes, None))
    return [
        (classes, size)
        for classes, size in places
        if (wanted.classes is None or classes in wanted.classes)
        and (wanted.sizes is None or size is None or size in wanted.sizes)
    ]


def _methods(table: str, size: int | None, stated: Sequence[str] | None) -> tuple[str, ...]:
    if stated is not None:
        return tuple(stated)
    if table == BEYOND:
        return ("ol+aug",) if size is None else beyond_methods()
    if size is None:
        return ("ol", "ol-ovr")
    if table == "table2":
        return ("sl", "likelihood")
    return (*paper.METHODS, "likelihood")


def beyond_methods() -> tuple[str, ...]:
    """The methods of `beyond` that use shortlists. CC is left out: fed every answer it is the likelihood."""
    rivals = [name for name in paper.METHODS if name not in ("sl", "cc")]
    return (IMPROVED, "likelihood+aug", "sl+aug", *(f"{name}+aug" for name in rivals))


def config_of(cell: Cell, trial: int, recipe: Recipe, epochs: int | None = None, holdout: float = 0.0) -> RunConfig:
    """How a trial is trained: the same cell, trial and recipe always give the same configuration."""
    dataset = study_dataset(cell.dataset)
    config = RunConfig(
        method=cell.variant.method,
        protocol=cell.variant.protocol,
        size=cell.size,
        classes=cell.class_indices,
        model=dataset.model,
        epochs=epochs or dataset.epochs,
        momentum=0.9,
        augment=cell.variant.augment,
        strong=cell.variant.strong,
        mix=cell.variant.mix,
        ema=EMA if cell.variant.ema else 0.0,
        holdout=HOLDOUT if cell.variant.keep else holdout,
        keep="best" if cell.variant.keep else "last",
        seed=trial,
        **recipe.settings(),
    )
    return canonical(config, dataset.num_classes)


def planned(wanted: Wanted, recipes: Recipes) -> list[PlannedRun]:
    """The runs of all cells wanted, each once: cells may share a run, such as SL under both protocols."""
    found: dict[str, PlannedRun] = {}
    for cell in cells(wanted):
        for trial in range(wanted.trials):
            run = plan_run(cell, trial, recipes, wanted.epochs)
            found.setdefault(run.key, run)
    return list(found.values())


def plan_run(cell: Cell, trial: int, recipes: Recipes, epochs: int | None = None) -> PlannedRun:
    """One trial of a cell, with the recipe chosen for its variant."""
    cell = cell.run_as()
    recipe = recipes.of(study_dataset(cell.dataset), cell.variant, cell.num_classes)
    return PlannedRun(cell, trial, config_of(cell, trial, recipe, epochs), recipe.source)

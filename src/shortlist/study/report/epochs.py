"""SL's rows by which epoch is reported: the paper does not say, and its method overfits."""

from dataclasses import dataclass

from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import SIZES, Cell
from shortlist.study.plan.paper import Figure
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.results import CellResult, Results

PLACES: tuple[tuple[str, int], ...] = (
    *((paper.ALL_CLASSES, size) for size in SIZES["table1"]),
    *((c, paper.subset_size(c)) for ranges in paper.SUBSETS.values() for c in ranges if c not in paper.UNFIT),
)
"""Classes and sizes of the cells in which the paper has a figure of SL."""


def place_name(classes: str, size: int) -> str:
    """The name of a cell: all classes have several sizes, a set of classes has one."""
    return f"size {size}" if classes == paper.ALL_CLASSES else f"classes {classes}"


@dataclass(frozen=True)
class EpochRow:
    """A cell of SL."""

    place: str
    """With a star where the runs to the last epoch have settings chosen earlier."""
    reported: Figure | None
    last: CellResult
    chosen: CellResult

    @property
    def best(self) -> Figure | None:
        """Of the runs that train on all items."""
        return self.last.best_epoch


@dataclass(frozen=True)
class EpochTable:
    """SL on a dataset."""

    title: str
    rows: tuple[EpochRow, ...]


def epoch_table(dataset: str, results: Results) -> EpochTable | None:
    """The cells of SL that were run; None where none was, or the paper does not have the dataset."""
    about = study_dataset(dataset)
    rows = []
    for classes, size in PLACES:
        last, chosen = (
            results.of(Cell(dataset, classes, size, MethodVariant("sl", keep=keep))) for keep in (False, True)
        )
        if last.rows or chosen.rows:
            earlier = " *" if last.rows and not last.current else ""
            rows.append(EpochRow(place_name(classes, size) + earlier, chosen.paper, last, chosen))
    return EpochTable(about.title, tuple(rows)) if rows and about.in_paper else None

"""The report's tables as data: rows, and which figure is the best. Pages only lay them out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shortlist.errors import InputError
from shortlist.methods import PROTOCOLS, Protocol
from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import IMPROVED, TRIALS, Cell, sizes_of
from shortlist.study.plan.paper import Figure
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.results import CellResult, Paired, Results

USUAL = (*paper.METHODS, "likelihood", "ol", "ol-ovr")
"""The variants that the study owes; others are additions."""
OUTDATED = "run before its file was changed, and not since"
"""The note on figures of a method of one's own whose file has changed."""


@dataclass
class TableRow:
    """A method: the paper's figure beside ours under both protocols."""

    variant: MethodVariant
    title: str
    by: dict[Protocol, CellResult]
    best: set[str] = field(default_factory=set)
    """In which columns it is the best of its group: `reported`, `paper`, `fair`."""
    to_sl: Paired | None = None
    """Under the paper's protocol less SL, paired by trial."""
    to_likelihood: Paired | None = None
    """With every answer less the likelihood, paired by trial."""

    @property
    def reported(self) -> Figure | None:
        """What the paper says."""
        return self.by["paper"].paper

    @property
    def difference(self) -> float | None:
        """Ours under the paper's protocol less the paper's."""
        return self.by["paper"].difference

    @property
    def notes(self) -> str:
        """What a reader must know: trials, failures, epochs, Adam, shared runs."""
        found = {protocol: _notes(self.by[protocol]) for protocol in PROTOCOLS}
        both = [note for note in found["paper"] if note in found["fair"]]
        each = [f"{protocol}: {note}" for protocol in PROTOCOLS for note in found[protocol] if note not in both]
        shared = ["fair: is the likelihood"] if self.variant.name == "cc" else []
        return "; ".join([*both, *each, *shared])


def _notes(result: CellResult) -> list[str]:
    """What a reader must know about a cell."""
    if not result.rows:
        return []
    usual = study_dataset(result.cell.dataset).epochs
    told = {
        f"{len(result.rows)} of {TRIALS} trials": len(result.rows) < TRIALS,
        f"{len(result.rows)} trials": len(result.rows) > TRIALS,
        _count(result.failed, "trial", "diverged and {} not in the mean"): result.failed,
        f"{result.epochs} epochs instead of {usual}": result.epochs != usual,
        "not tuned": result.untuned,
        "Adam, as it fails under SGD": result.adam,
        f"trials on different hardware: {', '.join(result.hardware)}": len(result.hardware) > 1,
        _count(result.others, "run", "with other settings {} not shown"): result.others,
        "with settings chosen earlier; those chosen now were not run": not result.current,
        OUTDATED: result.outdated,
    }
    return [note for note, holds in told.items() if holds]


def _count(number: int, noun: str, rest: str) -> str:
    """
    >>> _count(1, "run", "with other settings {} not shown"), _count(2, "trial", "diverged and {} not in the mean")
    ('1 run with other settings is not shown', '2 trials diverged and are not in the mean')
    """
    return f"{number} {noun}{'' if number == 1 else 's'} {rest.format('is' if number == 1 else 'are')}"


@dataclass
class TableGroup:
    """Rows that compete: one size, or one set of classes."""

    title: str
    rows: list[TableRow]


@dataclass
class Table:
    """A table of the paper on one dataset."""

    name: str
    """As on the command line: `table1`."""
    dataset: str
    title: str
    note: str
    groups: list[TableGroup]
    compared: bool
    """Whether the paper's figures have a column: not on data of one's own."""

    @property
    def anchor(self) -> str:
        """For links."""
        return f"{self.name}-{self.dataset}"

    def results(self) -> list[CellResult]:
        """Every cell of it."""
        return [row.by[p] for group in self.groups for row in group.rows for p in PROTOCOLS]


TITLES = {
    "table1": "Table 1: all classes, by size of the shortlist",
    "table2": "Table 2: stochastic against ordinary labels",
    "table3": "Table 3: classes 1-8",
    "table4": "Table 4: classes 1-6 and 5-10",
    "table5": "Table 5: classes 1-4, 4-7 and 7-10",
}


def build_table(name: str, dataset: str, results: Results) -> Table:
    """A table on a dataset, with what the ledger holds."""
    extra, about = added(dataset, results), study_dataset(dataset)
    if name == "table2":
        groups = [_ordinary(dataset, results, extra)]
    else:
        methods = [*paper.METHODS, "likelihood", *(text for text in extra if not MethodVariant.parse(text).ordinary)]
        places = (
            [(about.all_classes, size, f"size {size}") for size in results.sizes(dataset)]
            if name == "table1"
            else [(c, paper.subset_size(c), subset_title(c)) for c in paper.SUBSETS[name] if about.has_ten_classes]
        )
        groups = [
            TableGroup(title, [r for m in methods if (r := _row(dataset, classes, size, m, results, m in extra))])
            for classes, size, title in places
        ]
    groups = [
        group for group in groups if any(row.reported or any(r.rows for r in row.by.values()) for row in group.rows)
    ]
    for group in groups:
        _mark_best(group)
        if name != "table2":
            _pair(group)
    return Table(name, dataset, f"{TITLES[name]}, {about.title}", about.note, groups, compared=not about.own)


def subset_title(classes: str) -> str:
    """The title of a set of classes, with the paper's name of it where that differs."""
    told = f"classes {classes}, size {paper.subset_size(classes)}"
    if classes in paper.PRINTED:
        low, high = paper.PRINTED[classes].split("-")
        told += f' (printed as "{low} ~ {high}", which fits as indices counted from 0)'
    return told + (" (the other reading of the column before)" if classes in paper.UNFIT else "")


def added(dataset: str, results: Results) -> list[str]:
    """Variants that were run and are not in the paper: with crops, the unbiased form, a method of one's own."""
    known = (*USUAL, IMPROVED)  # the last has a table of its own
    return [text for text in results.variants(dataset) if text not in known and problem(text) is None]


def problem(text: str) -> str | None:
    """Why a variant of the ledger cannot be shown: its method is not here."""
    try:
        MethodVariant.parse(text)
    except InputError as error:
        return str(error)
    return None


def _ordinary(dataset: str, results: Results, extra: Sequence[str]) -> TableGroup:
    rows = []
    ordinary = ["ol", "ol-ovr", *(text for text in extra if MethodVariant.parse(text).ordinary)]
    classes, sizes = study_dataset(dataset).all_classes, sizes_of("table2", dataset)
    for size, texts in [*((size, ("sl", "likelihood")) for size in sizes), (None, tuple(ordinary))]:
        for text in texts:
            row = _row(dataset, classes, size, text, results, text in extra)
            if row is not None:
                row.title += "" if size is None else f", size {size}"
                rows.append(row)
    return TableGroup("stochastic (SL, likelihood) and ordinary labels (OL)", rows)


def _row(dataset: str, classes: str, size: int | None, text: str, results: Results, optional: bool) -> TableRow | None:
    """A row; what the study does not owe, or is on data that the paper does not have, is shown only if it was run."""
    variants = {protocol: MethodVariant.parse(text, protocol) for protocol in PROTOCOLS}
    by = {protocol: results.of(Cell(dataset, classes, size, variant)) for protocol, variant in variants.items()}
    owed = study_dataset(dataset).in_paper and not optional
    if not owed and not any(result.rows for result in by.values()):
        return None
    return TableRow(variants["paper"], variants["paper"].title, by)


def _pair(group: TableGroup) -> None:
    """Compare every row with SL and the likelihood of its group."""
    rows = {row.variant.text: row for row in group.rows}
    for row in group.rows:
        if "sl" in rows and row.variant.text != "sl":
            row.to_sl = row.by["paper"].minus(rows["sl"].by["paper"])
        if "likelihood" in rows and row.by["fair"].cell.run_as() != rows["likelihood"].by["fair"].cell:
            row.to_likelihood = row.by["fair"].minus(rows["likelihood"].by["fair"])


def _mark_best(group: TableGroup) -> None:
    """Mark the best mean of each column, as rounded for the table; equal ones share the mark.

    Augmented variants do not compete, as their augmentation would win, nor do those whose epoch was chosen.
    """
    competing = [row for row in group.rows if not row.variant.augmented and not row.variant.keep]

    def mark(column: str, figures: list[Figure | None]) -> None:
        means = [None if figure is None else round(figure.mean, 2) for figure in figures]
        known = [mean for mean in means if mean is not None]
        for row, mean in zip(competing, means, strict=True):
            if known and mean == max(known):
                row.best.add(column)

    mark("reported", [row.reported for row in competing])
    for protocol in PROTOCOLS:
        mark(protocol, [row.by[protocol].last for row in competing])

"""The report's tables as data: rows, which figure is the best, which cells are missing. Pages only lay them out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shortlist.errors import InputError
from shortlist.methods import Protocol
from shortlist.study import paper
from shortlist.study.grid import IMPROVED, SIZES, TRIALS, Cell, beyond_methods
from shortlist.study.lines import Line
from shortlist.study.paper import Figure
from shortlist.study.sets import study_set
from shortlist.study.summary import CellResult, Results

PROTOCOLS: tuple[Protocol, ...] = ("paper", "fair")
USUAL = (*paper.METHODS, "likelihood", "ol", "ol-ovr")
"""The lines that the study has to run; the others are additions."""


@dataclass
class ViewRow:
    """A method: the paper's figure beside ours under both protocols."""

    line: Line
    title: str
    by: dict[Protocol, CellResult]
    best: set[str] = field(default_factory=set)
    """In which columns it is the best of its group: `reported`, `paper`, `fair`."""

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
        """What a reader must know about the row: trials, failures, epochs, Adam, shared runs."""
        found = {protocol: _notes(self.by[protocol]) for protocol in PROTOCOLS}
        both = [note for note in found["paper"] if note in found["fair"]]
        each = [f"{protocol}: {note}" for protocol in PROTOCOLS for note in found[protocol] if note not in both]
        shared = ["fair: is the likelihood"] if self.line.name == "cc" else []
        return "; ".join([*both, *each, *shared])


def _notes(result: CellResult) -> list[str]:
    """What must be known about a cell."""
    if not result.rows:
        return []
    usual = study_set(result.cell.dataset).epochs
    told = {
        f"{len(result.rows)} of {TRIALS} trials": len(result.rows) < TRIALS,
        f"{len(result.rows)} trials": len(result.rows) > TRIALS,
        f"{result.failed} trials diverged and are not in the mean": result.failed,
        f"{result.epochs} epochs instead of {usual}": result.epochs != usual,
        "Adam, as it fails under SGD": result.adam,
        f"{result.others} runs with other settings are not shown": result.others,
    }
    return [note for note, holds in told.items() if holds]


@dataclass
class ViewGroup:
    """Rows that compete: one size, or one set of classes."""

    title: str
    rows: list[ViewRow]


@dataclass
class View:
    """A table of the paper on one dataset."""

    table: str
    dataset: str
    title: str
    note: str
    groups: list[ViewGroup]

    @property
    def name(self) -> str:
        """For links."""
        return f"{self.table}-{self.dataset}"

    def results(self) -> list[CellResult]:
        """Every cell of it."""
        return [row.by[p] for group in self.groups for row in group.rows for p in PROTOCOLS]


TITLES = {
    "table1": "Table 1: all classes, by size of the shortlist",
    "table2": "Table 2: stochastic against ordinary labels",
    "table3": "Table 3: classes 1-8",
    "table4": "Table 4: classes 1-6 and 4-9",
    "table5": "Table 5: classes 1-4, 4-7 and 7-10",
}


def view(table: str, dataset: str, results: Results) -> View:
    """A table on a dataset, with what the ledger holds."""
    of = study_set(dataset)
    extra = added(dataset, results)
    if table == "table2":
        groups = [_ordinary(dataset, results, extra)]
    else:
        methods = [*paper.METHODS, "likelihood", *(text for text in extra if not Line.parse(text).ordinary)]
        places = (
            [(paper.ALL_CLASSES, size, f"size {size}") for size in SIZES["table1"]]
            if table == "table1"
            else [(c, paper.subset_size(c), f"classes {c}, size {paper.subset_size(c)}") for c in paper.SUBSETS[table]]
        )
        groups = [
            ViewGroup(title, [r for m in methods if (r := _row(dataset, classes, size, m, results, m in extra))])
            for classes, size, title in places
        ]
    groups = [
        group for group in groups if any(row.reported or any(r.rows for r in row.by.values()) for row in group.rows)
    ]
    for group in groups:
        _mark_best(group)
    return View(table, dataset, f"{TITLES[table]}, {of.title}", of.note, groups)


def added(dataset: str, results: Results) -> list[str]:
    """Lines that were run and the paper has not: with crops, the unbiased form, a method of one's own."""
    known = (*USUAL, IMPROVED)  # the last has a table of its own
    return [text for text in results.lines(dataset) if text not in known and problem(text) is None]


def problem(text: str) -> str | None:
    """Why a line of the ledger cannot be shown: its method is not here."""
    try:
        Line.parse(text)
    except InputError as error:
        return str(error)
    return None


def _ordinary(dataset: str, results: Results, extra: Sequence[str]) -> ViewGroup:
    rows = []
    ordinary = ["ol", "ol-ovr", *(text for text in extra if Line.parse(text).ordinary)]
    for size, texts in [*((size, ("sl", "likelihood")) for size in SIZES["table2"]), (None, tuple(ordinary))]:
        for text in texts:
            row = _row(dataset, paper.ALL_CLASSES, size, text, results, text in extra)
            if row is not None:
                row.title += "" if size is None else f", size {size}"
                rows.append(row)
    return ViewGroup("stochastic (SL, likelihood) and ordinary labels (OL)", rows)


def _row(dataset: str, classes: str, size: int | None, text: str, results: Results, optional: bool) -> ViewRow | None:
    """A row; one that is not in the paper only if it was run."""
    lines = {protocol: Line.parse(text, protocol) for protocol in PROTOCOLS}
    by = {protocol: results.of(Cell(dataset, classes, size, line)) for protocol, line in lines.items()}
    if optional and not any(result.rows for result in by.values()):
        return None
    return ViewRow(lines["paper"], lines["paper"].title, by)


def _mark_best(group: ViewGroup) -> None:
    """Bold is for the best mean of a column, as rounded for the table; equals share it."""

    def mark(column: str, figures: list[Figure | None]) -> None:
        means = [None if figure is None else round(figure.mean, 2) for figure in figures]
        known = [mean for mean in means if mean is not None]
        for row, mean in zip(group.rows, means, strict=True):
            if known and mean == max(known):
                row.best.add(column)

    mark("reported", [row.reported for row in group.rows])
    for protocol in PROTOCOLS:
        mark(protocol, [row.by[protocol].last for row in group.rows])


@dataclass(frozen=True)
class Missing:
    """Cells that have no run: one line of a method in one table."""

    dataset: str
    table: str
    protocol: str
    title: str
    places: tuple[str, ...]
    why: str


def missing(views: Sequence[View], reasons: Sequence[dict[str, Any]]) -> list[Missing]:
    """Every cell of the views that has no run, named, with the first reason that fits; additions owe nothing."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for shown in views:
        for group in shown.groups:
            for row in group.rows:
                for protocol in PROTOCOLS if row.line.text in USUAL else ():
                    result = row.by[protocol]
                    if result.rows or result.cell.canonical() != result.cell:
                        continue  # a shared run is named once, as what it is run as
                    title = result.cell.line.title
                    place = group.title if shown.table != "table2" else row.title
                    found.setdefault((shown.dataset, shown.table, protocol, title), []).append(place)
    return [Missing(*place, tuple(cells), _why(place, reasons)) for place, cells in found.items()]


def _why(place: tuple[str, str, str, str], reasons: Sequence[dict[str, Any]]) -> str:
    dataset, table, protocol, title = place
    stated = {"dataset": dataset, "table": table, "protocol": protocol, "method": title}
    for reason in reasons:
        if all(stated[name] == reason[name] for name in stated if name in reason):
            return str(reason["why"])
    return "not run yet"


@dataclass(frozen=True)
class Glance:
    """Table 1 on one dataset in a few rows: SL, the best rival under each protocol, likelihood."""

    title: str
    sizes: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Figure | None, ...]], ...]
    remarks: tuple[str, ...] = ()
    """What the table says, in words."""


def glance(dataset: str, results: Results) -> Glance | None:
    """None where Table 1 was not run; the best rival is the one with the best mean of its cell."""
    title, sizes = study_set(dataset).title, SIZES["table1"]
    rivals = [name for name in paper.METHODS if name != "sl"]

    used: list[CellResult] = []

    def ours(text: str, size: int | None, protocol: Protocol = "fair") -> Figure | None:
        found = results.of(Cell(dataset, paper.ALL_CLASSES, size, Line.parse(text, protocol)))
        used.append(found)
        return found.last

    def best(figures: Sequence[Figure | None]) -> Figure | None:
        return max((figure for figure in figures if figure is not None), default=None)

    reported = title if study_set(dataset).in_paper else None
    rows: list[tuple[str, list[Figure | None]]] = [
        ("SL, the paper reports", [paper.figure(reported, paper.ALL_CLASSES, "sl", size) for size in sizes]),
        ("SL, ours", [ours("sl", size) for size in sizes]),
        ("best rival, the paper reports", [
            best([paper.figure(reported, paper.ALL_CLASSES, name, size) for name in rivals]) for size in sizes
        ]),
        ("best rival, ours, None answers only", [best([ours(n, size, "paper") for n in rivals]) for size in sizes]),
        ("likelihood (CC with every answer), ours", [ours("likelihood", size) for size in sizes]),
        ("best other rival, ours, every answer", [
            best([ours(name, size) for name in rivals if name != "cc"]) for size in sizes
        ]),
        ("likelihood with flip + crop, ours", [ours("likelihood+aug", size) for size in sizes]),
        ("OL, all labels (better of two losses), ours", [best([ours("ol", None), ours("ol-ovr", None)])] * len(sizes)),
    ]  # fmt: skip
    if not any(figure for name, figures in rows if name.endswith("ours") and "OL" not in name for figure in figures):
        return None
    shown = tuple((name, tuple(figures)) for name, figures in rows if any(figures))
    return Glance(title, sizes, shown, (_lengths(used), *_divergences(used)))


def _lengths(found: Iterable[CellResult]) -> str:
    """How long the runs of these cells were, and how many there are of each."""
    shown = [result for result in found if result.rows]
    epochs = sorted({result.epochs for result in shown if result.epochs})
    return f"Ours: {_listed(epochs)} epochs, {_listed(sorted({len(result.rows) for result in shown}))} trials a cell."


def _divergences(found: Iterable[CellResult]) -> list[str]:
    """Which means are of fewer trials than were run: a remark, or none."""
    broken = {result.cell.canonical(): result for result in found if result.failed}
    told = [
        f"{cell.line.title}{f' ({cell.line.protocol})' if cell.line.kind.baseline else ''}"
        f"{'' if cell.size is None else f', l = {cell.size}'}: {result.failed} of {len(result.rows)}"
        for cell, result in broken.items()
    ]
    return [f"Trials that diverged and are not in the mean: {'; '.join(told)}."] if told else []


def beyond(dataset: str, results: Results) -> Glance | None:
    """Every method with augmentation and every answer, against ordinary labels for all; None where none was run."""
    methods = ["ol+aug", *beyond_methods()]
    of = {
        (text, size): results.of(Cell(dataset, paper.ALL_CLASSES, None if text == "ol+aug" else size, Line.parse(text)))
        for text in methods
        for size in SIZES["table1"]
    }
    sizes = tuple(s for s in SIZES["table1"] if any(of[(text, s)].rows for text in methods[1:]))
    texts = [text for text in methods if any(of[(text, size)].rows for size in sizes)]
    if not sizes:
        return None
    rows = tuple((Line.parse(text).title, tuple(of[(text, size)].last for size in sizes)) for text in texts)
    remarks = [_beyond_remark(size, {t: f for t in texts if (f := of[(t, size)].last)}) for size in sizes]
    used = [result for (_, size), result in of.items() if size in sizes]
    remarks += [_lengths(used), *_divergences(used)]
    return Glance(study_set(dataset).title, sizes, rows, tuple(remarks))


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _beyond_remark(size: int, figures: dict[str, Figure]) -> str:
    """Which is best at a size, and by how much."""
    ranked = sorted((t for t in figures if t != "ol+aug"), key=lambda text: -figures[text].mean)
    if not ranked:
        return f"Size {size}: not run."
    best = ranked[0]
    told = f"Size {size}: {Line.parse(best).title} is best"
    if len(ranked) > 1:
        lead = figures[best].mean - figures[ranked[1]].mean
        told += f", {lead:.2f} above {Line.parse(ranked[1]).title}"
    if "ol+aug" in figures:
        told += f"; {figures[best].mean - figures['ol+aug'].mean:+.2f} to ordinary labels for all"
    if IMPROVED in figures and "likelihood+aug" in figures:
        gain = figures[IMPROVED].mean - figures["likelihood+aug"].mean
        told += f"; averaged weights change the likelihood by {gain:+.2f}"
    return told + "."


@dataclass(frozen=True)
class Check:
    """A claim the study was asked to test, and how it came out."""

    claim: str
    held: int
    cells: int
    """Cells that could be checked."""
    below: tuple[str, ...]
    """Where it does not hold, with ours less what was to be reached."""
    missing: tuple[str, ...]
    """Cells that were not run."""
    diverged: tuple[str, ...] = ()
    """Cells that are counted by the trials that did not diverge."""

    @property
    def answer(self) -> str:
        """Plainly."""
        if self.below or self.missing:
            return "no" if self.below else "not known yet"
        return "only for trials that did not diverge" if self.diverged else "yes"


def checks(results: Results) -> list[Check]:
    """SL against the paper's SL row within a margin; likelihood at or above it."""
    table1 = [(paper.ALL_CLASSES, size) for size in SIZES["table1"]]
    every = [*table1, *((c, paper.subset_size(c)) for of in paper.SUBSETS.values() for c in of)]
    found = []
    for dataset, margin in (("mnist", 0.3), ("fashion", 1.0)):
        claim = f"our SL row reaches the paper's SL row minus {margin} at every size"
        found.append(_check(results, dataset, "sl", margin, claim, table1))
        claim = "likelihood is at or above the paper's SL in every cell"
        found.append(_check(results, dataset, "likelihood", 0.0, claim, every))
    for text, how in (("likelihood", "without augmentation"), ("likelihood+aug", "with flip + crop")):
        claim = f"likelihood is at or above the paper's SL in every cell, {how}"
        found.append(_check(results, "cifar10", text, 0.0, claim, every))
    return [check for check in found if check.cells]


def _check(
    results: Results, dataset: str, text: str, margin: float, claim: str, places: Sequence[tuple[str, int]]
) -> Check:
    title = study_set(dataset).title
    held, below, missing, diverged = 0, [], [], []
    for classes, size in places:
        name = f"size {size}" if classes == paper.ALL_CLASSES else f"classes {classes}"
        ours = results.of(Cell(dataset, classes, size, Line.parse(text)))
        theirs = paper.figure(title, classes, "sl", size)
        if not ours.rows:
            missing.append(name)
        elif ours.last is None:  # it was run, and fell short as far as one can
            below.append(f"{name}: every trial diverged")
        elif theirs is not None:
            gap = round(ours.last.mean - theirs.mean + margin, 2)
            held += gap >= 0
            below += [f"{name}: {gap:+.2f}"] if gap < 0 else []
            diverged += [f"{name}: {ours.failed} of {len(ours.rows)} trials diverged"] if ours.failed else []
    return Check(f"{title}: {claim}", held, held + len(below), tuple(below), tuple(missing), tuple(diverged))

"""From rows to figures: which runs are shown for a cell, their mean and spread."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np

from shortlist.study.plan.datasets import paper_title, study_dataset
from shortlist.study.plan.grid import Cell, plan_run, sizes_of
from shortlist.study.plan.paper import Figure, figure
from shortlist.study.plan.recipes import NOT_TUNED, Recipes
from shortlist.study.plan.run_keys import own_code, settings_key
from shortlist.study.run.ledger import RUN, Row


@dataclass(frozen=True)
class CellResult:
    """The runs that are shown for a cell: the trials of one setting."""

    cell: Cell
    """As the table names it."""
    rows: tuple[Row, ...]
    """By trial; empty where the cell was not run."""
    others: int = 0
    """How many runs of the cell have other settings and are not shown."""
    current: bool = True
    """Whether these are the settings chosen now."""
    outdated: bool = False
    """Whether the file of a method of one's own has changed since they were run."""

    @property
    def finished(self) -> tuple[Row, ...]:
        """The runs that did not diverge."""
        return tuple(row for row in self.rows if row["failed"] is None)

    @property
    def failed(self) -> int:
        """How many diverged."""
        return len(self.rows) - len(self.finished)

    @property
    def last(self) -> Figure | None:
        """Test accuracy in percent of the epoch that runs end with: the last, or the one chosen on held-out answers."""
        return over_trials([value for _, value in self._ended()])

    def _ended(self) -> list[tuple[int, float]]:
        """(trial, test accuracy)."""
        return [(row["trial"], row["kept"]["accuracy"] if "kept" in row else row["last"]) for row in self.finished]

    @property
    def last_epoch(self) -> Figure | None:
        """Test accuracy of the last epoch, in percent, whichever epoch the runs end with."""
        return over_trials([row["last"] for row in self.finished])

    @property
    def best_epoch(self) -> Figure | None:
        """The mean of each trial's best test accuracy: what looking at the test items would give, never a result.

        Only of runs that were scored after every epoch: the best of some epochs is not the best.
        """
        curves = [row["accuracy"] for row in self.finished]
        return over_trials([max(curve) for curve in curves if curve and None not in curve])

    def minus(self, other: "CellResult") -> "Paired | None":
        """What it is above another cell, trial by trial: both have the same shortlists.

        None where no trial is in both, or where one was trained for longer: that would not compare the methods.
        """
        return pooled([(self, other)]) if self.epochs == other.epochs else None

    @property
    def last_ten(self) -> Figure | None:
        """The mean of the last ten epochs, in percent."""
        return over_trials([row["mean_of_last_ten"] for row in self.finished])

    @property
    def paper(self) -> Figure | None:
        """What the paper reports; None for variants with additions, which it does not have."""
        cell = self.cell
        if cell.variant.augmented or cell.variant.ema:
            return None  # but a chosen epoch is compared: the paper does not say which epoch it reports
        return figure(paper_title(cell.dataset), cell.classes, cell.variant.name, cell.size)

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.last is None or self.paper is None else self.last.mean - self.paper.mean

    @property
    def epochs(self) -> int | None:
        """Of its runs."""
        return int(self.rows[0]["config"]["epochs"]) if self.rows else None

    @property
    def hardware(self) -> tuple[str, ...]:
        """What its runs were computed on."""
        return tuple(sorted({row["hardware"] for row in self.rows}))

    @property
    def adam(self) -> bool:
        """Whether SGD failed and Adam was used."""
        return bool(self.rows) and self.rows[0]["config"]["optimiser"] == "adam"

    @property
    def untuned(self) -> bool:
        """Whether its settings are a default, not a choice."""
        return bool(self.rows) and self.rows[0]["recipe"] == NOT_TUNED

    def command(self, table: str, folder: Path) -> str:
        """The command that runs this cell again, with the settings of one folder and into another."""
        cell, about = self.cell, study_dataset(self.cell.dataset)
        data = quote(about.own or about.name)
        words = ["shortlist reproduce", table, f"--datasets {data}", f"--methods {cell.variant.text}"]
        words += [f"--sizes {cell.size}"] if cell.size is not None and cell.class_indices is None else []
        words += [f"--classes {cell.classes}"] if cell.class_indices is not None else []
        words += [f"--protocol {cell.variant.protocol}", f"--trials {max(len(self.rows), 1)}"]
        words += [f"--epochs {self.epochs}"] if self.epochs not in (None, about.epochs) else []
        again = "rerun" if folder.name != "rerun" else "rerun-again"  # in its own folder nothing would be run
        return " ".join([*words, f"--recipes {quote(str(folder))} --results {again}"])


class Paired(NamedTuple):
    """A difference over the trials that two cells share, in points."""

    mean: float
    error: float | None
    """The standard error; None for a single trial."""

    def __str__(self) -> str:
        return f"{self.mean:+.2f} " + ("(1 trial)" if self.error is None else f"± {self.error:.2f}")

    @property
    def clear(self) -> bool:
        """Whether it is more than two standard errors from 0."""
        return self.error is not None and abs(self.mean) > 2 * self.error


def pooled(pairs: Iterable[tuple[CellResult, CellResult]]) -> Paired | None:
    """The mean over pairs of cells of the first less the second, from the trials that all cells have.

    Cells of one trial share their shortlists' seed, so a trial is one observation, however many cells there are.
    """
    found = [(dict(one._ended()), dict(other._ended())) for one, other in pairs]
    trials = set.intersection(*({*one} & {*other} for one, other in found)) if found else set()
    if not trials:
        return None
    values = [100 * np.mean([one[trial] - other[trial] for one, other in found]) for trial in sorted(trials)]
    error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
    return Paired(float(np.mean(values)), error)


def over_trials(values: Sequence[float | None]) -> Figure | None:
    """Mean and standard deviation (n - 1) in percent; one trial has none."""
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return None
    return Figure(float(100 * known.mean()), float(100 * known.std(ddof=1)) if len(known) > 1 else None)


class Results:
    """The rows of a ledger, by cell."""

    def __init__(self, rows: Iterable[Row], recipes: Recipes) -> None:
        self._recipes = recipes
        self._by_cell: dict[Cell, list[Row]] = defaultdict(list)
        for row in rows:
            if row.get("kind") == RUN:
                self._by_cell[Cell.from_dict(row)].append(row)
        lengths: dict[str, Counter[int]] = defaultdict(Counter)
        for cell, found in self._by_cell.items():
            lengths[cell.dataset].update({row["config"]["epochs"] for row in found})
        self._usual = {name: max(of, key=lambda epochs: (of[epochs], epochs)) for name, of in lengths.items()}
        """By dataset the number of epochs that most cells have, so that the figures of a table can be compared."""

    def datasets(self) -> list[str]:
        """Those with runs."""
        return list(dict.fromkeys(cell.dataset for cell in self._by_cell))

    def variants(self, dataset: str) -> list[str]:
        """The variants run on a dataset, as on the command line."""
        return list(dict.fromkeys(cell.variant.text for cell in self._by_cell if cell.dataset == dataset))

    def cells(self) -> list[Cell]:
        """Those with runs."""
        return list(self._by_cell)

    def sizes(self, dataset: str) -> list[int]:
        """Sizes of shortlists of all classes, the largest first: the table's, and others that were run."""
        cells = [cell for cell in self._by_cell if cell.dataset == dataset and cell.class_indices is None]
        run = {cell.size for cell in cells if cell.size is not None}
        return sorted({*sizes_of("table1", dataset), *run}, reverse=True)

    def of(self, cell: Cell) -> CellResult:
        """What is shown for a cell.

        Where it was run with several settings, those chosen now go first, then several trials before a single one, then
        the dataset's usual number of epochs, the most epochs, the most trials, the latest. Accuracy plays no part.
        """
        rows = self._by_cell.get(cell.run_as(), [])
        if not rows:
            return CellResult(cell, ())
        by_settings: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            by_settings[settings_key(row)].append(row)
        chosen = max(by_settings.values(), key=lambda group: self._rank(cell, group))
        ordered = tuple(sorted(chosen, key=lambda row: row["trial"]))
        # where nothing is chosen, settings are defaults or from elsewhere (--recipes): none is chosen "now"
        current = not self._recipes or self._rank(cell, chosen)[0]
        outdated = ordered[0].get("code") != own_code(cell.variant.method).get("code")
        return CellResult(cell, ordered, len(rows) - len(chosen), current or outdated, outdated)

    def _rank(self, cell: Cell, rows: Sequence[Row]) -> tuple[bool, bool, bool, int, int, str]:
        epochs = rows[0]["config"]["epochs"]
        usual = epochs == self._usual[cell.dataset]
        current = plan_run(cell, rows[0]["trial"], self._recipes, epochs).key == rows[0]["key"]
        return current, len(rows) > 1, usual, epochs, len(rows), max(row["date"] for row in rows)

"""What the study was meant to show, and whether it did: our rows against the paper's."""

from collections.abc import Sequence
from dataclasses import dataclass

from shortlist.study.plan import paper
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import Cell
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.epochs import PLACES, place_name
from shortlist.study.report.results import Results


@dataclass(frozen=True)
class Check:
    """A claim, and whether the study bears it out."""

    claim: str
    held: int
    cells: int
    """Cells that could be checked."""
    below: tuple[str, ...]
    """Where it does not hold, with ours less the mark that was to be reached."""
    missing: tuple[str, ...]
    """Cells that were not run."""
    diverged: tuple[str, ...] = ()
    """Cells where some trials diverged, counted by the others."""
    note: str = ""
    """A figure over all cells."""

    @property
    def told(self) -> tuple[str, ...]:
        """Where it does not hold, what diverged, and the figure over all cells."""
        return (*self.below, *self.diverged, *([self.note] if self.note else []))

    @property
    def answer(self) -> str:
        """Plainly."""
        if self.below or self.missing:
            return "no" if self.below else "not known yet"
        return "only for trials that did not diverge" if self.diverged else "yes"


MARGINS = {"mnist": 0.5, "fashion": 1.0, "cifar10": 1.5}
"""How far below the paper's SL a row with a chosen epoch may be."""


def checks(results: Results) -> list[Check]:
    """SL against the paper's SL row within a margin; likelihood at or above it."""
    table1 = [place for place in PLACES if place[0] == paper.ALL_CLASSES]
    subsets = [place for place in PLACES if place[0] != paper.ALL_CLASSES]
    found = []
    for dataset, margin in (("mnist", 0.3), ("fashion", 1.0)):
        claim = f"our SL row reaches the paper's SL row minus {margin} at every size"
        found.append(_check(results, dataset, "sl", margin, claim, table1))
        claim = f"our SL rows of Tables 3 to 5 reach the paper's minus {margin}"
        found.append(_check(results, dataset, "sl", margin, claim, subsets))
        claim = "likelihood is at or above the paper's SL in every cell"
        found.append(_check(results, dataset, "likelihood", 0.0, claim, PLACES))
    # the margin is Fashion's
    claim = "our SL row reaches the paper's SL row minus 1.0 at every size"
    found.append(_check(results, "cifar10", "sl", 1.0, claim, table1))
    for text, how in (("likelihood", "without augmentation"), ("likelihood+aug", "with flip + crop")):
        claim = f"likelihood is at or above the paper's SL in every cell, {how}"
        found.append(_check(results, "cifar10", text, 0.0, claim, PLACES))
    for dataset, margin in MARGINS.items():
        claim = f"SL with the epoch chosen on held-out answers reaches the paper's SL minus {margin} in every cell"
        found.append(_check(results, dataset, "sl+keep", margin, claim, PLACES))
    return [check for check in found if check.cells]


def _check(
    results: Results, dataset: str, text: str, margin: float, claim: str, places: Sequence[tuple[str, int]]
) -> Check:
    title = study_dataset(dataset).title
    held, below, missing, diverged = 0, [], [], []
    for classes, size in places:
        name = place_name(classes, size)
        ours = results.of(Cell(dataset, classes, size, MethodVariant.parse(text)))
        theirs = paper.figure(title, classes, "sl", size)
        if not ours.rows:
            missing.append(name)
        elif ours.last is None:  # it was run, and every trial failed
            below.append(f"{name}: every trial diverged")
        elif theirs is not None:
            gap = round(ours.last.mean - theirs.mean + margin, 2)
            held += gap >= 0
            earlier = "" if ours.current else " with settings chosen earlier"
            below += [f"{name}: {gap:+.2f}{earlier}"] if gap < 0 else []
            diverged += [f"{name}: {ours.failed} of {len(ours.rows)} trials diverged"] if ours.failed else []
    return Check(f"{title}: {claim}", held, held + len(below), tuple(below), tuple(missing), tuple(diverged))

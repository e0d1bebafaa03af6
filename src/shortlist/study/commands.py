"""What `shortlist reproduce` does: run tables, tune variants, search for SL's recipe."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from shortlist.errors import InputError
from shortlist.internal.files import atomic_write
from shortlist.methods import Protocol
from shortlist.study.choose import points, sl_search, tuning
from shortlist.study.choose.points import Point, Scored
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import PlannedRun, Wanted, cells, planned
from shortlist.study.plan.own_data import dataset_names
from shortlist.study.plan.paper import METHODS
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.results import CellResult, Results
from shortlist.study.run.batches import Pace, cut, groups
from shortlist.study.run.driver import Budget, DriveOutcome, Say, drive, missing, open_engine
from shortlist.study.run.engines import Local, StudyEngine
from shortlist.study.run.ledger import RUN, SEARCH, TUNING, Ledger, Ledgers

Group = TypeVar("Group")
TUNED = (*METHODS, "likelihood", "ol", "ol-ovr")
"""What `tune` tunes unless told otherwise: every variant of the tables."""


@dataclass
class Study:
    """A folder of results, and how runs are added to it."""

    results: Path
    recipes_from: Path | None = None
    """The folder whose chosen settings are used; the results themselves unless stated."""
    device: str = "auto"
    score_every: int = 1
    budget: Budget = field(default_factory=Budget)
    say: Say = lambda line: None
    _pace: Pace | None = field(default=None, init=False)
    """Measured in one call and used in the next."""

    def __post_init__(self) -> None:
        self.ledgers = Ledgers(self.results, self.say)
        source = self.recipes_from or self.results
        if self.recipes_from is not None and not (source / "ledger").is_dir():
            raise InputError(f"{source} holds no ledger, from which chosen settings could be read")
        self.choices = Ledgers(source, self.say).of(TUNING)

    @property
    def recipes(self) -> Recipes:
        """The settings chosen so far."""
        self.choices.refresh()
        return Recipes(self.choices.rows())

    def open_engine(
        self, name: str, workers: int | None = None, address: str | None = None
    ) -> AbstractContextManager[StudyEngine]:
        """What trains on the study's device: `fleet`, `processes` or `ray`; closed at the end."""
        return open_engine(name, self.device, workers, address)

    def run_tables(self, wanted: Wanted, engine: StudyEngine) -> DriveOutcome:
        """Train the wanted runs that the ledger lacks."""
        return self._drive(planned(wanted, self.recipes), self._ledger_of, engine, RUN)

    def missing(self, wanted: Wanted) -> list[PlannedRun]:
        """What `run_tables` would train."""
        return missing(planned(wanted, self.recipes), self._ledger_of)

    def figures(self, wanted: Wanted) -> list[tuple[CellResult, CellResult | None]]:
        """For each cell asked for our result, and the result in the folder that the settings came from.

        The second is None where the settings are the results' own: there is nothing to compare with.
        """
        ours, stored = self._results(self.ledgers, wanted), None
        if self.recipes_from is not None and self.recipes_from.resolve() != self.results.resolve():
            stored = self._results(Ledgers(self.recipes_from, self.say), wanted)
        return [(ours.of(cell), stored.of(cell) if stored else None) for cell in cells(wanted)]

    def guess(self, runs: Sequence[PlannedRun]) -> str:
        """About how long runs would take, in words."""
        waiting, usual = groups(runs), 60 * self.budget.batch_minutes
        gpu = Pace(cuda=True)
        on_gpu = f"about {gpu.all_seconds(waiting, usual) / 60:.1f} minutes on one H200"
        if Local(self.device).cuda:
            sizes = [len(batch.runs) for group in waiting for batch in cut(group, gpu, usual)]
            return f"{len(sizes)} batches of {min(sizes)} to {max(sizes)} runs, {on_gpu} (a guess)"
        here = Pace(cuda=False).all_seconds(waiting, usual) / 60
        return f"about {here:.1f} minutes on this CPU, one after another ({on_gpu}; both guesses)"

    def tune(
        self,
        datasets: Sequence[str],
        methods: Sequence[str] | None,
        protocols: Sequence[Protocol],
        engine: StudyEngine,
        epochs: int | None = None,
    ) -> DriveOutcome:
        """Try the points of every variant, those of a dataset together, and store a choice for each variant."""
        outcome = DriveOutcome()
        for dataset in dataset_names(datasets):
            by_variant = self._points(dataset, methods, protocols, epochs)
            found = self._try_points(by_variant, TUNING, engine, outcome)
            weak = [variant for variant, entries in found.items() if tuning.fails(entries)]
            for variant in weak:
                start = self.recipes.start(study_dataset(dataset), variant)
                by_variant[variant].append(tuning.adam_point(dataset, variant, start, epochs or tuning.EPOCHS))
            # a variant without all its points, Adam among them, gets no choice yet
            strong = {variant: entries for variant, entries in found.items() if variant not in weak}
            again = self._try_points({variant: by_variant[variant] for variant in weak}, TUNING, engine, outcome)
            for entries in (strong | again).values():
                chosen = points.choose(entries)
                if chosen is not None:
                    self._keep(chosen, entries, "tune", tuning.source_of(chosen, entries))
        return outcome

    def untried(
        self, datasets: Sequence[str], methods: Sequence[str] | None, protocols: Sequence[Protocol], epochs: int | None
    ) -> list[PlannedRun]:
        """What `tune` would train, apart from the extra point of variants that fail."""
        by_variant = [self._points(dataset, methods, protocols, epochs) for dataset in dataset_names(datasets)]
        return self._untried([point for part in by_variant for found in part.values() for point in found], TUNING)

    def search(self, datasets: Sequence[str], engine: StudyEngine, epochs: int | None = None) -> DriveOutcome:
        """Both rounds of the search for SL's recipe; stores its table and a choice for each number of classes."""
        outcome = DriveOutcome()
        for dataset in sl_search.checked(datasets):
            length = epochs or study_dataset(dataset).epochs
            grids = {count: sl_search.grid(dataset, count, length) for count in sl_search.PLACES}
            screened = self._try_points(grids, SEARCH, engine, outcome)
            best = {count: sl_search.full(entries, length) for count, entries in screened.items()}
            full = self._try_points(best, SEARCH, engine, outcome)
            chosen = {count: points.choose(entries) for count, entries in full.items()}
            for count, entry in chosen.items():
                if entry is not None:
                    some = None if count == study_dataset(dataset).num_classes else count
                    self._keep(entry, full[count], "search", sl_search.source_of(entry, full[count]), some)
            rounds = [(count, entry) for part in (screened, full) for count, found in part.items() for entry in found]
            if rounds:
                table = [(count, entry, entry is chosen.get(count)) for count, entry in rounds]
                atomic_write(self.results / f"search-{dataset}.md", sl_search.table(table, dataset))
        return outcome

    def unsearched(self, datasets: Sequence[str], epochs: int | None) -> list[PlannedRun]:
        """What the first round of `search` would train; the second depends on its outcome."""
        lengths = {name: epochs or study_dataset(name).epochs for name in sl_search.checked(datasets)}
        grids = [sl_search.grid(name, count, length) for name, length in lengths.items() for count in sl_search.PLACES]
        return self._untried([point for grid in grids for point in grid], SEARCH)

    def _ledger_of(self, run: PlannedRun) -> Ledger:
        """Where a run of a table is kept."""
        return self.ledgers.of(run.cell.dataset)

    def _results(self, ledgers: Ledgers, wanted: Wanted) -> Results:
        return Results([row for name in wanted.datasets for row in ledgers.of(name).rows()], self.recipes)

    def _points(
        self, dataset: str, methods: Sequence[str] | None, protocols: Sequence[Protocol], epochs: int | None
    ) -> dict[MethodVariant, list[Point]]:
        recipes, about, length = self.recipes, study_dataset(dataset), epochs or tuning.EPOCHS
        variants = tuning.variants_of(methods or TUNED, protocols)
        return {variant: tuning.points(dataset, variant, recipes.start(about, variant), length) for variant in variants}

    def _untried(self, tried: Sequence[Point], name: str) -> list[PlannedRun]:
        ledger = self.ledgers.of(name)
        return missing([run for point in tried for run in point.runs()], lambda run: ledger)

    def _try_points(
        self, by_group: Mapping[Group, Sequence[Point]], name: str, engine: StudyEngine, outcome: DriveOutcome
    ) -> dict[Group, list[Scored]]:
        """Train the points of some groups together; returns the groups whose runs are all stored.

        A group that the time was too short for is left to the next call.
        """
        ledger = self.ledgers.of(name)
        runs = [run for tried in by_group.values() for point in tried for run in point.runs()]
        outcome.add(self._drive(runs, lambda run: ledger, engine, points.TRIED))
        rows = {row["key"]: row for row in ledger.rows()}
        found = {group: points.scored(tried, rows) for group, tried in by_group.items()}
        return {group: entries for group, entries in found.items() if len(entries) == len(by_group[group])}

    def _keep(
        self, chosen: Scored, among: Sequence[Scored], by: str, source: str, num_classes: int | None = None
    ) -> None:
        if points.store(chosen, among, self.ledgers.of(TUNING), by, source, num_classes):
            cell = chosen.point.cells[0]
            some = "" if num_classes is None else f", {num_classes} classes"
            self.say(f"{cell.dataset}{some}, {cell.variant.text} ({cell.variant.protocol}): {chosen.settings}")

    def _drive(
        self, runs: Sequence[PlannedRun], ledger: Callable[[PlannedRun], Ledger], engine: StudyEngine, kind: str
    ) -> DriveOutcome:
        self._pace = self._pace or Pace(engine.cuda)
        return drive(
            runs,
            ledger,
            engine,
            self.budget,
            device=self.device,
            kind=kind,
            score_every=self.score_every,
            pace=self._pace,
            say=self.say,
        )

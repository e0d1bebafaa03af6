"""What `shortlist reproduce` does: the runs of a table, the tuning of variants, the search for SL's recipe."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from shortlist.errors import InputError
from shortlist.internal.files import atomic_write
from shortlist.methods import Protocol
from shortlist.study.choose import sl_search, tuning
from shortlist.study.choose.sl_search import Point, Scored
from shortlist.study.plan.datasets import study_dataset
from shortlist.study.plan.grid import PlannedRun, Wanted, cells, planned
from shortlist.study.plan.paper import METHODS
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.results import CellResult, Results
from shortlist.study.run.batches import Pace, cut, groups
from shortlist.study.run.driver import Budget, DriveOutcome, Say, drive, missing, open_engine
from shortlist.study.run.engines import Local, StudyEngine
from shortlist.study.run.ledger import RUN, SEARCH, TUNING, Ledger, Ledgers, Row

TUNED = (*METHODS, "likelihood", "ol", "ol-ovr")
"""What is tuned where nothing is stated: every variant of the tables."""


@dataclass
class Study:
    """Where results are, what trains, and until when."""

    results: Path
    recipes_from: Path | None = None
    """Where the chosen settings are read; the results themselves unless stated."""
    device: str = "auto"
    score_every: int = 1
    budget: Budget = field(default_factory=Budget)
    say: Say = lambda line: None
    _pace: Pace | None = field(default=None, init=False)
    """Measured by the first drive, and kept for the next."""

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
        """What trains on the study's device: `fleet`, `processes` or `ray`, let go at the end."""
        return open_engine(name, self.device, workers, address)

    def run_tables(self, wanted: Wanted, engine: StudyEngine) -> DriveOutcome:
        """Train what the ledger does not hold yet of what is wanted."""
        return self._drive(planned(wanted, self.recipes), self._ledger_of, engine, RUN)

    def missing(self, wanted: Wanted) -> list[PlannedRun]:
        """What `run_tables` would train."""
        return missing(planned(wanted, self.recipes), self._ledger_of)

    def figures(self, wanted: Wanted) -> list[tuple[CellResult, CellResult | None]]:
        """What the ledger holds of each cell asked for, and what the folder holds that the settings came from.

        The second is None where the settings are the results' own: there is nothing to hold a run against.
        """
        ours, stored = self._results(self.ledgers, wanted), None
        if self.recipes_from is not None and self.recipes_from.resolve() != self.results.resolve():
            stored = self._results(Ledgers(self.recipes_from, self.say), wanted)
        return [(ours.of(cell), stored.of(cell) if stored else None) for cell in cells(wanted)]

    def guess(self, runs: Sequence[PlannedRun]) -> str:
        """About how long some runs would take, in words."""
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
        """Try the points of every variant, all variants of a dataset together, and keep the choice of each."""
        outcome = DriveOutcome()
        ledger = self.ledgers.of(TUNING)
        for dataset in datasets:
            points = self._points(dataset, methods, protocols, epochs)
            self._try_runs([run for runs in points.values() for run in runs], ledger, engine, outcome)
            weak = [variant for variant, runs in points.items() if (rows := _rows(runs, ledger)) and tuning.fails(rows)]
            for variant in weak:
                start = self.recipes.start(study_dataset(dataset), variant)
                points[variant].append(tuning.adam_point(dataset, variant, start, epochs or tuning.EPOCHS))
            self._try_runs([points[variant][-1] for variant in weak], ledger, engine, outcome)
            for variant, runs in points.items():
                choice = tuning.choose(dataset, variant, _rows(runs, ledger) or ())
                if choice is not None and tuning.store(choice, ledger):
                    self.say(f"{dataset}, {variant.text} ({variant.protocol}): {tuning.settings_of(choice.chosen)}")
        return outcome

    def untried(
        self, datasets: Sequence[str], methods: Sequence[str] | None, protocols: Sequence[Protocol], epochs: int | None
    ) -> list[PlannedRun]:
        """What `tune` would train, a ninth point for variants that fail apart."""
        ledger = self.ledgers.of(TUNING)
        points = [self._points(dataset, methods, protocols, epochs) for dataset in datasets]
        return missing([run for part in points for runs in part.values() for run in runs], lambda run: ledger)

    def search(self, datasets: Sequence[str], engine: StudyEngine, epochs: int | None = None) -> DriveOutcome:
        """The rounds of the search for SL's recipe, its table, and the choice."""
        outcome = DriveOutcome()
        for dataset in datasets:
            length = epochs or study_dataset(dataset).epochs
            screened = self._round(dataset, sl_search.grid(dataset, length), engine, outcome)
            full = self._round(dataset, sl_search.longer(screened or [], length), engine, outcome)
            changed = self._round(dataset, sl_search.changed(full or []), engine, outcome)
            best = sl_search.ranked([*full, *changed]) if full and changed else []
            if best:
                self._keep(dataset, best)
            crops = self._round(dataset, sl_search.cropped(best), engine, outcome)
            if crops:
                self._keep(dataset, crops)
            found = [scored for part in (screened, full, changed, crops) for scored in part or []]
            if found:
                atomic_write(self.results / f"search-{dataset}.md", sl_search.table(found, dataset))
        return outcome

    def unsearched(self, datasets: Sequence[str], epochs: int | None) -> list[PlannedRun]:
        """What the first round of `search` would train: the next ones depend on how it comes out."""
        ledger = self.ledgers.of(SEARCH)
        grids = [(name, sl_search.grid(name, epochs or study_dataset(name).epochs)) for name in datasets]
        return missing([run for name, grid in grids for point in grid for run in point.runs(name)], lambda run: ledger)

    def _ledger_of(self, run: PlannedRun) -> Ledger:
        """Where a run of a table is kept."""
        return self.ledgers.of(run.cell.dataset)

    def _results(self, ledgers: Ledgers, wanted: Wanted) -> Results:
        return Results([row for name in wanted.datasets for row in ledgers.of(name).rows()], self.recipes)

    def _points(
        self, dataset: str, methods: Sequence[str] | None, protocols: Sequence[Protocol], epochs: int | None
    ) -> dict[MethodVariant, list[PlannedRun]]:
        recipes, about, length = self.recipes, study_dataset(dataset), epochs or tuning.EPOCHS
        variants = tuning.variants_of(methods or TUNED, protocols)
        return {variant: tuning.points(dataset, variant, recipes.start(about, variant), length) for variant in variants}

    def _round(
        self, dataset: str, points: Sequence[Point], engine: StudyEngine, outcome: DriveOutcome
    ) -> list[Scored] | None:
        """A round of the search, the best first; None where the time was over before its end: the next call goes on."""
        ledger = self.ledgers.of(SEARCH)
        self._try_runs([run for point in points for run in point.runs(dataset)], ledger, engine, outcome)
        found = sl_search.scored(points, dataset, {row["key"]: row for row in ledger.rows()})
        return found if len(found) == len(points) else None

    def _keep(self, dataset: str, found: Sequence[Scored]) -> None:
        """The best point is the recipe of `sl`, or of `sl+aug` where these points have crops."""
        best = max(found, key=lambda scored: scored.score)
        rows = tuple(row for scored in found for row in scored.rows)
        choice = tuning.Choice(dataset, MethodVariant("sl", "fair", best.point.augment), best.rows[0], rows)
        source = f"search: best of {len(found)} points, mean held-out accuracy {100 * best.score:.2f} at sizes 5 and 3"
        if tuning.store(choice, self.ledgers.of(TUNING), "search", source):
            self.say(f"{dataset}, {choice.variant.text}: {tuning.settings_of(choice.chosen)}")

    def _try_runs(self, runs: Sequence[PlannedRun], ledger: Ledger, engine: StudyEngine, outcome: DriveOutcome) -> None:
        outcome.add(self._drive(runs, lambda run: ledger, engine, tuning.TRIED))

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


def _rows(runs: Sequence[PlannedRun], ledger: Ledger) -> list[Row] | None:
    """The rows of some runs; None where one is not there yet."""
    found = [row for run in runs if (row := ledger.get(run.key)) is not None]
    return found if len(found) == len(runs) else None

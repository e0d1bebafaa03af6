"""What `shortlist reproduce` does: the runs of a table, the tuning of lines, the search for SL's recipe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shortlist.errors import InputError
from shortlist.files import atomic_write
from shortlist.methods import Protocol
from shortlist.study.choose import sl_search as search
from shortlist.study.choose import tuning
from shortlist.study.choose.sl_search import Point, Scored
from shortlist.study.plan.datasets import study_set
from shortlist.study.plan.grid import PlannedRun, Wanted, planned
from shortlist.study.plan.paper import METHODS
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import Line
from shortlist.study.run.batches import Pace
from shortlist.study.run.driver import Budget, Report, Say, drive, missing
from shortlist.study.run.engines import StudyEngine
from shortlist.study.run.ledger import SEARCH, TUNING, Ledger, Ledgers

TUNED = (*METHODS, "likelihood", "ol", "ol-ovr")
"""What is tuned where nothing is stated: every line of the tables."""


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

    def ledger_of(self, run: PlannedRun) -> Ledger:
        """Where a run of a table is kept."""
        return self.ledgers.of(run.cell.dataset)

    def run_tables(self, wanted: Wanted, engine: StudyEngine) -> Report:
        """Train what the ledger does not hold yet of what is wanted."""
        return self._drive(planned(wanted, self.recipes), self.ledger_of, engine, "run")

    def missing(self, wanted: Wanted) -> list[PlannedRun]:
        """What `run_tables` would train."""
        return missing(planned(wanted, self.recipes), self.ledger_of)

    def tune(
        self,
        datasets: Sequence[str],
        methods: Sequence[str] | None,
        protocols: Sequence[Protocol],
        engine: StudyEngine,
        epochs: int | None = None,
    ) -> Report:
        """Try the points of every line, all lines of a dataset together, and keep the choice of each."""
        report = Report()
        ledger = self.ledgers.of(TUNING)
        for dataset in datasets:
            of_line = self._points(dataset, methods, protocols, epochs)
            runs = [run for of in of_line.values() for run in of]
            _add(report, self._drive(runs, lambda run: ledger, engine, tuning.TRIED))
            weak = [line for line, of in of_line.items() if _whole(of, ledger) and tuning.fails(_rows(of, ledger))]
            for line in weak:
                start = self.recipes.start(study_set(dataset), line)
                of_line[line].append(tuning.adam_point(dataset, line, start, epochs or tuning.EPOCHS))
            second = [of_line[line][-1] for line in weak]
            _add(report, self._drive(second, lambda run: ledger, engine, tuning.TRIED))
            for line, of in of_line.items():
                choice = tuning.choose(dataset, line, _rows(of, ledger)) if _whole(of, ledger) else None
                if choice is not None and tuning.store(choice, ledger):
                    self.say(f"{dataset}, {line.text} ({line.protocol}): {tuning.settings_of(choice.chosen)}")
        return report

    def _points(
        self, dataset: str, methods: Sequence[str] | None, protocols: Sequence[Protocol], epochs: int | None
    ) -> dict[Line, list[PlannedRun]]:
        recipes, of, length = self.recipes, study_set(dataset), epochs or tuning.EPOCHS
        lines = tuning.lines_of(methods or TUNED, protocols)
        return {line: tuning.points(dataset, line, recipes.start(of, line), length) for line in lines}

    def untried(
        self, datasets: Sequence[str], methods: Sequence[str] | None, protocols: Sequence[Protocol], epochs: int | None
    ) -> list[PlannedRun]:
        """What `tune` would train, a ninth point for lines that fail apart."""
        ledger = self.ledgers.of(TUNING)
        of_lines = [self._points(dataset, methods, protocols, epochs) for dataset in datasets]
        return missing([run for of_line in of_lines for of in of_line.values() for run in of], lambda run: ledger)

    def unsearched(self, datasets: Sequence[str], epochs: int | None) -> list[PlannedRun]:
        """What the first round of `search` would train: the next ones hang on how it comes out."""
        ledger = self.ledgers.of(SEARCH)
        grids = [(name, search.grid(name, epochs or study_set(name).epochs)) for name in datasets]
        return missing([run for name, grid in grids for point in grid for run in point.runs(name)], lambda run: ledger)

    def search(self, datasets: Sequence[str], engine: StudyEngine, epochs: int | None = None) -> Report:
        """The rounds of the search for SL's recipe, its table, and the choice."""
        report = Report()
        for dataset in datasets:
            length = epochs or study_set(dataset).epochs
            screened = self._try(dataset, search.grid(dataset, length), engine, report)
            full = self._try(dataset, search.longer(screened or [], length), engine, report)
            changed = self._try(dataset, search.changed(full or []), engine, report)
            best = search.ranked([*full, *changed]) if full and changed else []
            if best:
                self._keep(dataset, best)
            crops = self._try(dataset, search.cropped(best), engine, report)
            if crops:
                self._keep(dataset, crops)
            found = [scored for part in (screened, full, changed, crops) for scored in part or []]
            if found:
                atomic_write(self.results / f"search-{dataset}.md", search.table(found, dataset))
        return report

    def _try(self, dataset: str, points: Sequence[Point], engine: StudyEngine, report: Report) -> list[Scored] | None:
        """A round of the search, the best first; None where the time was over before its end: the next call goes on."""
        ledger = self.ledgers.of(SEARCH)
        runs = [run for point in points for run in point.runs(dataset)]
        _add(report, self._drive(runs, lambda run: ledger, engine, tuning.TRIED))
        found = search.scored(points, dataset, {row["key"]: row for row in ledger.rows()})
        return found if len(found) == len(points) else None

    def _keep(self, dataset: str, found: Sequence[Scored]) -> None:
        """The best point is the recipe of `sl`, or of `sl+aug` where these points have crops."""
        best = max(found, key=lambda scored: scored.score)
        rows = tuple(row for scored in found for row in scored.rows)
        choice = tuning.Choice(dataset, Line("sl", "fair", best.point.augment), best.rows[0], rows)
        source = f"search: best of {len(found)} points, mean held-out accuracy {100 * best.score:.2f} at sizes 5 and 3"
        if tuning.store(choice, self.ledgers.of(TUNING), "search", source):
            self.say(f"{dataset}, {choice.line.text}: {tuning.settings_of(choice.chosen)}")

    def _drive(
        self, runs: Sequence[PlannedRun], ledger: Callable[[PlannedRun], Ledger], engine: StudyEngine, kind: str
    ) -> Report:
        self._pace = getattr(self, "_pace", None) or Pace(engine.cuda)
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


def _add(total: Report, part: Report) -> None:
    total.stored += part.stored
    total.failed += part.failed
    total.left += part.left
    total.left_seconds += part.left_seconds
    total.absent |= part.absent


def _whole(runs: Sequence[PlannedRun], ledger: Ledger) -> bool:
    return all(run.key in ledger for run in runs)


def _rows(runs: Sequence[PlannedRun], ledger: Ledger) -> list[dict[str, object]]:
    found = (ledger.get(run.key) for run in runs)
    return [row for row in found if row is not None]

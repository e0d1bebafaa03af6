"""The driver: cuts the runs that the ledger lacks into batches, has them trained, and stores each batch as it ends."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from shortlist.errors import InputError
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import PlannedRun
from shortlist.study.run.batches import Pace, RunBatch, groups, next_batch
from shortlist.study.run.engines import Finished, StudyEngine, make_engine
from shortlist.study.run.ledger import RUN, Ledger
from shortlist.study.run.run_locks import RunLocks

BATCH_MINUTES = 3.0
Say = Callable[[str], None]


@dataclass
class Budget:
    """When to stop, and how long a batch may take. The time runs from the moment the budget is made."""

    minutes: float | None = None
    batch_minutes: float = BATCH_MINUTES
    began: float = field(default_factory=lambda: time.monotonic())

    def __post_init__(self) -> None:
        for name in ("minutes", "batch_minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name.replace('_', '-')}: expected more than 0, got {value}")

    @property
    def left(self) -> float:
        """Seconds."""
        return float("inf") if self.minutes is None else 60 * self.minutes - (time.monotonic() - self.began)


@dataclass
class DriveOutcome:
    """What `drive` did."""

    stored: int = 0
    failed: int = 0
    left: int = 0
    left_seconds: float = 0.0
    """How long they would take, a guess."""
    absent: dict[str, str] = field(default_factory=dict)
    """Datasets whose data could not be had -> why."""

    def add(self, other: "DriveOutcome") -> None:
        """Add what another call did."""
        self.stored += other.stored
        self.failed += other.failed
        self.left += other.left
        self.left_seconds += other.left_seconds
        self.absent |= other.absent


def missing(runs: Sequence[PlannedRun], ledger: Callable[[PlannedRun], Ledger]) -> list[PlannedRun]:
    """The runs that the ledger lacks, each once."""
    return list({run.key: run for run in runs if run.key not in ledger(run)}.values())


def drive(
    runs: Sequence[PlannedRun],
    ledger: Callable[[PlannedRun], Ledger],
    engine: StudyEngine,
    budget: Budget,
    *,
    device: str = "auto",
    kind: str = RUN,
    score_every: int = 1,
    pace: Pace | None = None,
    say: Say = lambda line: None,
) -> DriveOutcome:
    """Train the runs that the ledger lacks and store them batch by batch; after a kill the same call goes on.

    Several processes may do so at once: each trains what no other has begun, and waits until the rest is stored.

    Args:
        runs: all that is wanted.
        ledger: where a run's row belongs.
        engine: where to train.
        budget: when to stop.
        device: for engines that compute here.
        kind: of the rows (`RunBatch.kind`).
        score_every: epochs between scores.
        pace: how long batches take, kept between drives.
        say: told of every batch.
    """
    outcome = DriveOutcome()
    waiting = groups(_with_data(missing(runs, ledger), outcome, say))
    total = sum(map(len, waiting))
    pace = pace or Pace(engine.cuda)
    number, under_way = 0, dict[int, RunBatch]()
    with RunLocks(ledger, say) as locks:
        while waiting or under_way or locks.elsewhere:
            while waiting and len(under_way) < engine.slots:
                batch = _take(waiting, pace, budget)
                if batch is None:  # the time is up; what is under way still ends
                    waiting += groups(locks.retry())
                    outcome.left += sum(map(len, waiting))
                    outcome.left_seconds += pace.all_seconds(waiting, 60 * budget.batch_minutes)
                    waiting = []
                    break
                ours = locks.begin(batch.runs)
                if not ours:
                    continue
                # settings are chosen by the last ten epochs, which are always scored
                every = score_every if kind == RUN else max(run.config.epochs for run in ours)
                own_data = datasets.own(batch.dataset)
                under_way[number] = RunBatch(tuple(ours), kind, device, every, own_data)
                engine.submit(number, under_way[number])
                number += 1
            if under_way:
                done = engine.wait()
                batch = under_way.pop(done.number)
                pace.saw(batch, done.seconds)
                _store(batch, done, ledger, outcome)
                say(_progress(batch, done, outcome, total))
            elif locks.elsewhere:
                waiting = groups(locks.wait())
    return outcome


@contextmanager
def open_engine(
    name: str, device: str = "auto", workers: int | None = None, address: str | None = None
) -> Iterator[StudyEngine]:
    """An engine by its name, closed at the end; inside, Ctrl-C is heard at any moment."""
    engine = make_engine(name, device, workers, address)
    clean = False
    try:
        with listening():
            yield engine
        clean = True
    finally:
        engine.close(clean)


@contextmanager
def listening() -> Iterator[None]:
    """Inside, Ctrl-C is heard between runs too.

    A process that a script starts in the background ignores SIGINT at first. The training loop listens all the same:
    without this a study could be stopped inside a run but not between two.
    """
    deaf = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if not deaf or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _with_data(runs: Sequence[PlannedRun], outcome: DriveOutcome, say: Say) -> list[PlannedRun]:
    """The runs whose data can be had; the others are left out, with a message."""
    for name in dict.fromkeys(run.cell.dataset for run in runs):
        try:
            datasets.load(name)
        except InputError as error:
            outcome.absent[name] = str(error)
            say(f"{name} is left out: {error}")
    kept = [run for run in runs if run.cell.dataset not in outcome.absent]
    outcome.left += len(runs) - len(kept)
    return kept


def _take(waiting: list[list[PlannedRun]], pace: Pace, budget: Budget) -> RunBatch | None:
    """The next batch that ends in time, removed from the waiting groups; a later group may have shorter runs."""
    for place, group in enumerate(waiting):
        batch = next_batch(group, pace, 60 * budget.batch_minutes, budget.left)
        if batch is not None:
            del group[: len(batch.runs)]
            if not group:
                del waiting[place]
            return batch
    return None


def _store(batch: RunBatch, done: Finished, ledger: Callable[[PlannedRun], Ledger], outcome: DriveOutcome) -> None:
    for run, row in zip(batch.runs, done.rows, strict=True):
        outcome.failed += row["failed"] is not None
        outcome.stored += ledger(run).append(row)


def _progress(batch: RunBatch, done: Finished, outcome: DriveOutcome, total: int) -> str:
    """One line per batch: how far, what, how fast."""
    first, count = batch.runs[0], len(batch.runs)
    what = f"{first.cell.name}, trial {first.trial}" if count == 1 else f"{count} runs on {batch.dataset}"
    if count == 1 and batch.kind != RUN:  # while settings are tried, they tell one run from the next
        what += f", lr {first.config.lr:g}, weight decay {first.config.weight_decay:g}"
    epochs = sum(run.config.epochs for run in batch.runs)
    scores = [row["last"] if row["last"] is not None else row["validation"] for row in done.rows]
    known = [score for score in scores if score is not None]
    mean = f", mean accuracy {100 * sum(known) / len(known):.2f}" if known else ""
    pace = f"{done.seconds:.1f} s ({done.seconds / epochs:.4f} s per epoch and run)"
    return f"[{outcome.stored}/{total}] {what}: {pace}{mean}"

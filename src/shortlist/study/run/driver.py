"""The driver: what the ledger does not hold is cut into packs, trained, and stored as each pack ends."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from shortlist.errors import InputError
from shortlist.study.plan import datasets as sets
from shortlist.study.plan.grid import PlannedRun
from shortlist.study.run.batches import Pace, Pack, groups, next_pack
from shortlist.study.run.engines import Done, StudyEngine
from shortlist.study.run.ledger import Ledger
from shortlist.study.run.run_locks import Sharing
from shortlist.study.run.worker import Order

PACK_MINUTES = 3.0
Say = Callable[[str], None]


@dataclass
class Budget:
    """When to stop, and how long a pack may take; time counts from the making of it."""

    minutes: float | None = None
    pack_minutes: float = PACK_MINUTES
    began: float = field(default_factory=lambda: time.monotonic())

    def __post_init__(self) -> None:
        for name in ("minutes", "pack_minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name.replace('_', '-')}: expected more than 0, got {value}")

    @property
    def left(self) -> float:
        """Seconds."""
        return float("inf") if self.minutes is None else 60 * self.minutes - (time.monotonic() - self.began)


@dataclass
class Report:
    """What a drive came to."""

    stored: int = 0
    failed: int = 0
    left: int = 0
    left_seconds: float = 0.0
    """A guess of how long they would take."""
    absent: dict[str, str] = field(default_factory=dict)
    """Datasets whose data is not here -> why."""


def missing(runs: Sequence[PlannedRun], ledger: Callable[[PlannedRun], Ledger]) -> list[PlannedRun]:
    """The runs that the ledger does not hold."""
    return [run for run in runs if run.key not in ledger(run)]


def row_of(run: PlannedRun, result: dict[str, Any], kind: str) -> dict[str, Any]:
    """A row of the ledger: what was asked, what came of it, and where; the long list last."""
    accuracy = result.pop("accuracy")
    return {
        "key": run.key,
        "kind": kind,
        **run.cell.to_dict(),
        "trial": run.trial,
        **result,
        "recipe": run.source,
        "config": run.config.to_dict(),
        "accuracy": accuracy,
    }


def drive(
    runs: Sequence[PlannedRun],
    ledger: Callable[[PlannedRun], Ledger],
    engine: StudyEngine,
    budget: Budget,
    *,
    device: str = "auto",
    kind: str = "run",
    score_every: int = 1,
    pace: Pace | None = None,
    say: Say = lambda line: None,
) -> Report:
    """Train what is missing and store it, pack by pack; killed at any moment, the same call goes on from there.

    Several processes may do so at once: each trains what no other has begun, and waits for the rest to be stored.

    Args:
        runs: all that is wanted.
        ledger: where a run's row belongs.
        engine: where to train.
        budget: when to stop.
        device: for engines that compute here.
        kind: of the rows; only runs of kind `run` are scored on the test items.
        score_every: epochs between scores.
        pace: how long packs take, kept between drives.
        say: told of every pack.
    """
    report = Report()
    waiting = groups(_with_data(missing(runs, ledger), report, say))
    total = sum(map(len, waiting))
    pace = pace or Pace(engine.cuda)
    most = None if engine.cuda else 1
    under_way: dict[int, Pack] = {}
    number = 0
    with Sharing(ledger, say) as share:
        while waiting or under_way or share.elsewhere:
            while waiting and len(under_way) < engine.slots:
                pack = _take(waiting, pace, budget, most)
                if pack is None:  # the time is over; what is under way still ends
                    waiting += groups(share.again())
                    report.left += sum(map(len, waiting))
                    report.left_seconds += pace.all_seconds(waiting, 60 * budget.pack_minutes)
                    waiting = []
                    break
                ours = share.begin(pack.runs)
                if not ours:
                    continue
                under_way[number] = Pack(tuple(ours))
                engine.submit(number, _order(under_way[number], device, kind, score_every))
                number += 1
            if under_way:
                done = engine.wait()
                pack = under_way.pop(done.number)
                pace.saw(pack, done.seconds)
                _store(pack, done, ledger, kind, report)
                say(_line(pack, done, report, total))
            elif share.elsewhere:
                waiting = groups(share.wait())
    return report


@contextmanager
def listening() -> Iterator[None]:
    """Inside, Ctrl-C is heard between runs too.

    A process that a script starts in the background begins deaf to SIGINT. The training loop listens all the same, so
    that without this a study could be stopped inside a run and not between two.
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


def _with_data(runs: Sequence[PlannedRun], report: Report, say: Say) -> list[PlannedRun]:
    """The runs whose data can be had; the others are named and left out."""
    for name in dict.fromkeys(run.cell.dataset for run in runs):
        try:
            sets.load(name)
        except InputError as error:
            report.absent[name] = str(error)
            say(f"{name} is left out: {error}")
    kept = [run for run in runs if run.cell.dataset not in report.absent]
    report.left += len(runs) - len(kept)
    return kept


def _take(waiting: list[list[PlannedRun]], pace: Pace, budget: Budget, most: int | None) -> Pack | None:
    """The next pack that ends in time, taken out of the groups that wait; shorter runs may still fit."""
    for place, group in enumerate(waiting):
        pack = next_pack(group, pace, 60 * budget.pack_minutes, budget.left, most)
        if pack is not None:
            del group[: len(pack.runs)]
            if not group:
                del waiting[place]
            return pack
    return None


def _order(pack: Pack, device: str, kind: str, score_every: int) -> Order:
    configs = tuple(run.config for run in pack.runs)
    # a choice looks at the last ten epochs only, and they are always scored
    every = score_every if kind == "run" else max(config.epochs for config in configs)
    return Order(pack.dataset, configs, device, kind == "run", every)


def _store(pack: Pack, done: Done, ledger: Callable[[PlannedRun], Ledger], kind: str, report: Report) -> None:
    for run, result in zip(pack.runs, done.rows, strict=True):
        report.failed += result["failed"] is not None
        report.stored += ledger(run).append(row_of(run, result, kind))


def _line(pack: Pack, done: Done, report: Report, total: int) -> str:
    """One line a pack: how far, what, how fast."""
    cell, count = pack.runs[0].cell, len(pack.runs)
    what = f"{cell.name}, trial {pack.runs[0].trial}" if count == 1 else f"{count} runs on {pack.dataset}"
    epochs = sum(run.config.epochs for run in pack.runs)
    scores = [row["last"] if row["last"] is not None else row["validation"] for row in done.rows]
    known = [score for score in scores if score is not None]
    mean = f", mean accuracy {100 * sum(known) / len(known):.2f}" if known else ""
    pace = f"{done.seconds:.1f} s ({done.seconds / epochs:.4f} s per epoch and run)"
    return f"[{report.stored}/{total}] {what}: {pace}{mean}"

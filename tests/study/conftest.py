import numpy as np
import pytest
import torch

from shortlist.study.run.engines import Finished
from shortlist.study.run.ledger import RUN
from shortlist.study.run.worker import row_of
from shortlist.training.fleet.fleet import FleetResult
from shortlist.training.history import EpochScores

PLACE = {"hardware": "nothing", "versions": {"torch": "0"}, "commit": "abc", "date": "2026-01-01T00:00:00Z"}


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SHORTLIST_OFFLINE", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fake_row(run, level=None, kind=RUN, failed=None):
    """The row of a run whose curve rises to its level, with a peak in the middle."""
    level = 0.5 + int(run.key[:4], 16) / 2**17 if level is None else level
    config, epochs = run.config, run.config.epochs
    curve = level - 0.2 * np.exp(-np.arange(epochs))
    if epochs > 20:
        curve[epochs // 2] = 0.999  # the best test epoch, which no table may show
    held_out, error = (level, 0.01) if config.holdout else (None, None)
    history = [
        EpochScores(e + 1, 1.0, 0.1, held_out, None, float(curve[e]) if kind == RUN else None, held_out, error)
        for e in range(epochs)
    ]
    return row_of(run, FleetResult(config, history, None, failed), kind, 1.5, 1, PLACE)


class FakeEngine:
    """Trains nothing and answers at once; keeps what it was asked."""

    def __init__(self, cuda=False, slots=1, level=lambda config: 0.8, seconds=1.0, die_after=None):
        self.cuda, self.slots, self.level, self.seconds, self.die_after = cuda, slots, level, seconds, die_after
        self.batches, self.waiting = [], []

    def submit(self, number, batch):
        self.batches.append(batch)
        self.waiting.append((number, batch))

    def wait(self):
        if self.die_after is not None and len(self.batches) > self.die_after:
            raise KeyboardInterrupt
        number, batch = self.waiting.pop(0)
        return Finished(number, [fake_row(run, self.level(run.config), batch.kind) for run in batch.runs], self.seconds)

    def close(self, clean=True):
        self.closed = clean


class Clock:
    """Time that step_cost only when told."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("shortlist.study.run.driver.time.monotonic", lambda: self.now)

import numpy as np
import pytest
import torch

from shortlist.study.run.driver import row_of
from shortlist.study.run.engines import Done
from shortlist.study.run.worker import result_of
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


def outcome(config, level, tested=True, failed=None):
    """What training would have returned: a curve that rises to its level, with a peak in the middle."""
    epochs = config.epochs
    curve = level - 0.2 * np.exp(-np.arange(epochs))
    if epochs > 20:
        curve[epochs // 2] = 0.999  # the best test epoch, which no table may show
    history = [
        EpochScores(e + 1, 1.0, 0.1, None if not config.holdout else level, None, float(curve[e]) if tested else None)
        for e in range(epochs)
    ]
    return {**result_of(FleetResult(config, history, None, failed), 1.5), **PLACE}


def fake_row(run, level=None, kind="run", failed=None):
    level = 0.5 + int(run.key[:4], 16) / 2**17 if level is None else level
    return row_of(run, outcome(run.config, level, kind == "run", failed), kind)


class FakeEngine:
    """Trains nothing and answers at once; keeps what it was asked."""

    def __init__(self, cuda=False, slots=1, level=lambda config: 0.8, seconds=1.0, die_after=None):
        self.cuda, self.slots, self.level, self.seconds, self.die_after = cuda, slots, level, seconds, die_after
        self.orders, self.waiting = [], []

    def submit(self, number, order):
        self.orders.append(order)
        self.waiting.append((number, order))

    def wait(self):
        if self.die_after is not None and len(self.orders) > self.die_after:
            raise KeyboardInterrupt
        number, order = self.waiting.pop(0)
        return Done(number, [outcome(c, self.level(c), order.tested) for c in order.configs], self.seconds)

    def close(self, clean=True):
        self.closed = clean


class Clock:
    """Time that passes only when told."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("shortlist.study.run.driver.time.monotonic", lambda: self.now)

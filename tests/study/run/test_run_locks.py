"""Several processes with the same runs: each is trained by one of them, and by another where that one dies."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shortlist.errors import InputError
from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.run import run_locks as sharing
from shortlist.study.run.driver import Budget, drive, missing
from shortlist.study.run.ledger import Ledger
from shortlist.study.run.run_locks import RunLocks

from ..conftest import FakeEngine, fake_row

RUNS = planned(Wanted(("table1",), ("digits",), methods=("sl", "rc"), trials=1, sizes=(5, 3), epochs=2), Recipes())
FORK = multiprocessing.get_context("fork")


def obey(path, pipe):
    """A process that begins and stores what it is told to."""
    ledger = Ledger(path)
    with RunLocks(lambda run: ledger) as share:
        while True:
            word, places = pipe.recv()
            runs = [RUNS[place] for place in places]
            if word == "begin":
                ours = {run.key for run in share.begin(runs)}
                pipe.send([place for place in places if RUNS[place].key in ours])
            else:
                for run in runs:
                    ledger.append(fake_row(run))
                pipe.send(places)


class Other:
    """Another process at the same ledger."""

    def __init__(self, path):
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=obey, args=(path, theirs), daemon=True)
        self.process.start()
        self.ours = set()

    def _ask(self, word, places):
        self.pipe.send((word, places))
        return self.pipe.recv()

    def begin(self, *places):
        got = self._ask("begin", places)
        self.ours |= set(got)
        return got

    def store(self, *places):
        self._ask("store", places)
        self.ours -= set(places)

    def kill(self):
        self.process.kill()
        self.process.join()
        self.ours = set()


def once_waiting(do):
    """A `say` that does something when the drive has nothing left to do but to wait."""

    def say(line):
        if line.startswith("waiting for other processes"):
            do()

    return say


@pytest.fixture(autouse=True)
def _short_moments(monkeypatch):
    monkeypatch.setattr(sharing, "MOMENT", 0.05)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "digits.jsonl"


@pytest.fixture
def other(path):
    made = Other(path)
    yield made
    made.kill()


class Processes(RuleBasedStateMachine):
    """Whatever three processes begin, store and die of: no run is two processes' at once, and none is ever lost."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder, "digits.jsonl")
        self.others = [Other(self.path) for _ in range(3)]
        self.stored = set()

    who = st.integers(0, 2)

    @rule(who=who, places=st.sets(st.integers(0, len(RUNS) - 1), min_size=1, max_size=3))
    def begin(self, who, places):
        taken = set().union(*(other.ours for other in self.others if other is not self.others[who]))
        got = self.others[who].begin(*sorted(places))
        assert set(got) == places - taken - self.stored

    @rule(who=who, count=st.integers(1, 2))
    def store(self, who, count):
        places = sorted(self.others[who].ours)[:count]
        self.others[who].store(*places)
        self.stored |= set(places)

    @rule(who=who)
    def kill(self, who):
        self.others[who].kill()
        self.others[who] = Other(self.path)

    @invariant()
    def every_stored_run_is_in_the_ledger_once(self):
        assert sorted(row["key"] for row in Ledger(self.path).rows()) == sorted(RUNS[p].key for p in self.stored)

    def teardown(self):
        for other in self.others:
            other.kill()
        shutil.rmtree(self.folder)


TestProcesses = Processes.TestCase
TestProcesses.settings = settings(max_examples=12, stateful_step_count=12)


def test_what_another_trains_and_stores_is_not_trained(path, other):
    assert other.begin(0, 1) == [0, 1]
    engine, ledger, said = FakeEngine(), Ledger(path), []

    def store():
        said.append("waiting")
        other.store(0, 1)

    report = drive(RUNS, lambda run: ledger, engine, Budget(), say=once_waiting(store))
    assert len(engine.batches) == report.stored == len(RUNS) - 2
    assert not missing(RUNS, lambda run: ledger)
    assert report.left == 0
    assert said == ["waiting"]


def test_what_another_began_and_died_of_is_trained(path, other):
    other.begin(0, 1)
    other.store(1)
    engine, ledger = FakeEngine(slots=2), Ledger(path)
    report = drive(RUNS, lambda run: ledger, engine, Budget(), say=once_waiting(other.kill))
    assert len(engine.batches) == report.stored == len(RUNS) - 1
    assert not missing(RUNS, lambda run: ledger)


def test_a_batch_goes_on_with_what_is_left_of_it(path, other):
    other.begin(1)
    engine, ledger = FakeEngine(cuda=True), Ledger(path)
    drive(RUNS, lambda run: ledger, engine, Budget(), say=once_waiting(other.kill))
    trained = [run for batch in engine.batches for run in batch.runs]
    assert len(trained) == len(RUNS)
    assert trained[-1] == RUNS[1]


def test_nobody_waits_longer_than_there_is_time(path, other):
    other.begin(0)
    ledger, began = Ledger(path), time.monotonic()
    report = drive(RUNS[:2], lambda run: ledger, FakeEngine(), Budget(minutes=5 / 60))
    assert (report.stored, report.left) == (1, 1)
    assert time.monotonic() - began < 30


def test_a_folder_that_cannot_be_written_is_one_line_before_anything_is_trained(tmp_path):
    (tmp_path / "file").write_text("")
    engine, ledger = FakeEngine(), Ledger(tmp_path / "file" / "digits.jsonl")
    with pytest.raises(InputError, match=r"digits\.lock: "):
        drive(RUNS, lambda run: ledger, engine, Budget())
    assert engine.batches == []


def test_the_same_command_twice_trains_every_run_once(tmp_path):
    words = ["reproduce", "table1", "--datasets", "digits", "--sizes", "5,3", "--trials", "2", "--epochs", "6"]
    command = [sys.executable, "-m", "shortlist", *words, "--methods", "sl,rc", "--results", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SHORTLIST_OFFLINE": "1"}
    both = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    trained = [sum(line.startswith("[") for line in lines.splitlines()) for lines in said]
    rows = Ledger(tmp_path / "ledger" / "digits.jsonl").rows()
    assert len(rows) == sum(trained) == 12

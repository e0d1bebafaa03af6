"""Local processes and Ray: a worker killed in the middle of a run, which is done again; one ledger, one writer."""

import os
import signal
import subprocess
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import torch

from shortlist.errors import InputError
from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.run.batches import RunBatch
from shortlist.study.run.driver import Budget, drive
from shortlist.study.run.engines import RETRIES, Local, Processes, make_engine
from shortlist.study.run.ledger import Ledger

RUNS = planned(Wanted(("table1",), ("digits",), methods=("sl", "cc"), trials=1, sizes=(5,), epochs=20), Recipes())
assert len(RUNS) == 3  # sl; cc under the paper's protocol; the likelihood, which is cc under the fair one


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same runs in this process, on one thread as workers have it: two would add up in another order."""
    path = tmp_path_factory.mktemp("alone") / "l.jsonl"
    ledger = Ledger(path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    drive(RUNS, lambda run: ledger, Local("cpu"), Budget())
    torch.set_num_threads(threads)
    return {row["key"]: row["accuracy"] for row in ledger.rows()}


def children(of):
    """The processes below one, whoever their parents are by now."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found, below = [], {str(of)}
    while True:
        more = [row for row in rows if row[1] in below and row not in found]
        if not more:
            return [(int(pid), args) for pid, _, args in found]
        found += more
        below |= {row[0] for row in more}


def kill_one(is_worker, killed):
    """Wait for a worker that is at work for a moment, and kill it with -9."""
    for _ in range(1200):
        workers = [pid for pid, args in children(os.getpid()) if is_worker(args) and busy(pid)]
        if workers:
            time.sleep(1.0)
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])
            return
        time.sleep(0.05)


def busy(pid):
    """Past the loading of torch: it trains."""
    try:
        return "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def drive_and_kill(engine, tmp_path, is_worker):
    ledger = Ledger(tmp_path / "l.jsonl")
    killed = []
    killer = threading.Thread(target=kill_one, args=(is_worker, killed))
    killer.start()
    try:
        report = drive(RUNS, lambda run: ledger, engine, Budget())
    finally:
        killer.join()
        engine.close()
    assert len(killed) == 1
    assert report.stored == len(RUNS)
    return {row["key"]: row["accuracy"] for row in ledger.rows()}


def test_a_killed_process_is_replaced_and_its_run_done_again(tmp_path, alone):
    def is_worker(args):
        return "multiprocessing.spawn" in args

    assert drive_and_kill(Processes(2), tmp_path, is_worker) == alone


def test_a_process_that_dies_between_two_batches_is_replaced():
    """The pool then refuses the next batch, not the last."""
    engine = Processes(1)
    batch = RunBatch((RUNS[0],))
    try:
        engine.submit(0, batch)
        assert engine.wait().number == 0
        for pid in list(engine._pool._processes):
            os.kill(pid, signal.SIGKILL)
        while not engine._pool._broken:
            time.sleep(0.01)
        engine.submit(1, batch)
        assert engine.wait().number == 1
    finally:
        engine.close(clean=False)


def test_a_pool_that_breaks_while_batches_begin_again_gets_each_once(monkeypatch):
    engine = Processes(2)
    batches = {number: RunBatch((run,)) for number, run in enumerate(RUNS[:2])}
    new_pool, made = Processes._new_pool, []

    def breaks_at_first(self):
        pool = new_pool(self)
        made.append(pool)
        if len(made) == 1:  # its worker dies between the first batch and the second
            submit = pool.submit

            def submit_and_die(*args):
                if pool._pending_work_items:
                    raise BrokenProcessPool
                return submit(*args)

            pool.submit = submit_and_die
        return pool

    try:
        engine._batches.update((number, (batch, 0)) for number, batch in batches.items())
        monkeypatch.setattr(Processes, "_new_pool", breaks_at_first)
        engine._begin_again()
        assert len(made) == 2
        assert sorted(engine._futures.values()) == [0, 1]
        assert {engine.wait().number, engine.wait().number} == {0, 1}
        assert not engine._futures
    finally:
        engine.close(clean=False)


def test_a_process_that_dies_again_and_again_is_given_up():
    engine = Processes(1)
    try:
        engine._batches[0] = (RunBatch((RUNS[0],)), RETRIES)
        with pytest.raises(InputError, match=f"died {RETRIES + 1} times on digits"):
            engine._begin_again()
    finally:
        engine.close(clean=False)


def test_a_killed_ray_worker_is_replaced_and_its_run_done_again(tmp_path, alone):
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'shortlist[ray]'")
    engine = make_engine("ray", workers=2)
    assert engine.slots == 2
    assert not engine.cuda

    def is_worker(args):
        return args.startswith("ray::train_timed")

    assert drive_and_kill(engine, tmp_path, is_worker) == alone
    assert not ray.is_initialized()  # the local cluster was let go


def test_ray_absent_is_one_clear_line(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'ray is not installed: pip install "shortlist\[ray\]"'):
        make_engine("ray")


def test_engines_by_name():
    assert isinstance(make_engine("fleet", "cpu"), Local)
    with pytest.raises(InputError, match="unknown engine 'rai': did you mean 'ray'"):
        make_engine("rai")
    with pytest.raises(InputError, match="processes: expected at least 1, got 0"):
        make_engine("processes", workers=0)
    with pytest.raises(InputError, match="device 'cuda:99' cannot be used"):
        make_engine("fleet", "cuda:99")
    made = make_engine("fleet", "cpu", workers=2)
    assert isinstance(made, Processes)
    made.close()

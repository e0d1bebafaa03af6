"""Where batches are trained: in this process, in local processes, or by Ray's workers. Only the driver stores rows."""

import importlib
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, Protocol

from shortlist.errors import InputError, unknown_name
from shortlist.internal.extras import named_extra
from shortlist.internal.orphans import end_with_parent
from shortlist.study.run.batches import RunBatch
from shortlist.study.run.ledger import Row
from shortlist.study.run.worker import train_batch
from shortlist.training import Engine

ENGINES = ("fleet", "processes", "ray")
RETRIES = 3
"""How often a batch is tried again when its worker dies."""


class Finished(NamedTuple):
    """A batch that came back."""

    number: int
    rows: Sequence[Row]
    seconds: float


class StudyEngine(Protocol):
    """Takes batches and returns their rows, in whatever order they end."""

    cuda: bool
    slots: int
    """Batches at a time."""

    def submit(self, number: int, batch: RunBatch) -> None:
        """Begin a batch; `number` names it."""

    def wait(self) -> Finished:
        """The next batch that ends."""

    def close(self, clean: bool = True) -> None:
        """End the workers; at once where `clean` is false."""


class Local:
    """This process: one batch at a time, its runs trained together where there is a GPU."""

    slots = 1

    def __init__(self, device: str) -> None:
        self.cuda = Engine(device).resolve(0).device.startswith("cuda")
        self._waiting: tuple[int, RunBatch] | None = None

    def submit(self, number: int, batch: RunBatch) -> None:
        """Remember it."""
        self._waiting = (number, batch)

    def wait(self) -> Finished:
        """Do it."""
        assert self._waiting is not None
        (number, batch), self._waiting = self._waiting, None
        return Finished(number, *train_timed(batch))

    def close(self, clean: bool = True) -> None:
        """Nothing to do."""


class Processes:
    """Local processes on the CPU, one run each at a time; a process that dies is replaced and its run done again."""

    cuda = False

    def __init__(self, count: int) -> None:
        self.slots = count
        self._batches: dict[int, tuple[RunBatch, int]] = {}
        self._futures: dict[Future[tuple[list[Row], float]], int] = {}
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        # spawned: a fork of a process that has used torch's threads can hang
        return ProcessPoolExecutor(
            self.slots, mp_context=multiprocessing.get_context("spawn"), initializer=_set_up_worker
        )

    def submit(self, number: int, batch: RunBatch) -> None:
        """Hand it to the next free process."""
        self._batches[number] = (batch, 0)
        try:
            self._hand_over(number)
        except BrokenProcessPool:  # a worker died since the last wait
            self._begin_again()

    def wait(self) -> Finished:
        """The next that ends; when a worker dies, all that were under way begin again."""
        while True:
            ended, _ = wait(self._futures, return_when=FIRST_COMPLETED)
            future = next(iter(ended))
            try:
                rows, seconds = future.result()
            except BrokenProcessPool:
                self._begin_again()
                continue
            number = self._futures.pop(future)
            del self._batches[number]
            return Finished(number, rows, seconds)

    def _hand_over(self, number: int) -> None:
        batch, _ = self._batches[number]
        self._futures[self._pool.submit(train_timed, batch)] = number

    def _begin_again(self) -> None:
        """Hand everything under way to a new pool."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool, self._futures = self._new_pool(), {}
        for number, (batch, tries) in self._batches.items():
            if tries >= RETRIES:
                raise InputError(f"a worker process died {tries + 1} times on {batch.dataset}: out of memory?")
            self._batches[number] = (batch, tries + 1)
        try:
            for number in self._batches:
                self._hand_over(number)
        except BrokenProcessPool:  # a worker of the new pool has died already
            self._begin_again()

    def close(self, clean: bool = True) -> None:
        """End the processes."""
        for process in () if clean else list(self._pool._processes.values()):
            process.terminate()
        self._pool.shutdown(wait=clean, cancel_futures=True)


class Ray:
    """Ray tasks: one worker per GPU trains a fleet; without GPUs one worker per core trains single runs.

    A worker that dies is replaced by Ray and its batch done again (`RETRIES` times).

    Args:
        workers: batches at a time; as many as the cluster has GPUs (or cores) where not stated.
        address: of a running cluster (`auto` for the one on this machine); a local one is started where not stated.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        with named_extra():
            ray: Any = importlib.import_module("ray")
        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            settings: dict[str, Any] = {"address": address} if address else {"num_cpus": workers}
            local = {} if address else {"include_dashboard": False}
            ray.init(**settings, **local, configure_logging=False, log_to_driver=False)
        owned = ray.cluster_resources()
        gpus = int(owned.get("GPU", 0))
        self.cuda = gpus > 0
        self.slots = max(1, min(workers or 10**6, gpus or int(owned.get("CPU", 1))))
        needs = {"num_gpus": 1} if self.cuda else {"num_cpus": 1}
        self._work = ray.remote(max_retries=RETRIES, **needs)(train_timed)
        self._numbers: dict[Any, int] = {}

    def submit(self, number: int, batch: RunBatch) -> None:
        """Hand it to Ray."""
        self._numbers[self._work.remote(batch)] = number

    def wait(self) -> Finished:
        """The next that ends."""
        ended, _ = self._ray.wait(list(self._numbers), num_returns=1)
        number = self._numbers.pop(ended[0])
        try:
            rows, seconds = self._ray.get(ended[0])
        except self._ray.exceptions.WorkerCrashedError as error:
            raise InputError(f"a Ray worker died {RETRIES + 1} times on the same runs: out of memory?") from error
        return Finished(number, rows, seconds)

    def close(self, clean: bool = True) -> None:
        """Stop the local cluster, if it was started here."""
        if not clean:
            for reference in self._numbers:
                self._ray.cancel(reference, force=True)
        if self._started:
            self._ray.shutdown()


def train_timed(batch: RunBatch) -> tuple[list[Row], float]:
    """The rows of a batch, and how long it took."""
    began = time.perf_counter()
    return train_batch(batch), time.perf_counter() - began


def _set_up_worker() -> None:
    """In a worker process: Ctrl-C is for the driver to handle, and one thread is its share of the cores."""
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    torch.set_num_threads(1)


def make_engine(name: str, device: str = "auto", workers: int | None = None, address: str | None = None) -> StudyEngine:
    """An engine by its name."""
    if workers is not None and workers < 1:
        raise InputError(f"processes: expected at least 1, got {workers}")
    if name == "fleet":
        return Processes(workers) if workers and workers > 1 and not Local(device).cuda else Local(device)
    if name == "processes":
        return Processes(workers or 2)
    if name == "ray":
        return Ray(workers, address)
    raise unknown_name("engine", name, ENGINES)

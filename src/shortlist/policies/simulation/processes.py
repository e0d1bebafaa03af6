"""Does the runs of a comparison: one after another, several at a time in processes, or on a Ray cluster."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, NamedTuple, Protocol

from shortlist.errors import InputError
from shortlist.internal.cluster import RETRIES, cluster
from shortlist.internal.orphans import end_with_parent
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.simulation.simulate import Curve, Point, Tick


class Run(NamedTuple):
    """One way to label, with one seed."""

    way: str
    seed: int


class Player(Protocol):
    """Whoever can do a run (`economy.Comparison`)."""

    def play(self, run: Run, data: LoopData, tick: Tick) -> Curve:
        """Do the run, calling `tick` after every training."""


Told = Callable[[Run, Point], None]
_shared: tuple[Any, ...] = ()
"""In a process of its own: the player, the data, and the queue that takes its points."""
SECONDS = 0.2
"""Seconds between two looks into that queue."""


def play(
    runs: Sequence[Run], player: Player, data: LoopData, tick: Told, jobs: int, ray: str | None = None
) -> Iterator[tuple[Run, Curve]]:
    """Each run with its curve, in the order in which they end; on a Ray cluster if its address is given."""
    if ray is not None:
        yield from _play_on_ray(runs, player, data, tick, ray)
        return
    if jobs == 1 or len(runs) < 2:
        for run in runs:
            yield run, player.play(run, data, partial(tick, run))
        return
    yield from _play_in_processes(runs, player, data, tick, jobs)


def _play_in_processes(
    runs: Sequence[Run], player: Player, data: LoopData, tick: Told, jobs: int
) -> Iterator[tuple[Run, Curve]]:
    context = multiprocessing.get_context("spawn")  # a fork would inherit locks that other threads hold
    told = context.SimpleQueue()
    pool = ProcessPoolExecutor(min(jobs, len(runs)), context, initializer=_begin, initargs=(player, data, told))
    try:
        futures = {pool.submit(_play, run): run for run in runs}
        left = set(futures)
        while left:
            ended, left = wait(left, timeout=SECONDS, return_when=FIRST_COMPLETED)
            while not told.empty():
                tick(*told.get())
            for future in ended:
                yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise InputError("a process that simulated a run was killed: out of memory? Try fewer --jobs") from error
    finally:
        processes = list((pool._processes or {}).values())  # a pool that is shut down no longer knows them
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _play_on_ray(
    runs: Sequence[Run], player: Player, data: LoopData, tick: Told, address: str
) -> Iterator[tuple[Run, Curve]]:
    """As many runs at a time as the cluster has cores; the points of a run come when it has ended."""
    with cluster(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_play_alone)
        shared = ray.put((player, data))
        left = {task.remote(shared, run): run for run in runs}
        while left:
            ended, _ = ray.wait(list(left), num_returns=1)
            try:
                run, curve = left.pop(ended[0]), ray.get(ended[0])
            except ray.exceptions.RayTaskError as error:  # its message is a traceback of many lines
                raise error.cause from error
            except ray.exceptions.WorkerCrashedError as error:
                raise InputError(f"a Ray worker died {RETRIES + 1} times on the same run: out of memory?") from error
            for point in curve.points:
                tick(run, point)
            yield run, curve


def _play_alone(shared: tuple[Player, LoopData], run: Run) -> Curve:
    player, data = shared
    return player.play(run, data, lambda _: None)


def _begin(*shared: Any) -> None:
    global _shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the command, which ends its processes
    os.environ["OMP_NUM_THREADS"] = "1"  # the other cores are for the other runs
    _shared = shared
    end_with_parent()


def _play(run: Run) -> Curve:
    player, data, told = _shared
    curve: Curve = player.play(run, data, lambda point: told.put((run, point)))
    return curve

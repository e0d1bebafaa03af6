"""How many threads multiply matrices: one, unless the matrices are large; large ones are cut among the cores.

By default each BLAS library takes all cores, and its threads wait busily for each other. On matrices of a thousand rows
that gains little if the cores are free, and costs most of the time if they are not, or if numpy and scipy, each with a
BLAS of its own, take turns: 2,400 items of 77 classes took nine to twenty times the processor time of one thread. The
live trainer is started with one thread anyway.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Part = TypeVar("Part")
Made = TypeVar("Made")

LARGE = 10**9
"""Products of so many multiplications are worth several threads: one core takes some 20 milliseconds for them."""


@contextmanager
def few_threads(work: int = 0) -> Iterator[None]:
    """Limit BLAS to one thread inside the block, unless one product takes `work` >= LARGE multiplications.

    This holds for the whole process and for the libraries that are loaded by then. It never adds threads.
    """
    if work >= LARGE:
        yield
        return
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

    with threadpool_limits(1, user_api="blas"):
        yield


def spread(make: Callable[[Part], Made], parts: Iterable[Part], work: int) -> list[Made]:
    """[make(part) for part in parts], on all cores if it takes `work` >= LARGE multiplications in all.

    The work between two products then runs on all cores as well, and no thread waits for another: on two cores that
    takes half the processor time of a BLAS with two threads (40,000 items, 400 features, 1,000 classes).
    """
    if work < LARGE:
        return [make(part) for part in parts]
    with few_threads(), ThreadPoolExecutor(num_threads()) as pool:
        return list(pool.map(make, parts))


def num_threads() -> int:
    """The number of cores that this process may use, or OMP_NUM_THREADS if that is less."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, max(int(stated), 1)) if stated.isdigit() else cores

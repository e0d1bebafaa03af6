"""How many threads multiply matrices: one, unless the matrices are large.

By default each BLAS library takes all cores, and its threads wait busily for each other. On matrices of a thousand rows
that gains little where the cores are free and costs most of the time where they are not, or where numpy and scipy, each
with a BLAS of its own, take turns: 2,400 items of 77 classes took nine to twenty times the processor time of one
thread. The live trainer is started with one thread anyway.
"""

from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 10**9
"""Multiplications in one product, from which on more threads are worth it: some 20 milliseconds of one core."""


@contextmanager
def few_threads(work: int = 0) -> Iterator[None]:
    """One thread for the products of the block, all that there were where one product takes `work` >= LARGE steps.

    Counts for the whole process, for the libraries loaded by then. Fewer than were asked for, never more.
    """
    if work >= LARGE:
        yield
        return
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

    with threadpool_limits(1, user_api="blas"):
        yield

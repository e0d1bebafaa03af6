"""Figures that all processes of a server see: counters, and the buckets of the limits, in shared memory.

Each process counts in a row of its own, so no count is ever lost to another one, and a worker that starts again goes on
with the row of the one that died. Of two processes that use a bucket at the same moment, one may go uncounted: it is a
limit, not a ledger.
"""

import mmap
import os
import time
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator

from shortlist.annotate.problems import TooMany

GROUPS = ("next", "answers", "skips", "undos", "other")
STATUSES = ("2xx", "3xx", "4xx", "5xx")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)  # seconds
ENDED, FAULTS = 0, 1
_COUNTERS = 2
_WIDTH = len(STATUSES) + len(BUCKETS) + 2  # of a group: statuses, buckets and the one above them, seconds
ROW = _COUNTERS + len(GROUPS) * _WIDTH
KEYS = 8192
"""Buckets of a limit; keys beyond share them."""


class Board:
    """One row per process, and two limits."""

    def __init__(self, rows: int = 1, row: int = 0, handle: int | None = None) -> None:
        self.rows, self.row, self.handle = rows, row, handle
        count = rows * ROW + 2 * 2 * KEYS
        self._cells = memoryview(mmap.mmap(-1 if handle is None else handle, 8 * count)).cast("d")
        self.sign_ins = self._cells[rows * ROW : rows * ROW + 2 * KEYS]
        self.submits = self._cells[rows * ROW + 2 * KEYS :]
        self._own = self._cells[row * ROW : (row + 1) * ROW]

    @classmethod
    def shared(cls, rows: int) -> "Board":
        """A board that other processes can open by its `handle`."""
        handle = os.memfd_create("shortlist")
        os.ftruncate(handle, 8 * (rows * ROW + 2 * 2 * KEYS))
        return cls(rows, 0, handle)

    def add(self, cell: int, value: float = 1.0) -> None:
        """Count in this process's row."""
        self._own[cell] += value

    def total(self, cell: int) -> float:
        """The sum over all processes."""
        return sum(self._cells[cell : self.rows * ROW : ROW])

    def note(self, group: int, status: int, seconds: float) -> None:
        """Count a request of this group that was answered."""
        start = _COUNTERS + group * _WIDTH
        self._own[start + min(max(status // 100, 2), 5) - 2] += 1
        self._own[start + len(STATUSES) + bisect_left(BUCKETS, seconds)] += 1
        self._own[start + _WIDTH - 1] += seconds

    def requests(self) -> Iterator[tuple[str, dict[str, float], list[float], float]]:
        """For each group: requests by status, requests in each bucket and above the last, seconds in all."""
        for place, name in enumerate(GROUPS):
            start = _COUNTERS + place * _WIDTH
            values = [self.total(start + k) for k in range(_WIDTH)]
            found = dict(zip(STATUSES, values, strict=False))
            yield name, found, values[len(STATUSES) : -1], values[-1]


class Rate:
    """A bucket per key: `burst` at once, refilled at `per_second`. Two cells each: what was taken, and when."""

    def __init__(
        self, per_second: float, burst: float, cells: "memoryview[float]", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_second, self.burst = per_second, burst
        self._cells, self._clock = cells, clock

    def spend(self, key: int | str) -> None:
        """Take one from the key's bucket; refuse if it is empty."""
        place = 2 * ((key if isinstance(key, int) else zlib.crc32(key.encode())) % KEYS)
        now = self._clock()
        taken = max(0.0, self._cells[place] - (now - self._cells[place + 1]) * self.per_second)
        if taken > self.burst - 1:
            raise TooMany("too_fast", "too many requests: wait a moment and try again")
        self._cells[place], self._cells[place + 1] = taken + 1, now

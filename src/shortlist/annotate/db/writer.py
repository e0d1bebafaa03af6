"""One writer for all requests: those that wait are run in one transaction and share its commit.

Everybody is acknowledged after a durable commit, as if alone. A refusal takes nobody with it, because it comes before
anything is written; after any other error the batch is rolled back, and each of its parts is run alone. On SQLite the
parts are run one after another, on PostgreSQL step by step together; what one person asks for twice is never together.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from shortlist.annotate.db.quick import Quick
from shortlist.annotate.db.steps import Steps
from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import Problem

MAX_PARTS = 64

Value = TypeVar("Value")
Call = Callable[[Quick], Steps[Value]]


class _Part:
    """What one request asks for, and what came of it."""

    def __init__(self, key: int, call: Call[Any]) -> None:
        self.key, self.call = key, call
        self.loop = asyncio.get_running_loop()
        self.future = self.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None
        self.steps: Steps[Any] | None = None

    def begin(self, quick: Quick) -> None:
        """Start, or start again after a batch that failed."""
        self.error, self.steps = None, self.call(quick)

    def step(self, quick: Quick) -> None:
        """Go on to the next stop, or to the end."""
        quick.wrote = False
        try:
            next(self.steps or iter(()))
        except StopIteration as end:
            self.value, self.steps = end.value, None
        except Problem as problem:
            if quick.wrote:
                raise
            self.error, self.steps = problem, None

    def deliver(self) -> None:
        """Wake the request; it may have gone in the meantime."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs what people ask for in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: deque[_Part] = deque()
        self._busy = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")

    def ask(self, key: int, call: Call[Value]) -> "asyncio.Future[Value]":
        """What `call` returns, once it is on the disk. `key`: who asks; of one person, one request at a time."""
        part = _Part(key, call)
        with self._lock:
            self._waiting.append(part)
            idle, self._busy = not self._busy, True
        if idle:
            self._thread.submit(self._work)
        return part.future

    def _work(self) -> None:
        """Until nobody waits."""
        while True:
            with self._lock:
                parts = self._next()
                if not parts:
                    self._busy = False
                    return
            self._run(parts)
            for loop in {part.loop for part in parts}:
                with suppress(RuntimeError):  # the loop was closed
                    loop.call_soon_threadsafe(_deliver, [part for part in parts if part.loop is loop])

    def _next(self) -> list[_Part]:
        """Those who have waited for longest, but nobody twice."""
        found: dict[int, _Part] = {}
        others: list[_Part] = []
        while self._waiting and len(found) < MAX_PARTS:
            part = self._waiting.popleft()
            if part.key in found:
                others.append(part)
            else:
                found[part.key] = part
        self._waiting.extendleft(reversed(others))
        return list(found.values())

    def _run(self, parts: list[_Part], again: bool = False) -> None:
        quick = None
        try:
            with self._store.quick() as quick:
                if len(parts) > 1:
                    quick.hurry()
                quick.together_with = {part.key for part in parts}
                for group in [parts] if quick.folds else [[part] for part in parts]:
                    _run_together(group, quick)
        except BaseException as error:
            if quick is not None and not quick.unsure and not again and (len(parts) > 1 or quick.lost):
                for part in parts:
                    self._run([part], again=True)
                return
            for part in parts:  # a commit that failed may yet have been stored: they must ask again
                part.error = error


def _run_together(parts: list[_Part], quick: Quick) -> None:
    for part in parts:
        part.begin(quick)
    while parts:
        for part in parts:
            part.step(quick)
        parts = [part for part in parts if part.steps is not None]


def _deliver(parts: list[_Part]) -> None:
    for part in parts:
        part.deliver()

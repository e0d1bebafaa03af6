"""One writer for all requests: those that wait are run one after another in one transaction and share its commit.

Everybody is acknowledged after a durable commit, as if alone. A refusal takes nobody with it, because it comes before
anything is written; after any other error the batch is rolled back, and each of its parts is run alone.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import Problem

MAX_PARTS = 64

Value = TypeVar("Value")


class _Part:
    """What one request asks for, and what came of it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.loop = asyncio.get_running_loop()
        self.future = self.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None

    def deliver(self) -> None:
        """Wake the request; it may have gone in the meantime."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs calls that use `store.quick` in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: deque[_Part] = deque()
        self._busy = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")

    def ask(self, call: Callable[[], Value]) -> "asyncio.Future[Value]":
        """What `call` returns, once it is on the disk."""
        part = _Part(call)
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
                parts = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_PARTS))]
                if not parts:
                    self._busy = False
                    return
            self._run(parts)
            for loop in {part.loop for part in parts}:
                with suppress(RuntimeError):  # the loop was closed
                    loop.call_soon_threadsafe(_deliver, [part for part in parts if part.loop is loop])

    def _run(self, parts: list[_Part]) -> None:
        quick = None
        try:
            with self._store.quick() as quick:
                if len(parts) > 1:
                    quick.hurry()
                for part in parts:
                    self._run_one(part, quick)
        except BaseException as error:
            if len(parts) > 1 and not (quick is not None and quick.complete):
                for part in parts:
                    self._run([part])
                return
            for part in parts:  # a commit that failed may yet have been stored: they must ask again
                part.error = error

    @staticmethod
    def _run_one(part: _Part, quick: Any) -> None:
        part.error, quick.wrote = None, False
        try:
            part.value = part.call()
        except Problem as problem:
            if quick.wrote:
                raise
            part.error = problem


def _deliver(parts: list[_Part]) -> None:
    for part in parts:
        part.deliver()

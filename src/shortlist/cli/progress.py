"""A progress bar on stderr for work of more than two seconds; without a terminal, a line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""Seconds before a bar appears."""
EVERY = 30.0
"""Seconds between two lines if there is no terminal."""


class Progress:
    """What is done so far: set by whoever works, shown by a thread of its own.

    Args:
        total: how much there is to do; None while that is not known.
        what: one word for the work.
    """

    def __init__(self, total: float | None, what: str) -> None:
        self.total, self.what, self.note = total, what, ""
        self.done: float = 0
        self.look: Callable[[], float] | None = None
        """If set, called for the amount done instead of reading `done`."""
        self._stop = threading.Event()

    def advance(self, amount: float = 1) -> None:
        """Add to what is done."""
        self.done += amount

    def _write(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(EVERY):
            done = self.look() if self.look else self.done
            share = f" {done / self.total:.0%}" if self.total else ""
            told = f", {self.note}" if self.note else ""
            sys.stderr.write(f"{time.monotonic() - began:.0f} s: {self.what}{share}{told}\n")
            sys.stderr.flush()

    def _show(self) -> None:
        if self._stop.wait(PATIENCE):
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns: list[Any] = [
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        ]
        with Bars(*columns, console=Console(file=sys.stderr), transient=True) as bars:
            task = bars.add_task(self.what, total=self.total, note=self.note)
            while not self._stop.wait(0.3):
                done = self.look() if self.look else self.done
                bars.update(task, total=self.total, completed=done, note=self.note)


@contextmanager
def progress(total: float | None, what: str, quiet: bool = False, lines: bool = False) -> Iterator[Progress]:
    """A progress bar while the block runs; if stderr is no terminal, a line now and then (`lines`) or nothing."""
    shown = Progress(total, what)
    bar = sys.stderr.isatty()
    if quiet or not (bar or lines):
        yield shown
        return
    thread = threading.Thread(target=shown._show if bar else shown._write, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        shown._stop.set()
        thread.join()

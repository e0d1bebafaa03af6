"""Processes that want the same runs share them: each trains what no other has begun.

A begun run is a locked byte in a file beside its ledger. The kernel frees the locks of a process however it ends, so
after `kill -9` others can begin its runs, and nothing is left to tidy up.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from shortlist.errors import InputError
from shortlist.study.plan.grid import PlannedRun
from shortlist.study.run.ledger import Ledger

MOMENT = 1.0
"""Seconds between two looks at runs that others have begun."""


class RunLocks:
    """The runs that this process has begun, and those that others had begun before it.

    Args:
        ledger: where a run's row belongs.
        say: told when nothing is left but to wait.
    """

    def __init__(self, ledger: Callable[[PlannedRun], Ledger], say: Callable[[str], None] = lambda line: None) -> None:
        self.ledger, self.say = ledger, say
        self.elsewhere: list[PlannedRun] = []
        """Runs that other processes had begun when we asked for them."""
        self._files: dict[Path, int] = {}
        self._told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            os.close(file)  # frees the locks

    def begin(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        """The runs that are ours from now on: nobody else has begun them, and nobody has stored them."""
        free: list[PlannedRun] = []
        for run in runs:
            (free if self._lock(run) else self.elsewhere).append(run)
        # looked up with the locks held: whoever had them before has stored the runs by now, or never will
        return self._missing(free)

    def retry(self) -> list[PlannedRun]:
        """The runs that others had begun and nobody has stored yet, which we may now try to begin."""
        runs, self.elsewhere = self._missing(self.elsewhere), []
        return runs

    def wait(self) -> list[PlannedRun]:
        """The same, after a moment: if the others died, their runs are ours."""
        runs = self.retry()
        if runs and not self._told:
            self.say(f"waiting for other processes, which have {len(runs)} of these runs under way")
            self._told = True
        time.sleep(MOMENT if runs else 0)
        return runs

    def _missing(self, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
        for ledger in {ledger.path: ledger for ledger in map(self.ledger, runs)}.values():
            ledger.refresh()
        return [run for run in runs if run.key not in self.ledger(run)]

    def _lock(self, run: PlannedRun) -> bool:
        try:
            fcntl.lockf(self._file(run), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(run))
        except OSError as error:  # on a file system without locks runs may be trained twice, but none is left out
            return error.errno not in (errno.EACCES, errno.EAGAIN)
        return True

    def _file(self, run: PlannedRun) -> int:
        path = self.ledger(run).path.with_suffix(".lock")
        if path not in self._files:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._files[path] = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise InputError(f"{path}: {error.strerror or error}") from error
        return self._files[path]


def _place(run: PlannedRun) -> int:
    """The byte that stands for a run: its key as a number, within the greatest offset of a file."""
    return int(run.key, 16) >> 2

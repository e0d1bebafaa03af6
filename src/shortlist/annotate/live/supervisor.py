"""The server's side thread: keeps the trainer running, takes in what it publishes, stores its figures.

All writing to the database is done here, in the server's process and in small transactions, so the trainer can hold up
nobody.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import insert

from shortlist.annotate.db.schema import Measure
from shortlist.annotate.live.chooser import FOLDER, HISTORY, LiveChooser, LivePlan
from shortlist.annotate.live.items import kind_of
from shortlist.annotate.project.project import Project

POLL_SECONDS = 0.05
PATIENCE = 5.0
BACKOFF = (1.0, 60.0)
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Steward:
    """Watches one trainer and what it publishes."""

    def __init__(self, project: Project, plan: LivePlan) -> None:
        self.project, self.plan = project, plan
        with project.store.read() as connection:
            kind_of(connection)
        self.folder = project.folder / FOLDER
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.chooser = LiveChooser(self.folder, plan)
        self.chooser.refresh()
        self.trainer: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="live", daemon=True)
        self._again_at, self._backoff = 0.0, BACKOFF[0]
        history = self.folder / HISTORY
        self._read_up_to = history.stat().st_size if history.exists() else 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the trainer; waits for neither longer than it must."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)
        if self.trainer is not None:
            _end(self.trainer)

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self._supervise()
                fresh = self.chooser.refresh()
                self._report()
                if fresh:
                    self._backoff = BACKOFF[0]
            except Exception as error:  # the loop must outlive a full disk or a database away for a while
                print(f"live: {type(error).__name__}: {error}".splitlines()[0][:300], file=sys.stderr)
                self._stop.wait(1.0)
            self._stop.wait(POLL_SECONDS)

    def _supervise(self) -> None:
        """Start the trainer; again when it died, sooner or later."""
        if self.trainer is not None and self.trainer.poll() is None:
            return
        if time.monotonic() < self._again_at or self._stop.is_set():
            return
        self._again_at = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, BACKOFF[1])
        if self.trainer is not None:
            _end(self.trainer)
        command = [sys.executable, "-m", "shortlist.annotate.live.trainer", str(self.project.folder)]
        command.append(json.dumps(self.plan.to_dict()))
        self.trainer = subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, **THREADS})

    def _report(self) -> None:
        """Put the trainer's figures where the admin page looks for them."""
        history = self.folder / HISTORY
        if not history.exists() or history.stat().st_size <= self._read_up_to:
            return
        with history.open("rb") as file:
            file.seek(self._read_up_to)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read_up_to += len(whole)
        rows: list[dict[str, Any]] = []
        for line in map(json.loads, whole.splitlines()):
            at = {"at": line["ended"], "answers": line["answers"]}
            rows += [{**at, "name": n, "value": line[n]} for n in ("accuracy", "resolved") if line[n] is not None]
        if rows:
            with self.project.store.write() as connection:
                connection.execute(insert(Measure), rows)


def _end(trainer: "subprocess.Popen[bytes]") -> None:
    if trainer.stdin is not None:
        with suppress(OSError):
            trainer.stdin.close()
    if trainer.poll() is None:
        trainer.terminate()
        try:
            trainer.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            trainer.kill()
            trainer.wait()


@contextmanager
def stewarding(project: Project, plan: LivePlan | None) -> Iterator[Steward | None]:
    """A steward that is stopped in the end; None where there is nothing to train."""
    if plan is None:
        yield None
        return
    steward = Steward(project, plan)
    try:
        yield steward
    finally:
        steward.stop()

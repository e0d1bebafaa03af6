"""A thread of the server that keeps the trainer running, takes in what it publishes and stores its figures.

All writing to the database is done here, in the server's process and in small transactions, so that the trainer keeps
nobody waiting. Of several servers on one PostgreSQL project one trains, and the others take in what it publishes.
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

from shortlist.annotate.db.claim import Claim
from shortlist.annotate.db.schema import Measure
from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.items import kind_of
from shortlist.annotate.live.plan import HISTORY, LivePlan
from shortlist.annotate.project.project import Project

POLL_SECONDS = 0.05
SHOWN = ("accuracy", "resolved", "score")
"""Figures of the trainer of which the admin page has the curve."""
PATIENCE = 2.0
BACKOFF = (1.0, 60.0)
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Supervisor:
    """Watches one trainer and what it publishes; without a plan there is nothing to train."""

    def __init__(self, project: Project, plan: LivePlan | None) -> None:
        self.project, self.folder = project, project.live
        self.plan: LivePlan | None = None
        self.chooser: LiveChooser | None = None
        self.trainer: subprocess.Popen[bytes] | None = None
        self._trained_by: LivePlan | None = None
        self._started = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="live", daemon=True)
        self._again_at, self._backoff = 0.0, BACKOFF[0]
        self._claim = Claim(project.store)
        self.trains: bool | None = None
        """Whether this one trains; None: not known yet."""
        self._read_up_to = 0
        self.change(plan)

    def start(self) -> None:
        """Start the thread, which starts the trainer; where there is no plan yet, as soon as there is one."""
        self._started = True
        if self.plan is not None and not self._thread.is_alive():
            self._thread.start()

    def change(self, plan: LivePlan | None) -> None:
        """Train and choose by this plan from now on; until its first publication, by what was published last."""
        chooser = None
        if plan is not None:
            with self.project.store.read() as connection:
                kind_of(connection)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            chooser = LiveChooser(self.folder, plan)
            chooser.refresh()
        self.plan, self.chooser = plan, chooser
        if self._started:
            self.start()

    def stop(self) -> None:
        """End the thread and the trainer, waiting a few seconds for each at the most."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)
        self._end_trainer()
        self._claim.end()

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                plan, chooser = self.plan, self.chooser
                if plan is not self._trained_by:
                    self._end_trainer()
                    self._trained_by, self._again_at, self._backoff = plan, 0.0, BACKOFF[0]
                if plan is not None:
                    self._look(self._claim.ours())
                    if self.trains:
                        self._supervise(plan)
                        self._report()
                if chooser is not None and chooser.refresh():
                    self._backoff = BACKOFF[0]
            except Exception as error:  # a full disk or a database that is away for a while must not end the loop
                print(f"live: {type(error).__name__}: {error}".splitlines()[0][:300], file=sys.stderr)
                self._stop.wait(1.0)
            self._stop.wait(POLL_SECONDS)

    def _look(self, trains: bool) -> None:
        """Begin to train, or leave it to another server."""
        if trains == self.trains:
            return
        self.trains = trains
        if trains:
            history = self.folder / HISTORY
            self._read_up_to = history.stat().st_size if history.exists() else 0
            return
        why = "another server trains this project's model, or the database was away"
        print(f"live: {why}; this one takes in what is published", file=sys.stderr)
        self._end_trainer()

    def _end_trainer(self) -> None:
        if self.trainer is not None:
            _end(self.trainer)

    def _supervise(self, plan: LivePlan) -> None:
        """Start the trainer, and restart it when it has died, each time after a longer wait."""
        if self.trainer is not None and self.trainer.poll() is None:
            return
        if time.monotonic() < self._again_at or self._stop.is_set():
            return
        self._again_at = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, BACKOFF[1])
        self._end_trainer()
        command = [sys.executable, "-m", "shortlist.annotate.live.trainer", str(self.project.folder)]
        command.append(json.dumps(plan.to_dict()))
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
            rows += [{**at, "name": name, "value": line[name]} for name in SHOWN if line[name] is not None]
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
def supervising(project: Project, plan: LivePlan | None) -> Iterator[Supervisor]:
    """A supervisor that is stopped in the end."""
    supervisor = Supervisor(project, plan)
    try:
        yield supervisor
    finally:
        supervisor.stop()

"""Several processes on one port (PostgreSQL only): workers answer; their parent trains, backs up and watches them.

Workers share the listening socket and a board of counters; everything else that they share is in the database. A worker
that dies is started again; if the parent dies, all stop.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shortlist.annotate.project.project import Project
from shortlist.annotate.web.board import Board
from shortlist.annotate.web.logs import LOGGER
from shortlist.annotate.web.tuning import Live

LOOK_SECONDS = 0.1
STOP_SECONDS = 8.0
AGAIN_SECONDS = 1.0
Told = Callable[[], dict[str, Any]]
WORKER = "shortlist.annotate.web.worker"


class Workers:
    """The children of a server."""

    def __init__(self, project: Project, listener: socket.socket, count: int, told: Told) -> None:
        self.board = Board.shared(count)
        self._listener, self._told = listener, told
        self._always = {"workers": count, "folder": str(project.folder)}
        self._children: list[subprocess.Popen[bytes] | None] = [None] * count
        self._begun = [0.0] * count

    def run(self) -> None:
        """Keep them running until told to stop."""
        try:
            while True:
                for row, child in enumerate(self._children):
                    if child is None or child.poll() is not None:
                        self._start(row, child)
                time.sleep(LOOK_SECONDS)
        finally:
            self.stop()

    def stop(self) -> None:
        """Tell all to stop, and end those that do not."""
        children = [child for child in self._children if child is not None]
        for child in children:
            child.terminate()
        end = time.monotonic() + STOP_SECONDS
        for child in children:
            try:
                child.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _start(self, row: int, dead: "subprocess.Popen[bytes] | None") -> None:
        if dead is not None:
            if time.monotonic() - self._begun[row] < AGAIN_SECONDS:
                return
            LOGGER.error("a worker ended", extra={"fields": {"worker": row, "exit": dead.returncode}})
        assert self.board.handle is not None  # it is shared
        handles = (self._listener.fileno(), self.board.handle)
        told = json.dumps({**self._told(), **self._always, "row": row, "handles": handles})
        command = [sys.executable, "-m", WORKER, told]
        self._begun[row] = time.monotonic()
        self._children[row] = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=handles)


def told_of(address: Any, live: Live) -> Told:
    """What a worker is told when it starts, ready for JSON; the plan is the one in force at that moment."""
    place = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(address).items()}
    return lambda: {"address": place, "live": None if live.plan is None else live.plan.to_dict()}

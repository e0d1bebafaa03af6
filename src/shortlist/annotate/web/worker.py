"""One of several processes that answer on one port; started by `workers`, told what to do by its argument."""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shortlist.annotate.live.chooser import LiveChooser
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.live.supervisor import POLL_SECONDS
from shortlist.annotate.project.project import Project
from shortlist.annotate.web.board import Board
from shortlist.annotate.web.logs import LOGGER
from shortlist.annotate.web.serve import Address, run_app


@contextmanager
def following(project: Project, plan: LivePlan | None) -> Iterator[LiveChooser | None]:
    """What the parent's trainer publishes, taken in by a thread."""
    if plan is None:
        yield None
        return
    chooser, stop = LiveChooser(project.live, plan), threading.Event()

    def follow() -> None:
        while not stop.wait(POLL_SECONDS):
            try:
                chooser.refresh()
            except Exception as error:  # a disk that is away for a while must not end the thread
                LOGGER.error("a publication could not be read", extra={"fields": {"error": str(error)[:300]}})
                stop.wait(1.0)

    threading.Thread(target=follow, name="live", daemon=True).start()
    try:
        yield chooser
    finally:
        stop.set()


def _work(told: dict[str, Any]) -> None:
    """One worker."""
    threading.Thread(target=_stop_with_parent, name="parent", daemon=True).start()
    place = told["address"]
    files = {name: Path(place[name]) for name in ("certificate", "key") if place[name] is not None}
    listening, handle = told["handles"]
    board = Board(told["workers"], told["row"], handle)
    live = None if told["live"] is None else LivePlan(**told["live"])
    with (
        Project.open(Path(told["folder"]), share=told["workers"]) as project,
        following(project, live) as chooser,
    ):
        run_app(project, Address(**{**place, **files}), socket.socket(fileno=listening), chooser, board)


def _stop_with_parent() -> None:
    """Standard input ends with the parent, however that ends."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    _work(json.loads(sys.argv[1]))

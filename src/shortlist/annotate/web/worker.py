"""One of several processes that answer on one port: `workers` starts it and says in its argument what to do."""

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.project.project import Project
from shortlist.annotate.web.board import Board
from shortlist.annotate.web.serve import Address, run_app
from shortlist.annotate.web.tuning import Follower, following


def _work(told: dict[str, Any]) -> None:
    """One worker."""
    threading.Thread(target=_stop_with_parent, name="parent", daemon=True).start()
    place = told["address"]
    files = {name: Path(place[name]) for name in ("certificate", "key") if place[name] is not None}
    listening, handle = told["handles"]
    board = Board(told["workers"], told["row"], handle)
    live = None if told["live"] is None else LivePlan(**told["live"])
    with Project.open(Path(told["folder"]), share=told["workers"]) as project:
        follower = Follower(project, live)
        with following(follower):
            run_app(project, Address(**{**place, **files}), socket.socket(fileno=listening), follower, board)


def _stop_with_parent() -> None:
    """Standard input ends with the parent, however that ends."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    _work(json.loads(sys.argv[1]))

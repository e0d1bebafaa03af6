"""`shortlist annotate serve` as a process of its own that imports nothing: it is forked from one that has.

Imports are most of a start, and nearly every test here starts a server.
"""

import multiprocessing
import os
from multiprocessing import forkserver
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_LOADED = ["pytest", "uvicorn.protocols.http.auto", "uvicorn.loops.auto", "shortlist.cli.annotate"]
_CONTEXT.set_forkserver_preload([*_LOADED, "shortlist.annotate.web.serve"])


def prepare() -> None:
    """Begin to import, beside whatever else is begun."""
    forkserver.ensure_running()


def _serve(words: list[str], environment: dict[str, str], out: Any, errors: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out.detach(), 1)
    os.dup2(errors.detach(), 2)
    from shortlist.cli.annotate import app

    app(words)


class ForkedServer:
    """To be ended by kill -9; what it says is in `stdout`."""

    def __init__(self, folder: Path, port: int) -> None:
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading)
        given = (["serve", str(folder), "--port", str(port)], dict(os.environ), DupFd(writing), DupFd(2))
        self._process = _CONTEXT.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        os.close(writing)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self.stdout.close()

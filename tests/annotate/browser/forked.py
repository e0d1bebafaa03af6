"""`shortlist annotate serve` as a process of its own that imports nothing: it is forked from one that has.

Imports are most of a start, and nearly every test here starts a server.
"""

import io
import multiprocessing
import os
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from ..running import Server

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", __name__, "shortlist.cli.annotate", "shortlist.annotate.web.connections"])


def _serve(words: list[str], environment: dict[str, str], out: Any, errors: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out.detach(), 1)
    os.dup2(errors.detach(), 2)
    from shortlist.cli.annotate import app

    app(words)


class Forked:
    """As much of `subprocess.Popen` as a server's tests use."""

    def __init__(self, words: list[str]) -> None:
        reading, writing = os.pipe()
        self.stdout: io.TextIOWrapper = os.fdopen(reading)
        given = (words, dict(os.environ), DupFd(writing), DupFd(2))
        self._process = _CONTEXT.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        os.close(writing)

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def wait(self) -> None:
        self._process.join()
        self._process.close()


class ForkedServer(Server):
    """To be ended by kill -9, as any server."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self.process = Forked(["serve", str(folder), "--port", str(port)])

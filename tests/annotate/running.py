"""A real server in a process of its own, and what is needed to talk to it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-c", "from shortlist.cli.annotate import app; app()"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """`shortlist annotate serve`, to be ended by kill -9."""

    def __init__(self, folder: Path, port: int, *options: str) -> None:
        self.port = port
        command = [*COMMAND, "serve", str(folder), "--port", str(port), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ), text=True)

    def wait(self, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert self.process.poll() is None, "the server ended by itself"
                time.sleep(0.02)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


class Caller:
    """One client with a token, on one kept connection; an OSError or HTTPException when the server is gone."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.connection.request("POST", f"/api/v1{path}", json.dumps(body), self.headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        self.connection.close()

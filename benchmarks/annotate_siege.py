"""What strangers without credentials can do to the annotation server while others work.

Measured on two cores of an AMD EPYC (results/annotate_siege.json): the large body is refused (401) in 0.9 ms and 0.4
MB; half bodies are cut after 15.1 s, slow headers after 10.9; the others wait 31 ms at most. It stops in 3.2 s.

    python benchmarks/annotate_siege.py     # writes results/annotate_siege.json; about a minute

While somebody asks for a question every 10 ms or so, as four annotators in turn (one alone may ask 50 times a second):

- a POST of 60 MB of JSON to /api/v1/items: how soon it is answered, how much the memory grows, how long others wait;
- 500 bodies of which only a part is sent, 1,500 connections that send their headers a byte a second: when all are cut;
- SIGTERM while 50 half-sent bodies wait: when the process is gone.

The attacker runs in the same process as the annotators, on the same two cores as the server, so what others wait for
includes what the attacker takes from them; `quiet` is the same without an attack.
"""

import argparse
import http.client
import itertools
import json
import select
import signal
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from annotate_servers import Caller, Server, about, free_port, make_project, make_tokens

ROOT = Path(__file__).parents[1]
BYTES = 60_000_000
GIVE_UP = 90.0


class Annotators(threading.Thread):
    """Ask again and again, in turn; `waits` are the seconds that each reply took, with the moment."""

    def __init__(self, port: int, tokens: list[str]) -> None:
        super().__init__(daemon=True)
        self.callers = [Caller(port, token) for token in tokens]
        self.waits, self.refused, self.over = list[tuple[float, float]](), list[Any](), threading.Event()

    def run(self) -> None:
        for caller in itertools.cycle(self.callers):
            if self.over.wait(0.01):
                return
            begun = time.monotonic()
            try:
                status, reply = caller.post("/next", {"hold": 1})
            except (OSError, http.client.HTTPException) as error:
                status, reply = 0, repr(error)
                caller.close()
            self.waits.append((begun, time.monotonic() - begun))
            if status != 200:
                self.refused.append((status, reply))

    def longest(self, since: float) -> float:
        """Milliseconds of the longest wait that began after `since`."""
        if self.refused:
            raise SystemExit(f"an annotator was refused: {self.refused[0]}")
        return 1000 * max(took for begun, took in self.waits if begun >= since)


class Peak(threading.Thread):
    """The server's highest memory while it runs."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.server, self.most, self.over = server, server.megabytes(), threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.005):
            self.most = max(self.most, self.server.megabytes())


def head(length: int) -> bytes:
    lines = ["POST /api/v1/items HTTP/1.1", "Host: 127.0.0.1", "X-Shortlist: 1", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP)


def large_body(port: int, server: Server, annotators: Annotators) -> dict[str, float]:
    """One POST of nested empty lists; it is read and written at once, as a browser does."""
    body = b'{"items":[' + b"[]," * (BYTES // 3) + b"[]]}"
    data, peak = memoryview(head(len(body)) + body), Peak(server)
    before = peak.most
    peak.start()
    reply, sent = b"", 0
    with connect(port) as sock:
        sock.setblocking(False)
        begun = time.monotonic()
        while not reply and time.monotonic() - begun < GIVE_UP:
            readable, writable, _ = select.select([sock], [sock] if sent < len(data) else [], [], 1)
            if readable:
                reply = sock.recv(100)
            elif writable:
                sent += sock.send(data[sent : sent + (1 << 20)])
        answered = time.monotonic() - begun
    time.sleep(1)
    peak.over.set()
    return {
        "status": int(reply.split()[1]) if reply else 0,
        "answered_ms": 1000 * answered,
        "memory_before_mb": before,
        "memory_up_mb": peak.most - before,
        "others_wait_ms": annotators.longest(begun),
    }


def besiege(port: int, annotators: Annotators, count: int, first: bytes, drip: bytes) -> dict[str, float | None]:
    """`count` connections that send `first`, then `drip` a byte a second; when the last of them is cut."""
    begun = time.monotonic()
    held = {sock.fileno(): sock for sock in (connect(port) for _ in range(count))}
    for sock in held.values():
        sock.sendall(first)
    poll, last, sent = select.poll(), time.monotonic(), 0
    for number in held:
        poll.register(number, select.POLLIN | select.POLLHUP)
    while held and time.monotonic() - begun < GIVE_UP:
        for number, _ in poll.poll(200):
            try:
                gone = not held[number].recv(1 << 16)
            except OSError:
                gone = True
            if gone:
                poll.unregister(number)
                held.pop(number).close()
        if drip and held and time.monotonic() - last > 1:
            last, sent = time.monotonic(), sent + 1
            for sock in held.values():
                with suppress(OSError):
                    sock.sendall(drip[sent % len(drip) :][:1])
    left = len(held)
    for sock in held.values():
        sock.close()
    cut = None if left else time.monotonic() - begun
    return {"connections": count, "left": left, "all_cut_after_s": cut, "others_wait_ms": annotators.longest(begun)}


def stop(server: Server, port: int) -> float | None:
    """Seconds from SIGTERM to the end of the process, while half-sent bodies wait."""
    held = [connect(port) for _ in range(50)]
    for sock in held:
        sock.sendall(head(1000) + b"{")
    time.sleep(0.5)
    begun = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    try:
        server.process.wait(GIVE_UP)
        return time.monotonic() - begun
    except Exception:
        return None


def measure(bodies: int, headers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder) / "project", None, 1000)
        tokens = make_tokens(project, 4)
        project.close()
        port = free_port()
        server = Server(Path(folder) / "project", port, quiet=True)
        try:
            server.wait()
            annotators = Annotators(port, tokens)
            annotators.start()
            time.sleep(1)
            begun = time.monotonic()
            time.sleep(3)
            found: dict[str, Any] = {"quiet": {"others_wait_ms": annotators.longest(begun)}}
            found["large_body"] = large_body(port, server, annotators)
            found["half_bodies"] = besiege(port, annotators, bodies, head(1000) + b'{"items":', b"")
            found["slow_headers"] = besiege(port, annotators, headers, b"POST /api/v1/items HTTP/1.1\r\nX-A: ", b"a")
            annotators.over.set()
            annotators.join()
            found["stop_s"] = stop(server, port)
        finally:
            server.kill()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, default=500)
    parser.add_argument("--headers", type=int, default=1500)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "annotate_siege.json")
    arguments = parser.parse_args()
    found = measure(arguments.bodies, arguments.headers)
    arguments.out.write_text(json.dumps({**about(), **found}, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

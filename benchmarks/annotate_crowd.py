"""Many simulated annotators in one cheap process, which annotate_load.py runs beside the server that it measures.

    python benchmarks/annotate_crowd.py 8080 0 20 < tokens     # port, seconds to think, seconds; prints JSON

On two cores a heavy client takes from the server the processor that is being measured. So there are no coroutines and
no HTTP library here: one object per connection, called by the event loop (uvloop where it is installed) whenever bytes
come. `client_cpu_ms_per_pair` says what is left.
"""

import asyncio
import json
import random
import resource
import sys
import time
from importlib import import_module
from typing import Any, cast


class Tally:
    """What all annotators saw; times in seconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end
        self.times: dict[str, list[float]] = {"next": [], "answer": [], "pair": []}
        self.errors: list[str] = []
        self.working = 0
        self.done = asyncio.get_running_loop().create_future()

    def leave(self, error: str | None = None) -> None:
        """One annotator is through."""
        if error is not None:
            self.errors.append(error)
        self.working -= 1
        if self.working == 0 and not self.done.done():
            self.done.set_result(None)


class Annotator(asyncio.Protocol):
    """Asks, thinks, answers until the end; the first pause is drawn, so that nobody marches in step."""

    def __init__(self, port: int, token: str, think: float, tally: Tally, seed: int) -> None:
        self.head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        self.think, self.tally, self.dice = think, tally, random.Random(seed)
        self.loop = asyncio.get_running_loop()
        self.path, self.sent_at, self.asked = "", 0.0, 0.0
        self.buffer = b""
        self.left = False
        tally.working += 1

    def itself(self) -> "Annotator":
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.loop.call_later(max(0.0, self.tally.start - time.monotonic()), self.ask)

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave("the connection was lost")

    def ask(self) -> None:
        if time.monotonic() >= self.tally.end:
            self.leave()
        else:
            self.send("next", '{"hold":1}')

    def send(self, path: str, body: str) -> None:
        self.path, self.sent_at = path, time.perf_counter()
        self.transport.write(
            f"POST /api/v1/{path} HTTP/1.1\r\n{self.head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at:].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.buffer = b""
        self.take(int(head[9:12]), body, time.perf_counter() - self.sent_at)

    def take(self, status: int, body: bytes, seconds: float) -> None:
        """A whole reply."""
        reply = json.loads(body)
        if status != 200 or (self.path == "next" and not reply["questions"]):
            self.leave(f"{self.path}: {status} {body[:100]!r}")
        elif self.path == "next":
            self.asked = seconds
            pause = self.dice.uniform(0.5 * self.think, 1.5 * self.think)
            if pause:
                self.loop.call_later(pause, self.answer, reply["questions"][0])
            else:
                self.answer(reply["questions"][0])
        else:
            for name, value in (("next", self.asked), ("answer", seconds), ("pair", self.asked + seconds)):
                self.tally.times[name].append(value)
            self.ask()

    def answer(self, question: dict[str, Any]) -> None:
        choice = self.dice.choice([None, *(shown["class"] for shown in question["shortlist"])])
        body = {"question": question["id"], "attempt": question["attempt"], "answer": choice, "seconds": self.think}
        self.send("answers", json.dumps(body))

    def leave(self, error: str | None = None) -> None:
        if not self.left:
            self.left = True
            self.tally.leave(error)
            self.transport.close()


async def crowd(port: int, tokens: list[str], think: float, seconds: float) -> dict[str, Any]:
    """All annotators at once; those who think begin spread over that time."""
    loop = asyncio.get_running_loop()
    start = time.monotonic() + (0.0 if think else 0.5 + len(tokens) / 500)  # time to connect, where all begin at once
    tally = Tally(start, start + seconds)
    people = [Annotator(port, token, think, tally, seed) for seed, token in enumerate(tokens)]

    async def come(person: Annotator) -> None:
        # a server cuts connections that say nothing for long, so who begins later connects later
        await asyncio.sleep(person.dice.random() * think)
        await loop.create_connection(person.itself, "127.0.0.1", port)

    coming = [asyncio.create_task(come(person)) for person in people]
    before = cpu_seconds()
    await asyncio.gather(*coming)
    await asyncio.wait_for(tally.done, seconds + 120)
    pairs = len(tally.times["pair"])
    return {
        **{"annotators": len(tokens), "think_seconds": think, "seconds": seconds},
        **{"errors": len(tally.errors), "first_error": tally.errors[0] if tally.errors else None},
        **{"pairs": pairs, "pairs_per_second": round(pairs / seconds, 1)},
        **{name: milliseconds(values) for name, values in tally.times.items()},
        "client_cpu_ms_per_pair": round(1000 * (cpu_seconds() - before) / max(pairs, 1), 3),
    }


def milliseconds(values: list[float]) -> dict[str, float]:
    """What half, 95 % and 99 % stay below, and the longest."""
    ordered = sorted(values) or [float("nan")]
    last = len(ordered) - 1
    found = {f"p{share}": ordered[round(last * share / 100)] for share in (50, 95, 99)}
    return {f"{name}_ms": round(1000 * value, 1) for name, value in {**found, "max": ordered[-1]}.items()}


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    port, think, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    try:
        run = import_module("uvloop").run
    except ImportError:
        run = asyncio.run
    print(json.dumps(run(crowd(port, sys.stdin.read().split(), think, seconds))))


if __name__ == "__main__":
    main()

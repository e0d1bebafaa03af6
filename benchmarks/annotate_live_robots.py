"""The robots of annotate_live.py: asyncio on plain sockets, so that the client takes little from what is measured."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from typing import Any

from shortlist.policies.time_model import TimeModel

Request = tuple[str, float, float]
"""What (next, answer, or pair: both), when (seconds since 1970), how long."""
EMPTY_TIMES = 12
TIME = TimeModel()


class Wire:
    """One kept HTTP/1.1 connection."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[bytes, float, float]:
        """The reply, when it was asked for and the seconds it took; raises for any but a 2xx."""
        content = "" if body is None else json.dumps(body)
        request = f"{method} {path} HTTP/1.1\r\n{self.head}Content-Length: {len(content)}\r\n\r\n{content}"
        at, begun = time.time(), time.perf_counter()
        self.writer.write(request.encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        reply = await self.reader.readexactly(length)
        took = time.perf_counter() - begun
        if not lines[0].split()[1].startswith("2"):
            raise RuntimeError(f"{method} {path}: {lines[0]} {reply[:200]!r}")
        return reply, at, took


async def robot(
    wire: Wire, read: Callable[[bytes, str], str], dice: random.Random, end: float, log: list[Request]
) -> None:
    """Ask, look, think, answer, until nothing is left (others may still hold questions that come back) or the end.

    Thinking takes the time model's time, by a factor of 0.5 to 1.5: 1 s, and 0.25 s a class looked at.
    """
    await wire.open()
    await asyncio.sleep(dice.random())
    empty = 0
    while time.monotonic() < end and empty < EMPTY_TIMES:
        reply, at, asked = await wire.ask("POST", "/api/v1/next", {"hold": 1})
        log.append(("next", at, asked))
        questions = json.loads(reply)["questions"]
        if not questions:
            empty += 1
            await asyncio.sleep(0.25)
            continue
        empty, question = 0, questions[0]
        item = question["item"]
        picture = (await wire.ask("GET", item["media"]))[0] if item.get("media") else b""
        name = read(picture, item.get("text") or "")
        names = [shown["name"] for shown in question["shortlist"]]
        looked = names.index(name) + 1 if name in names else len(names)
        seconds = dice.uniform(0.5, 1.5) * (TIME.base + TIME.per_class * looked)
        await asyncio.sleep(seconds)
        answer = question["shortlist"][looked - 1]["class"] if name in names else None
        body = {"question": question["id"], "attempt": question["attempt"], "answer": answer, "seconds": seconds}
        _, at, answered = await wire.ask("POST", "/api/v1/answers", body)
        log += [("answer", at, answered), ("pair", at, asked + answered)]
    wire.writer.close()


async def crowd(
    port: int, tokens: list[str], read: Callable[[bytes, str], str], seed: int, seconds: float | None
) -> tuple[list[Request], list[str]]:
    """One robot for every token; every request, and what went wrong."""
    log: list[Request] = []
    end = time.monotonic() + (seconds or 1e9)
    people = [
        robot(Wire(port, token), read, random.Random(1000 * seed + i), end, log) for i, token in enumerate(tokens)
    ]
    done = await asyncio.gather(*people, return_exceptions=True)
    return log, [repr(error) for error in done if error is not None]

"""The robots of annotate_live.py."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from typing import Any

from annotate_wire import Reply, Wire
from shortlist.policies.time_model import TimeModel

Request = tuple[str, float, float]
"""What (next, answer, or pair: both), when (seconds since 1970), how long."""
EMPTY_TIMES = 12
TIME = TimeModel()


async def ask(wire: Wire, method: str, path: str, body: dict[str, Any] | None = None) -> Reply:
    """A reply; raises for any but a 2xx."""
    reply = await wire.ask(method, path, body)
    if reply.status // 100 != 2:
        raise RuntimeError(f"{method} {path}: {reply.status} {reply.content[:200]!r}")
    return reply


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
        _, reply, at, asked = await ask(wire, "POST", "/api/v1/next", {"hold": 1})
        log.append(("next", at, asked))
        questions = json.loads(reply)["questions"]
        if not questions:
            empty += 1
            await asyncio.sleep(0.25)
            continue
        empty, question = 0, questions[0]
        item = question["item"]
        picture = (await ask(wire, "GET", item["media"])).content if item.get("media") else b""
        name = read(picture, item.get("text") or "")
        names = [shown["name"] for shown in question["shortlist"]]
        looked = names.index(name) + 1 if name in names else len(names)
        seconds = dice.uniform(0.5, 1.5) * (TIME.base + TIME.per_class * looked)
        await asyncio.sleep(seconds)
        answer = question["shortlist"][looked - 1]["class"] if name in names else None
        body = {"question": question["id"], "attempt": question["attempt"], "answer": answer, "seconds": seconds}
        _, _, at, answered = await ask(wire, "POST", "/api/v1/answers", body)
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

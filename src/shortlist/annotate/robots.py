"""A simulated crowd: robots that look at the pictures and answer through the API like any other program.

Standard library only: a robot is a thread with one open connection. Besides what the server tells it, a robot knows
only how to read a picture, from a dictionary of the pictures that it may meet.
"""

import http.client
import io
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 30.0
HELD = 2


@dataclass(frozen=True)
class Manner:
    """How a robot works: seconds to think, and how often it errs.

    Attributes:
        think: mean seconds before an answer; the time of each is drawn (log-normal).
        slip: the chance of a wrong class where the right one is shown.
        miss: the chance of None where the right one is shown.
    """

    think: float = 1.0
    slip: float = 0.02
    miss: float = 0.03


class Gone(Exception):  # noqa: N818 - the server is, not we
    """The server refused a request or no longer answers."""


class Caller:
    """The API over one connection, opened again when it breaks."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._place = (parts.hostname or "127.0.0.1", parts.port)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send again until it gets through: every request may be repeated without harm."""
        content = self._ask("POST", f"/api/v1{path}", json.dumps(body))
        return json.loads(content) if content else None

    def get(self, path: str) -> bytes:
        """The bytes at a path."""
        return self._ask("GET", path, None)

    def _ask(self, method: str, path: str, body: str | None) -> bytes:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if self._connection is None:
                    self._connection = self._make(*self._place, timeout=PATIENCE)
                self._connection.request(method, path, body, self._headers)
                response = self._connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if time.monotonic() > end:
                    raise Gone(f"{method} {path}: {error}") from error
                time.sleep(0.2)
                continue
            if response.status < 300:
                return content
            if response.status != 429 and response.status < 500:
                raise Gone(f"{method} {path}: {response.status} {content[:200]!r}")
            time.sleep(0.5)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass
class Robot:
    """One member of the crowd; `read` says the class name in a picture."""

    url: str
    token: str
    read: Callable[[bytes], str]
    manner: Manner
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)
    answered: int = 0

    def work(self) -> None:
        """Answer until nothing is left or it is told to stop."""
        dice = random.Random(self.seed)
        caller = Caller(self.url, self.token)
        try:
            held = caller.post("/next", {"hold": HELD})["questions"]
            while held and not self.stop.is_set():
                question = held[0]
                name = self.read(caller.get(question["item"]["media"]))
                seconds = self.manner.think * dice.lognormvariate(-0.125, 0.5)  # of mean 1
                if self.stop.wait(seconds):
                    return
                body = {"question": question["id"], "attempt": question["attempt"], "seconds": round(seconds, 3)}
                body["answer"] = decide(question["shortlist"], name, self.manner, dice)
                held = caller.post("/answers", {**body, "hold": HELD})["questions"]
                self.answered += 1
        except Gone:
            return
        finally:
            caller.close()


def decide(shortlist: Sequence[dict[str, Any]], name: str, manner: Manner, dice: random.Random) -> int | None:
    """The class id to answer, or None.

    >>> decide([{"class": 4, "name": "emu"}], "emu", Manner(slip=0, miss=0), random.Random(0))
    4
    >>> decide([{"class": 4, "name": "emu"}], "fox", Manner(slip=0, miss=0), random.Random(0)) is None
    True
    """
    right = [choice["class"] for choice in shortlist if choice["name"] == name]
    chance = dice.random()
    if not right or chance < manner.miss:
        return None
    wrong = [choice["class"] for choice in shortlist if choice["name"] != name]
    if wrong and chance < manner.miss + manner.slip:
        return int(dice.choice(wrong))
    return int(right[0])


def reader(pictures: dict[bytes, str]) -> Callable[[bytes], str]:
    """Reads a picture by its grey values; `pictures` maps those of every possible picture to its class."""
    from PIL import Image

    def read(encoded: bytes) -> str:
        with Image.open(io.BytesIO(encoded)) as image:
            return pictures[image.convert("L").tobytes()]

    return read


def run_crowd(
    url: str, tokens: Sequence[str], read: Callable[[bytes], str], manner: Manner, seed: int = 0
) -> list[Robot]:
    """Let one robot per token work until nothing is left; returns the robots."""
    robots = [Robot(url, token, read, manner, seed + i) for i, token in enumerate(tokens)]
    threads = [threading.Thread(target=robot.work, daemon=True) for robot in robots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return robots

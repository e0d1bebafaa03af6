"""A cheap client of the annotation server, asyncio on plain sockets, so that it hardly disturbs what is measured."""

import asyncio
import json
import time
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What came back, when it was asked for (seconds since 1970) and how long it took."""

    status: int
    content: bytes
    at: float
    seconds: float


class Wire:
    """One kept HTTP/1.1 connection."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Reply:
        content = "" if body is None else json.dumps(body)
        request = f"{method} {path} HTTP/1.1\r\n{self.head}Content-Length: {len(content)}\r\n\r\n{content}"
        at, begun = time.time(), time.perf_counter()
        self.writer.write(request.encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        reply = await self.reader.readexactly(length)
        return Reply(int(lines[0].split()[1]), reply, at, time.perf_counter() - begun)

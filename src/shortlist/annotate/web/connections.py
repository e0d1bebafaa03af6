"""uvicorn's connections with what they lack: a deadline for the headers of a request, a bound on their number."""

import asyncio
import itertools
import resource
from collections.abc import Iterable
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_SECONDS = 10.0
STUCK_SECONDS = 30.0  # of a client that does not read what it asked for
STOP_SECONDS = 3
OPEN_FILES = 16_384
OTHER_FILES = 256  # the database's connections, files being sent

_Base: Any = AutoHTTPProtocol
_SERIALS = itertools.count()


class Connection(_Base):  # type: ignore[misc]
    """One connection. `since`: since when it has been waiting for the headers of a request; None: it is not."""

    since: float | None = None
    serial = 0
    most = 4096
    unsent = 0
    unsent_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Make room for a newcomer: the connection that has been idle for longest is cut."""
        super().connection_made(transport)
        self.since, self.serial = self.loop.time(), next(_SERIALS)
        if len(self.connections) > self.most:
            oldest = min(self.connections, key=Connection.last_use)
            oldest.transport.abort()
            self.connections.discard(oldest)  # it is told of its end only later; more newcomers may be first

    def data_received(self, data: bytes) -> None:
        """Note when the first bytes of a request came."""
        super().data_received(data)
        if not self.idle:
            self.since = None
        elif self.since is None:
            self.since = self.loop.time()

    @property
    def idle(self) -> bool:
        """Whether no request is being read or answered."""
        return self.cycle is None or self.cycle.response_complete

    def last_use(self) -> tuple[float, int]:
        """Sorts connections: the longest idle first, busy ones last.

        The loop's clock stands still while it accepts many at once: these are sorted by the order in which they came.
        """
        if not self.idle:
            return float("inf"), self.serial
        return (self.since if self.since is not None else self.loop.time() - HEADER_SECONDS), self.serial

    def look(self, now: float) -> None:
        """Cut the connection if it has taken too long."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self.unsent:
            self.unsent, self.unsent_since = unsent, now
        slow = self.since is not None and self.idle and now - self.since > HEADER_SECONDS
        if slow or (unsent and now - self.unsent_since > STUCK_SECONDS):
            self.transport.abort()


class Server(uvicorn.Server):
    """uvicorn, looking at its connections once a second."""

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if counter % 10 == 0:
            look_at(self.server_state.connections)
        return await super().on_tick(counter)


def look_at(connections: Iterable[Any]) -> None:
    """Cut those that have taken too long."""
    now = asyncio.get_running_loop().time()
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.look(now)


def allow_files() -> None:
    """Let the process open as many files as it may, up to some thousands, and keep some from the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    Connection.most = max(wanted, soft) - OTHER_FILES if soft != resource.RLIM_INFINITY else OPEN_FILES

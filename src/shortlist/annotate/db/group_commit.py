"""SQLite's one writer, shared: transactions that wait for each other anyway share one commit, hence one fsync.

A commit costs 0.2 ms to 20 ms, whatever is in it. So a writer that sees others waiting leaves the commit to the last
of them and returns only when that is done: everybody is acknowledged after a durable commit, as if alone. Each part is
its own savepoint, so one that fails takes nobody with it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, Engine

MAX_PARTS = 64
MAX_SECONDS = 0.01  # how long the first part may wait for others to join


class _Batch:
    """Parts that are committed together."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.parts = 0
        self.settled = threading.Event()
        self.error: BaseException | None = None


class GroupCommit:
    """Transactions on one connection, one after another, committed in batches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._turn = threading.Lock()  # held while a part runs or the batch is committed
        self._count = threading.Lock()
        self._waiting = 0
        self._batch: _Batch | None = None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One part; on the disk when the block is left without an exception."""
        with self._count:
            self._waiting += 1
        self._turn.acquire()
        with self._count:
            self._waiting -= 1
        try:
            connection = self._begin()
            batch = self._batch
            assert batch is not None  # made by _begin
            with _part(connection):
                yield connection
            batch.parts += 1
        finally:
            self._leave()
        batch.settled.wait()
        if batch.error is not None:
            raise batch.error

    def close(self) -> None:
        """Let go of the connection."""
        with self._turn:
            self._drop()

    def _begin(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        if self._batch is None:
            self._connection.begin()
            self._batch = _Batch()
        return self._connection

    def _leave(self) -> None:
        """Settle the batch, or leave that to a waiting writer, who comes next and decides in the same way."""
        batch = self._batch
        try:
            if batch is None:
                return
            full = batch.parts >= MAX_PARTS or time.monotonic() - batch.begun > MAX_SECONDS
            if self._waiting == 0 or full or not _alive(self._connection):
                self._batch = None
                self._settle(batch)
        finally:
            self._turn.release()

    def _settle(self, batch: _Batch) -> None:
        connection = self._connection
        try:
            if connection is None or not _alive(connection):
                raise OSError("the database rolled the transaction back by itself (is the disk full?)")
            connection.commit()
        except BaseException as error:
            batch.error = error
            self._drop()
        finally:
            batch.settled.set()

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()  # rolls back what is open
            self._connection = None


@contextmanager
def _part(connection: Connection) -> Iterator[None]:
    connection.exec_driver_sql("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if _alive(connection):
            connection.exec_driver_sql("ROLLBACK TO part")
            connection.exec_driver_sql("RELEASE part")
        raise
    connection.exec_driver_sql("RELEASE part")


def _alive(connection: Connection | None) -> bool:
    """Whether the transaction is still open; some errors (a full disk) make SQLite end it."""
    raw = None if connection is None else connection.connection.driver_connection
    return bool(raw is not None and raw.in_transaction)

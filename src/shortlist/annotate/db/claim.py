"""Of several servers on one database, one at a time holds a claim: it does what must be done only once."""

import time

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import func

from shortlist.annotate.db.store import Store

LOOK_SECONDS = 2.0
KEY = 0x73686F72746C69  # of the advisory lock; each database has its own


class Claim:
    """A lock of PostgreSQL's that belongs to a connection: it is released when the process ends, however that happens.

    On SQLite there is only one server, so it has the claim.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection: Connection | None = None
        self._ours, self._look_at = store.is_sqlite, 0.0

    def ours(self) -> bool:
        """Whether we hold it. Every two seconds this tries to get it, or checks that the connection lives."""
        if self._store.is_sqlite or time.monotonic() < self._look_at:
            return self._ours
        self._look_at = time.monotonic() + LOOK_SECONDS
        try:
            if self._connection is None:
                self._connection = self._store.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                self._connection.detach()  # from the pool: the lock goes when this is closed
            taken = select(1) if self._ours else select(func.pg_try_advisory_lock(KEY))
            self._ours = bool(self._connection.execute(taken).scalar())
        except DBAPIError:
            self.end()
            raise
        return self._ours

    def end(self) -> None:
        """Leave it to others."""
        self._ours = self._store.is_sqlite
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

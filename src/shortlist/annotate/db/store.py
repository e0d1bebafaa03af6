"""The database: SQLite (WAL, synchronous=FULL, BEGIN IMMEDIATE for every writer) or PostgreSQL behind one interface."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVarTuple

from sqlalchemy import Connection, Dialect, Engine, Select, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from shortlist.annotate.db.group_commit import GroupCommit
from shortlist.annotate.db.quick import Quick
from shortlist.annotate.db.schema import REVISION
from shortlist.errors import InputError

TRUSTED_SECONDS = 1.0  # a connection used that recently is taken to be alive
BUSY_SECONDS = 30  # how long a writer waits for another process's write (`annotate add` while the server runs)

Columns = TypeVarTuple("Columns")


class Store:
    """Transactions on one database: `with store.write() as connection` is durable when the block is left."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._writing = engine.execution_options(shortlist_write=True)
        # SQLite allows one writer at a time: waiting for a lock is fair and cheap, polling a busy file is neither.
        self._sqlite = GroupCommit(self._writing) if self.is_sqlite else None
        self._open = threading.local()

    @classmethod
    def open(cls, url: str, share: int = 1) -> "Store":
        """Connect, bringing the tables up to date first; `share`: how many processes share its connections."""
        store = cls(_engine(url, share))
        try:
            store._migrate()
        except BaseException as error:
            store.close()
            if isinstance(error, DBAPIError):
                raise InputError(f"cannot open the database {_shown(url)}: {first_line(_cause(error))}") from error
            raise
        return store

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A writing transaction; committed to the disk when the block ends, rolled back when it raises."""
        with self._sqlite.write() if self._sqlite is not None else self._writing.begin() as connection:
            yield connection

    @contextmanager
    def quick(self) -> Iterator[Quick]:
        """The same for many small statements; within another `quick` of this thread, a part of that transaction."""
        found: Quick | None = getattr(self._open, "quick", None)
        if found is not None:
            yield found
            return
        with self.write() as connection:
            self._open.quick = quick = Quick(connection)
            try:
                with quick.together():
                    yield quick
                    quick.commit()
            finally:
                self._open.quick = None
        for effect in quick.after:
            effect()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A reading transaction: one consistent moment of the database."""
        engine = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="REPEATABLE READ")
        with engine.begin() as connection:
            yield connection

    @contextmanager
    def look(self) -> Iterator[Quick]:
        """A connection for one small read, which needs no transaction."""
        engine = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            yield Quick(connection)

    def locked(self, statement: "Select[*Columns]", of: Any, skip: bool = False) -> "Select[*Columns]":
        """`statement` with its rows locked where the database locks rows; SQLite's writer has the whole database."""
        return statement if self.is_sqlite else statement.with_for_update(of=of, skip_locked=skip)

    def check(self, quick: bool = False) -> list[str]:
        """The problems that the database's own integrity check finds; `quick`: without references and indexes."""
        if not self.is_sqlite:
            return []
        try:
            with self.read() as connection:
                way = "quick_check" if quick else "integrity_check"
                found = [row[0] for row in connection.execute(text(f"PRAGMA {way}(20)"))]
                broken = [] if quick else connection.execute(text("PRAGMA foreign_key_check")).all()
        except DBAPIError as error:
            return [first_line(error)]
        return [line for line in found if line != "ok"] + [f"broken reference {tuple(row)}" for row in broken]

    def close(self) -> None:
        """Close every connection."""
        if self._sqlite is not None:
            self._sqlite.close()
        self.engine.dispose()

    def _migrate(self) -> None:
        with self.read() as connection:
            known = inspect(connection).has_table("alembic_version")
            at = connection.execute(text("SELECT version_num FROM alembic_version")).scalar() if known else None
        if at is not None and at > REVISION:  # revisions are numbered: 0001, 0002, ...
            raise InputError(
                f"the database was made by a newer Shortlist (revision {at}, this one knows {REVISION}): upgrade it"
            )
        if at != REVISION:
            from shortlist.annotate.db.migrations import upgrade  # alembic is slow to import and seldom needed

            with self._writing.connect() as connection:
                if self.is_sqlite:  # a table that is copied is away for a moment, and others refer to it
                    raw: Any = connection.connection.driver_connection
                    raw.execute("PRAGMA foreign_keys = OFF")
                connection.detach()  # from the pool: nobody else may use it like that
                with connection.begin():
                    upgrade(connection)


def _engine(url: str, share: int) -> Engine:
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        engine = create_engine(parsed, pool_size=32, max_overflow=64)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = create_engine(parsed, pool_size=-(-16 // share), max_overflow=24 // share)
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "checkout", partial(_check_alive, engine.dialect))
    return engine


def _note_use(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _check_alive(dialect: Dialect, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """PostgreSQL may have been started anew since a connection was used; asking costs as much as a small statement."""
    if time.monotonic() - record.info.get("used", 0.0) < TRUSTED_SECONDS:
        return
    try:
        dialect.do_ping(connection)
    except dialect.loaded_dbapi.Error as error:
        raise DisconnectionError from error


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InputError("the database is not a URL: expected postgresql://user@host/name") from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and parsed.database:
        return parsed
    raise InputError(f"unknown database {backend!r}: expected postgresql://user@host/name (or none, for SQLite)")


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # we issue BEGIN ourselves: the driver's would be deferred
    for pragma in (
        f"busy_timeout = {BUSY_SECONDS * 1000}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",  # what is erased is overwritten; rows are hardly ever deleted otherwise
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that turns from reading to writing ignores busy_timeout: writers begin as such.
    writing = connection.get_execution_options().get("shortlist_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def _shown(url: str) -> str:
    return make_url(url).render_as_string(hide_password=True)


def _cause(error: DBAPIError) -> DBAPIError:
    """The first error of the database; where a full disk ends a migration, alembic fails in clearing up after it."""
    first, one = error, error.__context__
    while one is not None:
        first, one = one if isinstance(one, DBAPIError) else first, one.__context__
    return first


def first_line(error: BaseException) -> str:
    """What went wrong in one line; of a database's error, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]

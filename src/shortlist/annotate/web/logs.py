"""The server's log: one JSON object per line on stderr. No secrets: neither bodies, headers, queries nor SQL values."""

import json
import logging
import sqlite3
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.exc import DBAPIError

from shortlist.annotate.db.store import first_line
from shortlist.annotate.problems import Fault, Problem, Unavailable

LOGGER = logging.getLogger("shortlist.annotate")
LONGEST = 300


class JsonLines(logging.Formatter):
    """A record as one line; of an exception its type, message and place."""

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "message": record.getMessage().strip()}
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = describe(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def start_logging() -> None:
    """Send our lines and the web server's warnings to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("uvicorn", LOGGER.name):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if name == "uvicorn" else logging.INFO)


def log_fault(error: Exception, method: str, path: str) -> None:
    """One line for a request that failed through no fault of its own."""
    where = traceback.extract_tb(error.__traceback__)[-1:]
    place = {"place": f"{where[0].filename}:{where[0].lineno}"} if where else {}
    fields = {"method": method, "path": path[:LONGEST], "error": describe(error), **place}
    LOGGER.error("a request failed", extra={"fields": fields})


def describe(error: BaseException) -> str:
    """The type and the first line of an exception; of a database's, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return f"{type(cause).__name__}: {first_line(cause)}"[:LONGEST]


def refusal_of(error: Exception) -> Problem:
    """What the client is told: whether to come again later, and no more."""
    driver = type(error).__module__.startswith("psycopg")
    if driver or isinstance(error, DBAPIError | sqlite3.Error | OSError):
        return Unavailable("storage", "the server cannot read or store anything just now: it is tried again")
    return Fault("fault", "the server failed on this request; its log says why")

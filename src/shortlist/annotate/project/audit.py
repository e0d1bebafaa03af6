"""What owners and reviewers did, by name: written in the transaction of the deed where there is one."""

import re
import time
from typing import Any, Protocol

from sqlalchemy import Connection, insert, select

from shortlist.annotate.db.schema import Annotator, AuditEntry, Item, LabelClass
from shortlist.annotate.db.store import Store


class Actor(Protocol):
    """Whoever does something: a principal of the web server, or the command line."""

    @property
    def name(self) -> str:
        """Who."""

    @property
    def role(self) -> str:
        """In which role."""


class CommandLine:
    """Whoever has the project's folder is its owner."""

    name, role = "command line", "owner"


def audit(connection: Connection, who: Actor, action: str, subject: str = "", **detail: Any) -> None:
    """Note that `who` did `action` to `subject`, such as "invite" and "annotator 7"; `detail` is kept as JSON.

    Annotators are named by their ids, items and answers too: what is erased must not live on here.
    """
    row = {"at": time.time(), "actor": who.name, "role": who.role, "action": action, "subject": subject}
    connection.execute(insert(AuditEntry).values({**row, "detail": detail}))


def audit_alone(store: Store, who: Actor, action: str, subject: str = "", **detail: Any) -> None:
    """The same in a transaction of its own, for deeds that have theirs already."""
    with store.write() as connection:
        audit(connection, who, action, subject, **detail)


def read_audit(store: Store, before: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
    """The latest entries first, those older than entry `before`.

    `called` is today's name of the annotator, item or class that an entry is about; None if that was erased, and for
    other subjects.
    """
    statement = select(AuditEntry.__table__).order_by(AuditEntry.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(AuditEntry.id < before)
    with store.read() as connection:
        rows = [dict(row) for row in connection.execute(statement).mappings()]
        called = _names(connection, {row["subject"] for row in rows})
    return [{**row, "called": called.get(row["subject"])} for row in rows]


_TABLES: dict[str, Any] = {"annotator": Annotator, "item": Item, "class": LabelClass}


def _names(connection: Connection, subjects: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, table in _TABLES.items():
        ids = [int(match[1]) for match in (re.fullmatch(rf"{kind} ([0-9]{{1,18}})", one) for one in subjects) if match]
        rows = connection.execute(select(table.id, table.name).where(table.id.in_(ids)))
        found |= {f"{kind} {row.id}": row.name for row in rows}
    return found

"""Who may do what: signed invite links, the admin's one-time link, sessions, tokens for programs.

Secrets are random and long, so a plain digest of each is all the database needs to keep.
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from itsdangerous import BadData, URLSafeTimedSerializer
from sqlalchemy import Connection, delete, insert, or_, select, update

from shortlist.annotate.db.schema import Annotator, Credential, annotators
from shortlist.annotate.db.statements import insert_id
from shortlist.annotate.problems import Conflict, NotFound, Unauthorized
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import check_name

DAY = 24 * 3600
SESSION_SECONDS = 30 * DAY
INVITE_SECONDS = 30 * DAY
LINK_SECONDS = DAY
REMEMBER_SECONDS = 5.0
MANY_REMEMBERED = 10_000


@dataclass(frozen=True)
class Principal:
    """Who is asking: an admin, or an annotator with an id. `credential` is what they came with."""

    role: Literal["admin", "annotator"]
    annotator_id: int | None
    name: str
    credential: int


class Auth:
    """Makes and checks credentials of one project."""

    def __init__(self, project: Project, clock: Callable[[], float] = time.time) -> None:
        self.store = project.store
        self.clock = clock
        self._key = hashlib.sha256(b"outbox " + project.secret).digest()
        # Names this project in what browsers keep by host or by address (cookies, pictures): others may be there, too.
        self.tag = hashlib.sha256(b"tag " + project.secret).hexdigest()[:12]
        self._remembered: dict[tuple[str, str], tuple[Principal, float]] = {}
        self._changes = 0  # counts what could make a remembered principal wrong
        self._signer = URLSafeTimedSerializer(project.secret, salt="shortlist.invite")

    # -- annotators and their links ----------------------------------------------------------------------------------

    def invite(self, name: str) -> tuple[int, str]:
        """Add an annotator and return their id and the secret part of their invite link."""
        check_name(name, "annotator")
        with self.store.write() as connection:
            if connection.execute(select(Annotator.id).where(Annotator.name == name)).scalar() is not None:
                raise Conflict("name_taken", f"there is already an annotator {name!r}: make a new link instead")
            annotator_id = insert_annotator(connection, name, self.clock())
        return annotator_id, self._sign(annotator_id, 0)

    def renew_invite(self, annotator_id: int) -> str:
        """A new link (the old one ends) that also lets a removed annotator in again."""
        with self.store.write() as connection:
            serial = connection.execute(
                update(Annotator)
                .where(Annotator.id == annotator_id)
                .values(invite_serial=Annotator.invite_serial + 1, active=True)
                .returning(Annotator.invite_serial)
            ).scalar()
        if serial is None:
            raise NotFound("no_annotator", f"there is no annotator {annotator_id}")
        return self._sign(annotator_id, serial)

    def remove(self, annotator_id: int) -> None:
        """End an annotator's link, sessions and tokens; their answers stay."""
        with self.store.write() as connection:
            gone = {"active": False, "invite_serial": Annotator.invite_serial + 1}
            found = connection.execute(update(Annotator).where(Annotator.id == annotator_id).values(gone)).rowcount
            connection.execute(delete(Credential).where(Credential.annotator_id == annotator_id))
        self._forget()
        if not found:
            raise NotFound("no_annotator", f"there is no annotator {annotator_id}")

    # -- signing in --------------------------------------------------------------------------------------------------

    def admin_link(self) -> str:
        """The secret part of a link that signs one admin in, once."""
        return self._issue("link", "admin", None, "one-time link", LINK_SECONDS)

    def sign_in(self, secret: str) -> tuple[str, str]:
        """Trade the secret of an invite or one-time link for a session; returns the session's secret and the role."""
        now = self.clock()
        with self.store.write() as connection:
            link = (Credential.digest == digest(secret), Credential.kind == "link", Credential.expires_at > now)
            # deleting is what makes it one-time: of two requests one finds the row
            if connection.execute(delete(Credential).where(*link)).rowcount == 1:
                return self._insert(connection, "session", "admin", None, "browser", SESSION_SECONDS), "admin"
            annotator_id = self._invited(connection, secret)
            session = self._insert(connection, "session", "annotator", annotator_id, "browser", SESSION_SECONDS)
            return session, "annotator"

    def sign_out(self, credential: int) -> None:
        """End a session."""
        with self.store.write() as connection:
            connection.execute(delete(Credential).where(Credential.id == credential, Credential.kind == "session"))
        self._forget()

    def who(self, secret: str, kind: str) -> Principal:
        """Whoever holds this session or token."""
        known = self.remembered(secret, kind)
        if known is not None:
            return known
        before, now = self._changes, self.clock()
        with self.store.read() as connection:
            row = connection.execute(
                select(Credential.id, Credential.role, Credential.annotator_id, Credential.expires_at, Annotator.name)
                .join_from(Credential, Annotator, Annotator.id == Credential.annotator_id, isouter=True)
                .where(
                    Credential.digest == digest(secret),
                    Credential.kind == kind,
                    or_(Credential.expires_at.is_(None), Credential.expires_at > now),
                    or_(Annotator.active, Credential.annotator_id.is_(None)),
                )
            ).first()
        if row is None:
            raise Unauthorized("signed_out", "sign in with your link (it may have ended)")
        found = Principal(row.role, row.annotator_id, row.name or "admin", row.id)
        if len(self._remembered) >= MANY_REMEMBERED:
            self._remembered.clear()
        if before == self._changes:
            until = min(now + REMEMBER_SECONDS, row.expires_at or now + REMEMBER_SECONDS)
            self._remembered[digest(secret), kind] = (found, until)
        return found

    def remembered(self, secret: str, kind: str) -> Principal | None:
        """The same without asking the database, for a few seconds; whatever ends a credential here forgets all."""
        found, until = self._remembered.get((digest(secret), kind), (None, 0.0))
        return found if self.clock() < until else None

    def _forget(self) -> None:
        self._changes += 1
        self._remembered.clear()

    def outbox(self, who: Principal) -> str:
        """A name for what a browser keeps for `who` of this project; on one address there may be several of both."""
        return hashlib.blake2b(f"{who.role} {who.annotator_id}".encode(), key=self._key, digest_size=12).hexdigest()

    # -- tokens ------------------------------------------------------------------------------------------------------

    def make_token(self, label: str, annotator_id: int | None) -> str:
        """A token for a program: it acts as an annotator, or as an admin where none is given. Shown once."""
        check_name(label, "label")
        if annotator_id is not None:
            with self.store.read() as connection:
                active = select(Annotator.id).where(Annotator.id == annotator_id, Annotator.active)
                if connection.execute(active).scalar() is None:
                    raise NotFound("no_annotator", f"there is no active annotator {annotator_id}")
        return self._issue("token", "admin" if annotator_id is None else "annotator", annotator_id, label, None)

    def tokens(self) -> list[dict[str, Any]]:
        """Every token, without its secret."""
        columns = (Credential.id, Credential.label, Credential.role, Credential.annotator_id, Credential.created_at)
        with self.store.read() as connection:
            statement = select(*columns).where(Credential.kind == "token").order_by(Credential.id)
            return [dict(row) for row in connection.execute(statement).mappings()]

    def remove_token(self, token_id: int) -> None:
        """End a token."""
        with self.store.write() as connection:
            named = (Credential.id == token_id, Credential.kind == "token")
            if not connection.execute(delete(Credential).where(*named)).rowcount:
                raise NotFound("no_token", f"there is no token {token_id}")
        self._forget()

    # -- parts -------------------------------------------------------------------------------------------------------

    def _sign(self, annotator_id: int, serial: int) -> str:
        return str(self._signer.dumps([annotator_id, serial]))

    def _invited(self, connection: Connection, secret: str) -> int:
        try:
            annotator_id, serial = self._signer.loads(secret, max_age=INVITE_SECONDS)
        except (BadData, ValueError, TypeError) as error:
            raise Unauthorized("bad_link", "this link is not valid or has ended: ask for a new one") from error
        named = (Annotator.id == annotator_id, Annotator.invite_serial == serial, Annotator.active)
        if connection.execute(select(Annotator.id).where(*named)).scalar() is None:
            raise Unauthorized("bad_link", "this link is not valid or has ended: ask for a new one")
        return int(annotator_id)

    def _issue(self, kind: str, role: str, annotator_id: int | None, label: str, seconds: float | None) -> str:
        with self.store.write() as connection:
            return self._insert(connection, kind, role, annotator_id, label, seconds)

    def _insert(
        self, connection: Connection, kind: str, role: str, annotator_id: int | None, label: str, seconds: float | None
    ) -> str:
        secret, now = secrets.token_urlsafe(32), self.clock()
        connection.execute(delete(Credential).where(Credential.expires_at <= now))
        values: dict[str, Any] = {"digest": digest(secret), "kind": kind, "role": role, "annotator_id": annotator_id}
        values |= {"label": label, "created_at": now, "expires_at": None if seconds is None else now + seconds}
        connection.execute(insert(Credential).values(values))
        return secret


def insert_annotator(connection: Connection, name: str, now: float, active: bool = True) -> int:
    """A new annotator with nothing done yet."""
    zero = {"answers": 0, "nones": 0, "skips": 0, "gold_seen": 0, "invite_serial": 0}
    return insert_id(connection, annotators, {"name": name, "active": active, "created_at": now, **zero})


def digest(secret: str) -> str:
    """What the database keeps of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()

"""Who is asking: sessions, and what a session or a token stands for."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, bindparam, delete, func, or_, select

from shortlist.annotate.db.schema import Annotator, Credential, annotators, credentials
from shortlist.annotate.problems import Conflict, Unauthorized
from shortlist.annotate.project.people import DAY, People, digest
from shortlist.annotate.project.project import Project
from shortlist.annotate.web.board import ENDED, Board

SESSION_SECONDS = 30 * DAY
REMEMBER_SECONDS = 5.0
MANY_REMEMBERED = 10_000

_C, _A = credentials.c, annotators.c
_HOLDER = (
    select(_C.id, _C.role, _C.annotator_id, _C.expires_at, func.coalesce(_A.name, _C.label).label("name"))
    .join_from(credentials, annotators, _A.id == _C.annotator_id, isouter=True)
    .where(_C.digest == bindparam("secret"), _C.kind == bindparam("of_kind"))
    .where(or_(_C.expires_at.is_(None), _C.expires_at > bindparam("now")), or_(_A.active, _C.annotator_id.is_(None)))
)


@dataclass(frozen=True)
class Principal:
    """Who is asking: an owner or a reviewer, by name, or an annotator with an id. `credential`: what they came with."""

    role: Literal["owner", "reviewer", "annotator"]
    annotator_id: int | None
    name: str
    credential: int


class Auth:
    """Signs people in and out, and knows whoever comes back."""

    def __init__(self, project: Project, people: People, board: Board | None = None) -> None:
        self.people, self.board = people, board or Board()
        people.on_end = self.forget
        self.store, self.clock = project.store, people.clock
        self._key = hashlib.sha256(b"outbox " + project.secret).digest()
        # Tells projects apart in what browsers keep by host or address (cookies, pictures): there may be others there.
        self.tag = hashlib.sha256(b"tag " + project.secret).hexdigest()[:12]
        # for a few seconds, and only while no credential was ended: (who, until, `ended` at that moment)
        self._remembered: dict[tuple[str, str], tuple[Principal, float, float]] = {}

    def sign_in(self, secret: str, present: Principal | None = None) -> tuple[str, str]:
        """Trade the secret of an invite or one-time link for a session; returns the session's secret and the role.

        If somebody else is `present`, who answers in the same browser, it is refused: a page elsewhere may have led
        them to another person's link, and their answers would be stored under that name.
        """
        link = (Credential.digest == digest(secret), Credential.kind == "link", Credential.expires_at > self.clock())
        with self.store.read() as connection:  # guesses must not cost a write
            if connection.execute(select(Credential.id).where(*link)).scalar() is None:
                self._check_same(connection, self.people.invited(connection, secret), present)
        with self.store.write() as connection:
            # deleting is what makes it one-time: of two requests, one finds the row
            used = connection.execute(delete(Credential).where(*link).returning(Credential.role, Credential.label))
            if (row := used.first()) is not None:
                return self.people.issue(connection, "session", row.role, None, row.label, SESSION_SECONDS), row.role
            annotator_id = self.people.invited(connection, secret)
            session = self.people.issue(connection, "session", "annotator", annotator_id, "browser", SESSION_SECONDS)
            return session, "annotator"

    def _check_same(self, connection: Connection, annotator_id: int, present: Principal | None) -> None:
        if present is not None and present.annotator_id not in (None, annotator_id):
            name = connection.execute(select(Annotator.name).where(Annotator.id == annotator_id)).scalar_one()
            raise Conflict("somebody_else", f"You are {present.name}. Go on as {name}?")

    def sign_out(self, credential: int) -> None:
        """End a session."""
        with self.store.write() as connection:
            connection.execute(delete(Credential).where(Credential.id == credential, Credential.kind == "session"))
        self.people.on_end()

    def forget(self) -> None:
        """Credentials were ended: no process goes by what it remembers."""
        self.board.add(ENDED)

    def cookie_name(self, role: str) -> str:
        """One for annotators and one for the admin page: an owner who tries an invite link here stays an owner.

        And one per project: browsers send the cookies of a host to all of its ports.
        """
        return f"shortlist_{'annotator' if role == 'annotator' else 'admin'}_{self.tag}"

    def identify(self, token: str | None, *sessions: str | None) -> Principal:
        """Whoever holds the token, or else the first session that is still valid."""
        if token is not None:
            return self.who(token, "token")
        problem = Unauthorized("signed_out", "sign in with your link")
        for secret in filter(None, sessions):
            try:
                return self.who(secret, "session")
            except Unauthorized as error:
                problem = error
        raise problem

    def who(self, secret: str, kind: str) -> Principal:
        """Whoever holds this session or token."""
        known = self.remembered(secret, kind)
        if known is not None:
            return known
        ended, now = self.board.total(ENDED), self.clock()
        with self.store.look() as connection:
            row = connection.execute(_HOLDER, {"secret": digest(secret), "of_kind": kind, "now": now}).first()
        if row is None:
            raise Unauthorized("signed_out", "sign in with your link (it may have ended)")
        found = Principal(row["role"], row["annotator_id"], row["name"], row["id"])
        if len(self._remembered) >= MANY_REMEMBERED:
            self._remembered.clear()
        until = min(now + REMEMBER_SECONDS, row["expires_at"] or now + REMEMBER_SECONDS)
        self._remembered[digest(secret), kind] = (found, until, ended)
        return found

    def remembered(self, secret: str, kind: str) -> Principal | None:
        """The same without asking the database, where somebody asked a few seconds ago."""
        found, until, ended = self._remembered.get((digest(secret), kind), (None, 0.0, 0))
        return found if self.clock() < until and ended == self.board.total(ENDED) else None

    def outbox(self, who: Principal) -> str:
        """Names what a browser keeps for `who` in this project; one address may serve several of both."""
        return hashlib.blake2b(f"{who.role} {who.annotator_id}".encode(), key=self._key, digest_size=12).hexdigest()

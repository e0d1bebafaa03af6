"""Annotators, and the secrets that let people and programs in: invite links, the admin's one-time link, tokens.

Secrets are random and long, so the database needs to keep no more than a plain digest of each. What a session lets
somebody do is decided by the web server (`web.auth`).
"""

import hashlib
import re
import secrets
import time
import unicodedata
from collections.abc import Callable
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer
from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.orm import aliased

from shortlist.annotate.db.schema import Annotator, Credential, annotators
from shortlist.annotate.db.statements import insert_id
from shortlist.annotate.problems import Conflict, NotFound, Unauthorized
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import check_name
from shortlist.errors import InputError

DAY = 24 * 3600
INVITE_SECONDS = 30 * DAY
LINK_SECONDS = DAY
STAFF = ("owner", "reviewer")
"""Roles of the admin page: an owner does everything, a reviewer looks at answers and corrects them."""
# what nobody sees: marks of direction, characters without width
_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


class People:
    """The annotators of one project, and what they and the admins come in with."""

    def __init__(
        self,
        project: Project,
        clock: Callable[[], float] = time.time,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = project.store
        self.clock = clock
        self.on_end = on_end
        """Called whenever credentials were ended: whoever remembers one must look again."""
        self._signer = URLSafeTimedSerializer(project.secret, salt="shortlist.invite")

    # -- annotators and their links ----------------------------------------------------------------------------------

    def invite(self, name: str) -> tuple[int, str]:
        """Add an annotator; returns their id and the secret part of their invite link."""
        name = check_person(name)
        with self.store.write() as connection:
            for known in connection.execute(select(Annotator.name)).scalars():
                if _look(known) == _look(name):
                    raise Conflict("name_taken", f"there is already an annotator {known!r}: make a new link instead")
            annotator_id = insert_annotator(connection, name, self.clock())
            mine = select(Annotator.invite_serial).where(Annotator.id == annotator_id)
            serial = connection.execute(mine).scalar_one()
        return annotator_id, self._sign(annotator_id, serial)

    def ensure(self, name: str) -> int:
        """The id of the annotator of this name, added if new."""
        name = check_person(name)
        with self.store.read() as connection:
            known = find_annotator(connection, name)
        return self.invite(name)[0] if known is None else known

    def renew_invite(self, annotator_id: int) -> str:
        """A new link that also lets a removed annotator in again; the old one ends, and so do its sessions."""
        with self.store.write() as connection:
            serial = connection.execute(
                update(Annotator)
                .where(Annotator.id == annotator_id)
                .values(invite_serial=Annotator.invite_serial + 1, active=True)
                .returning(Annotator.invite_serial)
            ).scalar()
            old = (Credential.annotator_id == annotator_id, Credential.kind == "session")
            connection.execute(delete(Credential).where(*old))
        self.on_end()
        if serial is None:
            raise NotFound("no_annotator", f"there is no annotator {annotator_id}")
        return self._sign(annotator_id, serial)

    def invited(self, connection: Connection, secret: str) -> int:
        """The annotator whose invite link has this secret."""
        try:
            (annotator_id, serial), made = self._signer.loads(secret, return_timestamp=True)
            # an age below zero is fine: it is our own link, made before the clock was set back
            if self.clock() - made.timestamp() > INVITE_SECONDS:
                raise BadData("too old")
        except (BadData, ValueError, TypeError) as error:
            raise Unauthorized("bad_link", "this link is not valid or has ended: ask for a new one") from error
        named = (Annotator.id == annotator_id, Annotator.invite_serial == serial, Annotator.active)
        if connection.execute(select(Annotator.id).where(*named)).scalar() is None:
            raise Unauthorized("bad_link", "this link is not valid or has ended: ask for a new one")
        return int(annotator_id)

    def remove(self, annotator_id: int) -> None:
        """End an annotator's link, sessions and tokens; their answers stay."""
        with self.store.write() as connection:
            gone = {"active": False, "invite_serial": Annotator.invite_serial + 1}
            found = connection.execute(update(Annotator).where(Annotator.id == annotator_id).values(gone)).rowcount
            connection.execute(delete(Credential).where(Credential.annotator_id == annotator_id))
        self.on_end()
        if not found:
            raise NotFound("no_annotator", f"there is no annotator {annotator_id}")

    # -- owners and reviewers ----------------------------------------------------------------------------------------

    def admin_link(self, name: str = "owner", role: str = "owner") -> str:
        """The secret part of a link that signs an owner or a reviewer in under this name, once."""
        name = check_person(name)
        if role not in STAFF:
            raise InputError(f"the role {role!r}: expected {' or '.join(STAFF)}")
        with self.store.write() as connection:
            return self.issue(connection, "link", role, None, name, LINK_SECONDS)

    def has_owner(self) -> bool:
        """Whether somebody is signed in as an owner, or a program has an owner's token."""
        with self.store.read() as connection:
            found = select(Credential.id).where(Credential.role == "owner", Credential.kind != "link", self._valid())
            return connection.execute(found.limit(1)).scalar() is not None

    def remove_admin(self, name: str) -> int:
        """End the links, sessions and tokens of an owner or a reviewer; returns how many."""
        with self.store.write() as connection:
            named = (Credential.label == name, Credential.role.in_(STAFF))
            count = connection.execute(delete(Credential).where(*named)).rowcount
        self.on_end()
        if not count:
            raise NotFound("no_admin", f"there is no owner or reviewer {name!r}")
        return int(count)

    # -- sessions ----------------------------------------------------------------------------------------------------

    def sessions(self, like: int | None = None) -> list[dict[str, Any]]:
        """Every session, the newest first; or those of whoever has the session (or token) `like`."""
        columns = (Credential.id, Credential.role, Credential.annotator_id, Credential.created_at)
        name = func.coalesce(Annotator.name, Credential.label).label("name")
        statement = (
            select(*columns, Credential.expires_at, name)
            .join_from(Credential, Annotator, Annotator.id == Credential.annotator_id, isouter=True)
            .where(Credential.kind == "session", self._valid())
            .order_by(Credential.id.desc())
        )
        with self.store.read() as connection:
            if like is not None:
                statement = statement.where(_same_person(like))
            return [dict(row) for row in connection.execute(statement).mappings()]

    def end_session(self, session: int, like: int | None = None) -> None:
        """End a session; with `like`, only one of the same person."""
        named = [Credential.id == session, Credential.kind == "session"]
        with self.store.write() as connection:
            named += [] if like is None else [_same_person(like)]
            count = connection.execute(delete(Credential).where(*named)).rowcount
        self.on_end()
        if not count:
            raise NotFound("no_session", f"there is no session {session}" + ("" if like is None else " of yours"))

    # -- programs ----------------------------------------------------------------------------------------------------

    def make_token(self, label: str, annotator_id: int | None) -> str:
        """A token for a program, which acts as the annotator, or as an owner if none is given. Shown once."""
        check_name(label, "label")
        with self.store.write() as connection:
            if annotator_id is not None:
                active = select(Annotator.id).where(Annotator.id == annotator_id, Annotator.active)
                if connection.execute(active).scalar() is None:
                    raise NotFound("no_annotator", f"there is no active annotator {annotator_id}")
            role = "owner" if annotator_id is None else "annotator"
            return self.issue(connection, "token", role, annotator_id, label, None)

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
        self.on_end()

    def issue(
        self, connection: Connection, kind: str, role: str, annotator_id: int | None, label: str, seconds: float | None
    ) -> str:
        """Store a new credential that is valid for `seconds` (None: until it is removed); returns its secret."""
        secret, now = secrets.token_urlsafe(32), self.clock()
        connection.execute(delete(Credential).where(Credential.expires_at <= now))
        values: dict[str, Any] = {"digest": digest(secret), "kind": kind, "role": role, "annotator_id": annotator_id}
        values |= {"label": label, "created_at": now, "expires_at": None if seconds is None else now + seconds}
        connection.execute(insert(Credential).values(values))
        return secret

    def _valid(self) -> ColumnElement[bool]:
        return or_(Credential.expires_at.is_(None), Credential.expires_at > self.clock())

    def _sign(self, annotator_id: int, serial: int) -> str:
        return str(self._signer.dumps([annotator_id, serial]))


def _same_person(credential: int) -> ColumnElement[bool]:
    """Belonging to the annotator, or the owner or reviewer of that name, who came with this credential."""
    mine = aliased(Credential)
    named = and_(mine.annotator_id.is_(None), Credential.annotator_id.is_(None), mine.label == Credential.label)
    same = or_(mine.annotator_id == Credential.annotator_id, named)
    return exists().where(mine.id == credential, same)


def check_person(name: str) -> str:
    """`name` as it is stored, if people can tell it from others: no unseen characters, single spaces."""
    if _UNSEEN.search(name):
        raise InputError(f"the name {name[:40]!r}: expected one without invisible characters")
    return check_name(" ".join(unicodedata.normalize("NFC", name).split(" ")).strip(), "name")


def _look(name: str) -> str:
    """The same for names that look the same."""
    seen = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    return " ".join(seen.casefold().split())


def find_annotator(connection: Connection, name: str) -> int | None:
    """The id of the annotator of this name."""
    return connection.execute(select(Annotator.id).where(Annotator.name == name)).scalar()


def insert_annotator(connection: Connection, name: str, now: float, active: bool = True) -> int:
    """Store a new annotator who has done nothing yet."""
    zero = {"answers": 0, "nones": 0, "skips": 0, "gold_seen": 0}
    # by chance: in a restored backup the id of whoever was erased may be given again, and their link must not work then
    serial = {"invite_serial": secrets.randbits(30)}
    return insert_id(connection, annotators, {"name": name, "active": active, "created_at": now, **zero, **serial})


def digest(secret: str) -> str:
    """What the database keeps of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def join_link(base: str, secret: str) -> str:
    """A link to sign in with. The secret follows the #, so it reaches no log and no other site."""
    return f"{base.rstrip('/')}/join#{secret}"

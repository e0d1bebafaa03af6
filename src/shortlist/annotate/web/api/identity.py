"""Who may come in, and what they did: sessions, owners and reviewers by name, the audit log."""

import socket
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from shortlist.annotate.project.audit import read_audit
from shortlist.annotate.project.erasing import erase_item, erase_person
from shortlist.annotate.project.people import join_link
from shortlist.annotate.web.api.access import Anyone, App, Owner, Services, refusals
from shortlist.annotate.web.api.models import MAX_ID, AdminIn, AuditRow, Erased, LinkOut, Name, SessionRow
from shortlist.annotate.web.limits import is_address

router = APIRouter(tags=["identity"], responses=refusals(401, 403, 404))
Id = Annotated[int, Path(ge=1, le=MAX_ID)]


@router.get("/sessions")
def my_sessions(app: App, who: Anyone) -> list[SessionRow]:
    """The sessions of whoever asks: one per browser in which they have signed in."""
    return [SessionRow(**row, this=row["id"] == who.credential) for row in app.people.sessions(who.credential)]


@router.delete("/sessions/{session}", status_code=204)
def end_my_session(app: App, who: Anyone, session: Id) -> None:
    """End one of one's own sessions, such as that of a browser that was lost."""
    app.people.end_session(session, who.credential)


@router.get("/people/sessions")
def sessions(app: App, who: Owner) -> list[SessionRow]:
    """Everybody's sessions."""
    return [SessionRow(**row, this=row["id"] == who.credential) for row in app.people.sessions()]


@router.delete("/people/sessions/{session}", status_code=204)
def end_session(app: App, who: Owner, session: Id) -> None:
    """End anybody's session. An invite link still lets its annotator in again: a new link ends it."""
    app.people.end_session(session)
    app.audit(who, "end session", f"session {session}")


@router.post("/admin-links", status_code=201)
def admin_link(app: App, who: Owner, request: Request, body: AdminIn | None = None) -> LinkOut:
    """A one-time link for an owner or a reviewer: another person, or another device of one."""
    body = body or AdminIn(name=who.name)
    link = link_to(app, request, app.people.admin_link(body.name, body.role))
    app.audit(who, "make link", body.name, role=body.role)
    return LinkOut(link=link)


@router.delete("/admins/{name}", status_code=204)
def remove_admin(app: App, who: Owner, name: Annotated[Name, Path()]) -> None:
    """End every link, session and token of an owner or a reviewer."""
    app.people.remove_admin(name)
    app.audit(who, "remove admin", name)


@router.delete("/people/{annotator}/data")
def erase_annotator(app: App, who: Owner, annotator: Id) -> Erased:
    """Erase a person and all that they said, for good; what they answered is asked again, of others."""
    count = erase_person(app.project, annotator, who)
    app.people.on_end()
    return Erased(answers=count)


@router.delete("/items/{item}")
def erase_one_item(app: App, who: Owner, item: Id) -> Erased:
    """Erase an item with its picture, sound or text and all that was said about it, for good."""
    return Erased(answers=erase_item(app.project, item, who))


@router.get("/audit")
def audit(
    app: App,
    who: Owner,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[AuditRow]:
    """What owners and reviewers did, the latest first; go on with `before`, the last id seen."""
    return [AuditRow(**row) for row in read_audit(app.project.store, before, limit)]


def link_to(app: Services, request: Request, secret: str) -> str:
    """A link to sign in with, by the address that people open."""
    return join_link(app.public_url or _reached_at(request), secret)


def _reached_at(request: Request) -> str:
    """The address that was asked for, unless the Host is a name that anybody may have made up: then our own."""
    url, own = request.base_url, request.scope.get("server")
    if own is None or is_address(url.hostname or "") or url.hostname in ("localhost", socket.gethostname()):
        return str(url)
    host = f"[{own[0]}]" if ":" in own[0] else own[0]
    return f"{url.scheme}://{host}:{own[1]}"

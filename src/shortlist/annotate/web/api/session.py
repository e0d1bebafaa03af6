"""Signing in and out."""

from contextlib import suppress
from typing import Literal

from fastapi import APIRouter, Request, Response

from shortlist.annotate.problems import Unauthorized
from shortlist.annotate.project.instructions import instructions_of
from shortlist.annotate.web.api.access import (
    AdminCookie,
    AnnotatorCookie,
    App,
    Bearer,
    Services,
    refusals,
)
from shortlist.annotate.web.api.models import SignIn, Who
from shortlist.annotate.web.auth import SESSION_SECONDS, Principal

router = APIRouter(tags=["session"])


@router.post("/session", responses=refusals(401, 403, 409, 429))
def sign_in(app: App, request: Request, response: Response, annotator: AnnotatorCookie, body: SignIn) -> Who:
    """Trade the secret of an invite link or of the admin's one-time link for a session cookie.

    If another annotator is signed in in this browser, it is refused (409) unless `instead` says that it is meant.
    """
    present = None
    if not body.instead:
        with suppress(Unauthorized):
            present = app.auth.identify(None, annotator)
    try:
        secret, role = app.auth.sign_in(body.secret, present)
    except Unauthorized:
        # only failures count, and no valid link waits for them: many people may come from one address, a proxy's
        app.sign_ins.spend(request.client.host if request.client else "")
        raise
    response.set_cookie(
        app.auth.cookie_name(role),
        secret,
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        secure=app.tls,
    )
    return _who(app, app.auth.who(secret, "session"))


@router.get("/session", responses=refusals(401))
def who_am_i(
    app: App,
    annotator: AnnotatorCookie,
    admin: AdminCookie,
    bearer: Bearer,
    role: Literal["annotator", "admin"] = "annotator",
) -> Who:
    """Who is signed in; if the browser has a session of each role, that of `role`."""
    sessions = (admin, annotator) if role == "admin" else (annotator, admin)
    return _who(app, app.auth.identify(bearer.credentials if bearer else None, *sessions))


@router.delete("/session", status_code=204, responses=refusals(401, 403))
def sign_out(
    app: App,
    response: Response,
    annotator: AnnotatorCookie,
    admin: AdminCookie,
    bearer: Bearer,
    role: Literal["annotator", "admin"] = "annotator",
) -> None:
    """End the session; if the browser has one of each role, that of `role`."""
    sessions = (admin, annotator) if role == "admin" else (annotator, admin)
    who = app.auth.identify(bearer.credentials if bearer else None, *sessions)
    app.auth.sign_out(who.credential)
    response.delete_cookie(app.auth.cookie_name(who.role), path="/", httponly=True, samesite="strict", secure=app.tls)


def _who(app: Services, who: Principal) -> Who:
    return Who(
        role=who.role,
        name=who.name,
        title=app.project.settings.title,
        outbox=app.auth.outbox(who),
        instructions=instructions_of(app.project),
        typing=app.queue.typing,
    )

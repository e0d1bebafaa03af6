"""Signing in and out."""

from typing import Literal

from fastapi import APIRouter, Request, Response

from shortlist.annotate.problems import Unauthorized
from shortlist.annotate.project.instructions import instructions_of
from shortlist.annotate.web.api.access import (
    AdminCookie,
    AnnotatorCookie,
    Anyone,
    App,
    Bearer,
    Services,
    cookie_name,
    identify,
    refusals,
)
from shortlist.annotate.web.api.models import SignIn, Who
from shortlist.annotate.web.auth import SESSION_SECONDS, Principal

router = APIRouter(tags=["session"])


@router.post("/session", responses=refusals(401, 403, 429))
def sign_in(app: App, request: Request, response: Response, body: SignIn) -> Who:
    """Trade the secret of an invite link or of the admin's one-time link for a session cookie."""
    client = request.client.host if request.client else ""
    app.sign_ins.check(client)
    try:
        secret, role = app.auth.sign_in(body.secret)
    except Unauthorized:
        app.sign_ins.spend(client)  # only failures count: many people may sign in from one address
        raise
    response.set_cookie(
        cookie_name(app, role),
        secret,
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        secure=app.tls,
    )
    return _who(app, app.auth.who(secret, "session"))


@router.get("/session", responses=refusals(401))
def who_am_i(app: App, who: Anyone) -> Who:
    """Who is signed in."""
    return _who(app, who)


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
    who = identify(app, bearer, *((admin, annotator) if role == "admin" else (annotator, admin)))
    app.auth.sign_out(who.credential)
    response.delete_cookie(cookie_name(app, who.role), path="/", httponly=True, samesite="strict", secure=app.tls)


def _who(app: Services, who: Principal) -> Who:
    return Who(
        role=who.role,
        name=who.name,
        title=app.project.settings.title,
        outbox=app.auth.outbox(who),
        instructions=instructions_of(app.project),
    )

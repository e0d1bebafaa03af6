"""The web app of one project."""

import time
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from shortlist.annotate.db.writer import Writer
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.chooser import Chooser
from shortlist.annotate.queue.search import ClassSearch
from shortlist.annotate.web import views
from shortlist.annotate.web.api import (
    admin,
    answering,
    backups,
    classes,
    data,
    health,
    identity,
    media,
    notes,
    review,
    search,
    session,
    settings,
    uploads,
)
from shortlist.annotate.web.api.access import Services
from shortlist.annotate.web.auth import Auth
from shortlist.annotate.web.board import Board, Rate
from shortlist.annotate.web.dispatch import Dispatch, invalid, refusal
from shortlist.annotate.web.guard import Guard
from shortlist.annotate.web.limits import Limits
from shortlist.annotate.web.tuning import Follower, Live, Tuning
from shortlist.annotate.web.uploads import Uploads
from shortlist.errors import InputError

API = "/api/v1"
ROUTES = (session, answering, notes, search, media, identity, admin, data, review, classes, uploads, settings, backups)
"""The modules of the API."""


def create_app(
    project: Project,
    *,
    limits: Limits | None = None,
    tls: bool = False,
    public_url: str | None = None,
    board: Board | None = None,
    clock: Callable[[], float] = time.time,
    live: Live | None = None,
    chooser: Chooser | None = None,
    **queue_options: Any,
) -> FastAPI:
    """The app with its services; lists are those of `live`, else of `chooser`; the rest are options of `Queue`."""
    limits, people, board = limits or Limits(), People(project, clock), board or Board()
    auth = Auth(project, people, board)
    live = live or Follower(project, None, chooser)
    queue = project.queue(live.chooser, clock=clock, **queue_options)
    app = FastAPI(
        title="Shortlist annotation",
        version="1",
        # the usual documentation pages load scripts from elsewhere; tools need only the document itself
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
    )
    app.state.services = Services(
        project=project,
        queue=queue,
        tuning=Tuning(project, live, queue),
        search=ClassSearch(project.store, queue.chooser),
        people=people,
        auth=auth,
        stats=Stats(project.store),
        uploads=Uploads(project),
        writer=Writer(project.store),
        board=board,
        limits=limits,
        sign_ins=Rate(limits.failed_sign_ins_per_minute / 60, limits.failed_sign_ins_per_minute, board.sign_ins),
        submits=Rate(limits.submits_per_second, 2 * limits.submits_per_second, board.submits),
        tls=tls,
        public_url=public_url,
    )
    for routes in ROUTES:
        app.include_router(routes.router, prefix=API)
    app.include_router(health.router)
    views.add_pages(app)
    _add_refusals(app)
    app.add_middleware(
        Dispatch, services=app.state.services, router=answering.router, prefix=API, endpoints=answering.HOT
    )
    app.add_middleware(Guard, limits=limits, auth=auth, board=board, tls=tls, public_url=public_url)
    return app


def _add_refusals(app: FastAPI) -> None:
    """Every refusal looks the same: {"code", "message"}; but a browser that looks for a page gets a page."""
    missing = views.page(views.render(views.MISSING), 404)

    @app.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> JSONResponse:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def invalid_input(_: Request, error: RequestValidationError) -> JSONResponse:
        return refusal(invalid(error.errors()))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        browser = "text/html" in request.headers.get("accept", "")
        if error.status_code == 404 and browser and not request.url.path.startswith("/api/"):
            return await missing(request)
        content = {"code": "http", "message": str(error.detail)}
        return JSONResponse(content, status_code=error.status_code, headers=error.headers)

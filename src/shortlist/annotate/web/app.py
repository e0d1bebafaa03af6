"""The web app of one project."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from shortlist.annotate.db.writer import Writer
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.search import ClassSearch
from shortlist.annotate.web.api import admin, answering, data, identity, media, search, session
from shortlist.annotate.web.api.access import Services
from shortlist.annotate.web.auth import Auth
from shortlist.annotate.web.dispatch import Dispatch, invalid, refusal
from shortlist.annotate.web.guard import Guard
from shortlist.annotate.web.limits import Limits, Rate
from shortlist.errors import InputError

PAGES = Path(__file__).parent / "pages"
API = "/api/v1"
HOMES = {"/": "annotate.html", "/join": "join.html", "/admin": "admin.html"}
MISSING = "missing.html"


def create_app(
    project: Project,
    *,
    limits: Limits | None = None,
    tls: bool = False,
    public_url: str | None = None,
    clock: Callable[[], float] = time.time,
    **queue_options: Any,
) -> FastAPI:
    """The app with its services; `queue_options` are those of `Queue`."""
    limits, people = limits or Limits(), People(project, clock)
    auth = Auth(project, people)
    queue = project.queue(clock=clock, **queue_options)
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
        search=ClassSearch(project.store, queue.chooser),
        people=people,
        auth=auth,
        stats=Stats(project.store),
        writer=Writer(project.store),
        limits=limits,
        sign_ins=Rate(limits.failed_sign_ins_per_minute / 60, limits.failed_sign_ins_per_minute),
        submits=Rate(limits.submits_per_second, 2 * limits.submits_per_second),
        tls=tls,
        public_url=public_url,
    )
    for routes in (session, answering, search, media, identity, admin, data):
        app.include_router(routes.router, prefix=API)
    templates = Environment(loader=FileSystemLoader(PAGES), autoescape=select_autoescape())
    _add_pages(app, templates)
    _add_refusals(app, templates.get_template(MISSING).render())
    app.add_middleware(
        Dispatch, services=app.state.services, router=answering.router, prefix=API, endpoints=answering.HOT
    )
    app.add_middleware(Guard, limits=limits, auth=auth, tls=tls, public_url=public_url)
    return app


def _add_pages(app: FastAPI, templates: Environment) -> None:
    """The pages are shells without data: they ask the API for what they show."""
    for path, name in HOMES.items():
        html = templates.get_template(name).render()
        app.add_api_route(path, _page(html), include_in_schema=False, response_model=None)
    app.mount("/static", StaticFiles(directory=PAGES / "static"), name="static")


def _page(html: str) -> Callable[[], Awaitable[HTMLResponse]]:
    async def page() -> HTMLResponse:
        return HTMLResponse(html)

    return page


def _add_refusals(app: FastAPI, missing: str) -> None:
    """Every refusal looks the same: {"code", "message"}; but a browser that looks for a page gets a page, `missing`."""

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
            return HTMLResponse(missing, status_code=404)
        content = {"code": "http", "message": str(error.detail)}
        return JSONResponse(content, status_code=error.status_code, headers=error.headers)

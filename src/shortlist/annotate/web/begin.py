"""The page on which somebody without a project makes one from a file, on this machine only.

Its address holds a token, after the #, which no log sees; the page sends it with every request. The Host header must
be this machine's: a page elsewhere whose name was made to point here has another one.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.annotate.problems import Forbidden, Invalid, Problem, TooLarge, Unauthorized
from shortlist.annotate.web import views
from shortlist.annotate.web.api.begin_models import Wishes
from shortlist.annotate.web.dispatch import invalid, refusal
from shortlist.annotate.web.guard import HEADERS
from shortlist.errors import InputError

MAX_UPLOAD = 256 * 1024 * 1024
SMALL_BODY = 4 * 1024 * 1024


class Beginning:
    """What the page asks for: a look at an uploaded file, and a project made from it.

    `look` is given the file and what is known of the wishes, `make` the file and all wishes; `done` is called once the
    project is there.
    """

    def __init__(
        self,
        look: Callable[[Path, Wishes], Any],
        make: Callable[[Path, Wishes], dict[str, str]],
        done: Callable[[], None],
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._look, self._make, self._done = look, make, done
        self._folder = TemporaryDirectory(prefix="shortlist-upload-")
        self._file: Path | None = None

    def close(self) -> None:
        """Remove what was uploaded."""
        self._folder.cleanup()

    def app(self, port: int) -> ASGIApp:
        """The page and its three requests, for a server at `port` of this machine."""
        page = views.page(views.render("begin.html"))
        routes = [
            Route("/begin", page),
            Route("/api/begin/file", self._guarded(self._upload), methods=["POST"]),
            Route("/api/begin/look", self._guarded(self._preview), methods=["POST"]),
            Route("/api/begin/make", self._guarded(self._begin), methods=["POST"]),
            Mount("/static", views.static_files()),
        ]
        missing = views.page(views.render(views.MISSING), 404)
        return _Local(Starlette(routes=[*routes, Route("/{path:path}", missing)]), port)

    def _guarded(self, act: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            try:
                scheme, _, token = request.headers.get("authorization", "").partition(" ")
                if scheme.lower() != "bearer" or not secrets.compare_digest(token.encode(), self.token.encode()):
                    raise Unauthorized("no_token", "open the address that `shortlist annotate` printed")
                found = await act(request)
                return JSONResponse(found.model_dump() if isinstance(found, BaseModel) else found)
            except InputError as error:
                return refusal(error)

        return handle

    async def _upload(self, request: Request) -> Any:
        """Take the file; its name, of which only the ending counts, is in the header X-Name."""
        name = Path(unquote(request.headers.get("x-name", ""))).name
        path = Path(self._folder.name) / f"items{Path(name).suffix.lower()}"
        with path.open("wb") as file:
            async for piece in request.stream():
                if file.tell() + len(piece) > MAX_UPLOAD:
                    raise TooLarge("too_large", f"the file is larger than {MAX_UPLOAD >> 20} MB")
                await run_in_threadpool(file.write, piece)
        found = await run_in_threadpool(self._look, path, Wishes())
        self._file = path
        return found

    async def _preview(self, request: Request) -> Any:
        return await run_in_threadpool(self._look, *await self._wishes(request))

    async def _begin(self, request: Request) -> Any:
        made = await run_in_threadpool(self._make, *await self._wishes(request))
        self._done()
        return made

    async def _wishes(self, request: Request) -> tuple[Path, Wishes]:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > SMALL_BODY:
                raise TooLarge("too_large", f"the request is larger than {SMALL_BODY >> 20} MB")
        if self._file is None:
            raise Invalid("no_file", "no file was uploaded yet")
        try:
            return self._file, Wishes.model_validate_json(bytes(body))
        except ValidationError as error:
            raise invalid(error.errors()) from error


class _Local:
    """ASGI middleware: only requests that name this machine, with the headers of all pages."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the Host, pass on, and put the headers on what comes back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = {**HEADERS, "cache-control": "no-store"}
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in extra.items())]
            await send(message)

        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if host not in self.hosts:
            problem: Problem = Forbidden("wrong_host", f"the host {host[:80]!r}: this page is for this machine only")
            await refusal(problem)(scope, receive, dressed)
            return
        await self.app(scope, receive, dressed)

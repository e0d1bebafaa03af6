"""The page on which somebody without a project makes one from files, on this machine only.

Its address holds a token, after the #, which no log sees; the page sends it with every request. The Host header must
be this machine's: a page elsewhere whose name was made to point here has another one.
"""

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
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
from shortlist.annotate.web.received import MEDIA, place_of, top, unpack
from shortlist.annotate.web.static import PLACE, static_files
from shortlist.errors import InputError

MAX_UPLOAD = 256 * 1024 * 1024
SMALL_BODY = 4 * 1024 * 1024


class Beginning:
    """What the page asks for: a look at an uploaded table, or a folder of pictures and sounds; a project made of it.

    `look` is given the table or folder and what is known of the wishes, `make` the same and all wishes; `done` is
    called once the project is there.
    """

    def __init__(
        self,
        look: Callable[[Path, Wishes], Any],
        make: Callable[[Path, Wishes], dict[str, Any]],
        done: Callable[[], None],
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._look, self._make, self._done = look, make, done
        self._folder = TemporaryDirectory(prefix="shortlist-upload-")
        self._sent = Path(self._folder.name)
        self._found: Path | None = None
        self._name = ""

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
            Mount(PLACE, static_files()),
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
                # whoever chose a file in the browser knows neither where it lies here nor by which name
                where = re.compile(rf"{re.escape(self._folder.name)}/[^/\s]+/(items/)?(\S+?)(: | |$)")
                error.args = (where.sub(lambda found: f"{self._name or found[2]}{found[3]}", str(error)),)
                return refusal(error)

        return handle

    async def _upload(self, request: Request) -> Any:
        """Take a file, whose name is in the header X-Name; after the last of several, look at them."""
        name = unquote(request.headers.get("x-name", ""))
        place, count = (_number(request, word) for word in ("place", "of"))
        self._name = name if count == 1 else ""
        if place == 0:
            self._sent = Path(mkdtemp(dir=self._folder.name))
        pictures, ending = self._sent / "items", Path(name).suffix.lower()
        path = self._sent / f"items{ending}" if count == 1 and ending not in MEDIA else place_of(name, pictures)
        if path is not None:
            await self._store(request, path)
        if place < count - 1:
            return {}
        if ending == ".zip" and path is not None:
            await run_in_threadpool(unpack, path, pictures)
        found = top(pictures) if pictures.is_dir() else path
        if found is None or (ending == ".zip" and found == path):
            raise InputError(f"no picture and no sound among what was sent ({name[:80]!r})")
        look = await run_in_threadpool(self._look, found, Wishes())
        self._found = found
        return look

    async def _store(self, request: Request, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                async for piece in request.stream():
                    if file.tell() + len(piece) > MAX_UPLOAD:
                        raise TooLarge("too_large", f"the file is larger than {MAX_UPLOAD >> 20} MB")
                    await run_in_threadpool(file.write, piece)
        except OSError as error:
            raise InputError(f"{path.name} cannot be stored: {error.strerror}") from error

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
        if self._found is None:
            raise Invalid("no_file", "no file was uploaded yet")
        try:
            return self._found, Wishes.model_validate_json(bytes(body))
        except ValidationError as error:
            raise invalid(error.errors()) from error


def _number(request: Request, word: str) -> int:
    """`place` (from 0) or `of` from the query; without them, it is the only file."""
    said = request.query_params.get(word, "1" if word == "of" else "0")
    if not said.isdecimal():
        raise Invalid("invalid", f"{word}: expected a number")
    return int(said)


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

"""What every request passes before any route.

Every response gets the security headers. Writes from other sites are refused, and so are bodies that are too large or
too slow; strangers may send only small ones. A fault becomes one line in the log and a plain refusal.
"""

import asyncio
import json
import time
from contextlib import suppress
from urllib.parse import urlsplit

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.annotate.problems import Forbidden, Problem, TooLarge, TooSlow
from shortlist.annotate.web.auth import Auth
from shortlist.annotate.web.board import FAULTS, GROUPS, Board
from shortlist.annotate.web.limits import Limits
from shortlist.annotate.web.logs import log_fault, refusal_of

CUSTOM_HEADER = "x-shortlist"
UPLOADS = frozenset(
    f"/api/v1/{name}"
    for name in ("items", "items/gold", "items/media", "import/label-studio", "uploads", "uploads/preview")
)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
LINGER_SECONDS = 2.0
_GROUPS = {f"/api/v1/{name}": place for place, name in enumerate(GROUPS)}
OTHER = len(GROUPS) - 1


class Guard:
    """ASGI middleware; reads each body within the limits, so that no route can forget to check."""

    def __init__(
        self, app: ASGIApp, limits: Limits, auth: Auth, board: Board, tls: bool, public_url: str | None = None
    ) -> None:
        self.app, self.limits, self.auth, self.board = app, limits, auth, board
        # a proxy may not pass on the Host that people asked for; nginx does not unless told to
        self.public_host = urlsplit(public_url or "").netloc
        self.headers = {**HEADERS, **({"strict-transport-security": "max-age=31536000"} if tls else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, read the body, pass on, and put the headers on what comes back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, reply = time.monotonic(), _Reply(scope, send, self.headers)
        try:
            await self._answer(scope, receive, reply)
        finally:
            self.board.note(_GROUPS.get(scope["path"], OTHER), reply.status, time.monotonic() - begun)

    async def _answer(self, scope: Scope, receive: Receive, reply: "_Reply") -> None:
        headers, incoming = Headers(scope=scope), _Incoming(receive)
        try:
            if scope["method"] not in SAFE_METHODS:
                self._check_site(headers)
            body = await self._read(scope["path"], headers, incoming)
        except Problem as problem:
            await reply.refuse(problem, close=True)
            if not isinstance(problem, TooSlow) and "expect" not in headers:  # that one waits for our word to send
                await incoming.drain()
            await reply.end()
            return
        # the server drops the body of a reply to HEAD
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            await self.app(asked, _replay(body, receive), reply.send)
        except Exception as error:  # whatever it is, one line; a traceback per request would fill the disk
            self.board.add(FAULTS)
            log_fault(error, scope["method"], scope["path"])
            if reply.begun:
                raise
            await reply.refuse(refusal_of(error))
            await reply.end()

    def _check_site(self, headers: Headers) -> None:
        """Refuse a writing request that comes neither from our own pages nor from a program."""
        origin = headers.get("origin")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Forbidden("cross_site", "a request from another site")
        if origin is not None and urlsplit(origin).netloc not in (headers.get("host"), self.public_host or None):
            raise Forbidden("cross_site", "a request from another origin")
        # Neither header can be sent by a form or a cross-site script without our consent.
        if CUSTOM_HEADER not in headers and not headers.get("authorization", "").lower().startswith("bearer "):
            raise Forbidden("cross_site", f"the header {CUSTOM_HEADER}: 1 is missing")

    async def _read(self, path: str, headers: Headers, incoming: "_Incoming") -> bytearray:
        """The body. More than a little is read only from those who have credentials, and slowness has an end."""
        limits, stated = self.limits, headers.get("content-length", "0")
        limit, known = min(limits.anonymous_bytes, limits.body_bytes), False
        expected = int(stated) if stated.isdecimal() else 0
        body, begun = bytearray(), asyncio.get_running_loop().time()
        while True:
            if max(expected, len(body)) > limit:
                limit = limit if known else await self._allowance(path, headers)
                known = True
                if max(expected, len(body)) > limit:
                    raise TooLarge("too_large", f"the body is larger than {limit} bytes")
            if not incoming.more:
                return body
            try:
                async with asyncio.timeout_at(begun + limits.body_seconds + len(body) / limits.body_bytes_per_second):
                    body += await incoming.piece()
            except TimeoutError:
                raise TooSlow("too_slow", f"the body did not come within {limits.body_seconds:g} s") from None

    async def _allowance(self, path: str, headers: Headers) -> int:
        """How much whoever is asking may send here; a stranger is refused."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        cookies = cookie_parser(headers.get("cookie", ""))
        sessions = [cookies.get(self.auth.cookie_name(role)) for role in ("admin", "annotator")]
        bearer = token if scheme.lower() == "bearer" else None
        who = await run_in_threadpool(self.auth.identify, bearer, *sessions)
        return self.limits.upload_bytes if path in UPLOADS and who.role == "owner" else self.limits.body_bytes


class _Reply:
    """What goes back, with our headers."""

    def __init__(self, scope: Scope, send: Send, headers: dict[str, str]) -> None:
        self.scope, self._send, self._headers = scope, send, headers
        self.begun, self.status = False, 499  # until there is one: whoever asked has gone

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                headers.setdefault(name, value)
            # scripts are checked each time (mostly: 304), so that old and new ones do not mix after an upgrade
            content = "no-store" if self.scope["path"].startswith("/api/") else "no-cache"
            headers.setdefault("cache-control", content)
        elif self.scope["method"] == "HEAD":
            message = {**message, "body": b""}
        await self._send(message)

    async def refuse(self, problem: Problem, close: bool = False) -> None:
        """All but the end of the reply, at which the connection is closed if `close` says so."""
        body = json.dumps({"code": problem.code, "message": problem.message}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(b"connection", b"close")] if close else []
        await self.send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        await self.send({"type": "http.response.body", "body": b""})


class _Incoming:
    """The body of a request as it comes; `more` until its end."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self.more = receive, True

    async def piece(self) -> bytes:
        """The next bytes."""
        message = await self._receive()
        self.more = message["type"] == "http.request" and message.get("more_body", False)
        return bytes(message.get("body", b""))

    async def drain(self) -> None:
        """Let somebody who is still sending hear a refusal: closing at once would reset the connection under them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while self.more:
                    await self.piece()


def _replay(body: bytearray, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again

"""The door of the app, before any route: headers on every response, no cross-site writes, no oversized bodies."""

import json
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.annotate.web.limits import Limits

CUSTOM_HEADER = "x-shortlist"
UPLOADS = ("/api/v1/items", "/api/v1/import")
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


class _TooLargeError(Exception):
    pass


class Guard:
    """ASGI middleware; reads each body within the limit, so that no route can forget to check."""

    def __init__(self, app: ASGIApp, limits: Limits, tls: bool, public_url: str | None = None) -> None:
        self.app = app
        self.limits = limits
        # a proxy may not pass on the Host that people asked for; nginx does not unless told to
        self.public_host = urlsplit(public_url or "").netloc
        self.headers = {**HEADERS, **({"strict-transport-security": "max-age=31536000"} if tls else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, read the body, pass on, and put the headers on what comes back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                # scripts are checked each time (mostly: 304), so that old and new ones do not mix after an upgrade
                content = "no-store" if scope["path"].startswith("/api/") else "no-cache"
                headers.setdefault("cache-control", content)
            await send(message)

        headers = Headers(scope=scope)
        refusal = None if scope["method"] in SAFE_METHODS else self._cross_site(headers)
        if refusal is not None:
            await _refuse(send_guarded, 403, "cross_site", refusal)
            return
        limit = self.limits.upload_bytes if scope["path"].startswith(UPLOADS) else self.limits.body_bytes
        try:
            body = await _read(headers, receive, limit)
        except _TooLargeError:
            await _refuse(send_guarded, 413, "too_large", f"the body is larger than {limit} bytes")
            return
        await self.app(scope, _replay(body, receive), send_guarded)

    def _cross_site(self, headers: Headers) -> str | None:
        """Why a writing request does not come from our own pages or from a program; None if it does."""
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "a request from another site"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc not in (headers.get("host"), self.public_host or None):
            return "a request from another origin"
        # Neither header can be sent by a form or a cross-site script without our consent.
        if CUSTOM_HEADER not in headers and not headers.get("authorization", "").lower().startswith("bearer "):
            return f"the header {CUSTOM_HEADER}: 1 is missing"
        return None


async def _read(headers: Headers, receive: Receive, limit: int) -> bytes:
    stated = headers.get("content-length", "0")
    if stated.isdecimal() and int(stated) > limit:
        raise _TooLargeError
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > limit:
            raise _TooLargeError
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(send: Any, status: int, code: str, message: str) -> None:
    body = json.dumps({"code": code, "message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

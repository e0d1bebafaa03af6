"""The routes that people wait for, called without the framework's machinery.

FastAPI takes about a millisecond per request for what these routes need: who is asking, how often they have asked, and
a small body. Here the same functions are called with the same arguments. FastAPI still describes them, and answers
whatever is not a POST to one of them.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fastapi import Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute, APIRouter
from pydantic import BaseModel, ValidationError
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from shortlist.annotate.problems import Invalid, Problem
from shortlist.annotate.web.api import access
from shortlist.annotate.web.api.access import Services
from shortlist.errors import InputError

Endpoint = Callable[[Services, int, Any], Awaitable[Response]]


class Dispatch:
    """ASGI middleware behind the guard, which has read the body and puts the headers on what goes back."""

    def __init__(
        self, app: ASGIApp, services: Services, router: APIRouter, prefix: str, endpoints: Iterable[Endpoint]
    ) -> None:
        self.app, self.services = app, services
        paths = {route.endpoint: route.path for route in router.routes if isinstance(route, APIRoute)}
        self.routes: dict[str, tuple[Endpoint, type[BaseModel]]] = {
            prefix + paths[endpoint]: (endpoint, endpoint.__annotations__["body"]) for endpoint in endpoints
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one of the routes, or leave it to the framework."""
        found = self.routes.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await self.app(scope, receive, send)
            return
        endpoint, model = found
        headers = dict(scope["headers"])
        try:
            annotator = await self._submitter(headers)
            body = parse(model, headers, (await receive()).get("body", b""))
            response = await endpoint(self.services, annotator, body)
        except InputError as error:
            response = refusal(error)
        await response(scope, receive, send)

    async def _submitter(self, headers: dict[bytes, bytes]) -> int:
        """The annotator who is asking, held to the rate of submitting."""
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer" and token:
            who = await access.quickly(self.services, token)
        else:
            cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
            sessions = (cookies.get(self.services.auth.cookie_name(role)) for role in ("annotator", "admin"))
            who = await access.quickly(self.services, None, *sessions)
        return await access.submitter(self.services, await access.annotator(who))


def parse(model: type[BaseModel], headers: dict[bytes, bytes], body: bytes) -> BaseModel:
    """The body, if it is what the route takes."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json" and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
        raise Invalid("invalid", "body: expected JSON, and the header content-type: application/json")
    try:
        return model.model_validate_json(bytes(body))
    except ValidationError as error:
        raise invalid(error.errors(), "body") from error


def invalid(errors: Any, *before: str) -> Invalid:
    """The first of the errors that pydantic found, in one line."""
    place = ".".join(str(part) for part in (*before, *errors[0]["loc"]))
    return Invalid("invalid", f"{place}: {errors[0]['msg']}"[:500])


def refusal(error: InputError) -> JSONResponse:
    """Every refusal looks the same: {"code", "message"}."""
    status, code = (error.status, error.code) if isinstance(error, Problem) else (422, "bad_input")
    return JSONResponse({"code": code, "message": str(error)}, status_code=status)

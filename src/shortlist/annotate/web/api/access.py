"""What every route needs: the services of the app, and who is asking."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope

from shortlist.annotate.db.writer import Writer
from shortlist.annotate.problems import Forbidden
from shortlist.annotate.project.audit import audit_alone
from shortlist.annotate.project.people import STAFF, People
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.queue import Queue
from shortlist.annotate.queue.search import ClassSearch
from shortlist.annotate.web.api.models import ErrorOut
from shortlist.annotate.web.auth import Auth, Principal
from shortlist.annotate.web.board import Board, Rate
from shortlist.annotate.web.limits import Limits
from shortlist.annotate.web.logs import LOGGER
from shortlist.annotate.web.tuning import Tuning
from shortlist.annotate.web.uploads import Uploads

_bearer = HTTPBearer(auto_error=False, description="a program's token")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


@dataclass(frozen=True)
class Services:
    """The parts behind the routes."""

    project: Project
    queue: Queue
    tuning: Tuning
    search: ClassSearch
    people: People
    auth: Auth
    stats: Stats
    uploads: Uploads
    writer: Writer
    board: Board
    limits: Limits
    sign_ins: Rate
    submits: Rate
    tls: bool
    public_url: str | None
    looked: dict[str, Any] = field(default_factory=dict)
    """What was looked at a moment ago (`health`)."""

    def log(self, message: str, **fields: Any) -> None:
        """One line in the server's log."""
        LOGGER.error(message, extra={"fields": fields})

    def audit(self, who: Principal, action: str, subject: str = "", **detail: Any) -> None:
        """Note what an owner or a reviewer did, and let them see it."""
        audit_alone(self.project.store, who, action, subject, **detail)
        self.stats.forget()


# Coroutines, because FastAPI runs a plain `def` in a thread, which costs more than most of these do.


async def services(request: Request) -> Services:
    """The app's services."""
    found: Services = request.app.state.services
    return found


App = Annotated[Services, Depends(services)]


async def annotator_cookie(app: App, request: Request) -> str | None:
    """The secret of an annotator's session in this browser."""
    return request.cookies.get(app.auth.cookie_name("annotator"))


async def admin_cookie(app: App, request: Request) -> str | None:
    """The secret of an admin's session in this browser."""
    return request.cookies.get(app.auth.cookie_name("admin"))


AnnotatorCookie = Annotated[str | None, Depends(annotator_cookie)]
AdminCookie = Annotated[str | None, Depends(admin_cookie)]


async def principal(app: App, annotator: AnnotatorCookie, admin: AdminCookie, bearer: Bearer) -> Principal:
    """Whoever is signed in; a token comes before a cookie, an annotator before an admin."""
    return await quickly(app, bearer.credentials if bearer else None, annotator, admin)


async def administrator(app: App, admin: AdminCookie, annotator: AnnotatorCookie, bearer: Bearer) -> Principal:
    """The same, for what only admins may do: an admin before an annotator."""
    return await quickly(app, bearer.credentials if bearer else None, admin, annotator)


async def quickly(app: Services, token: str | None, *sessions: str | None) -> Principal:
    """Whoever holds the token or one of the sessions; in a thread only where the database has to be asked."""
    first = next(filter(None, sessions), "")
    known = app.auth.remembered(first, "session") if token is None else app.auth.remembered(token, "token")
    return known if known is not None else await run_in_threadpool(app.auth.identify, token, *sessions)


Anyone = Annotated[Principal, Depends(principal)]


async def annotator(who: Anyone) -> int:
    """The id of the annotator who is asking."""
    if who.annotator_id is None:
        raise Forbidden("annotators_only", "only an annotator can do this: an admin has no questions")
    return who.annotator_id


async def submitter(app: App, annotator_id: Annotated[int, Depends(annotator)]) -> int:
    """The same, held to the rate of submitting."""
    app.submits.spend(annotator_id)
    return annotator_id


async def owner(who: Annotated[Principal, Depends(administrator)]) -> Principal:
    """The owner who is asking."""
    if who.role != "owner":
        raise Forbidden("owners_only", "only an owner of the project can do this")
    return who


async def reviewer(who: Annotated[Principal, Depends(administrator)]) -> Principal:
    """The reviewer who is asking; whatever reviewers may do, owners may."""
    if who.role not in STAFF:
        raise Forbidden("reviewers_only", "only an owner or a reviewer of the project can do this")
    return who


Submitter = Annotated[int, Depends(submitter)]
Owner = Annotated[Principal, Depends(owner)]
Reviewer = Annotated[Principal, Depends(reviewer)]


class OffLoop(APIRoute):
    """A route whose body may be large: it is parsed and validated in a thread, while the others go on."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The usual handler, given a request whose JSON is the finished model."""
        usual, field = super().get_route_handler(), self.body_field
        model = field.field_info.annotation if field is not None else None
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return usual

        async def handle(request: Request) -> Response:
            parsed = _Parsed(request.scope, request.receive, model)
            try:
                return await usual(parsed)
            except RequestValidationError as error:
                raise RequestValidationError(parsed.problems or error.errors()) from error

        return handle


class _Parsed(Request):
    """`problems`: why the body is not the model; to be told only after FastAPI has looked at who is asking."""

    def __init__(self, scope: Scope, receive: Receive, model: type[BaseModel]) -> None:
        super().__init__(scope, receive)
        self._model = model
        self.problems: list[dict[str, Any]] = []

    async def json(self) -> Any:
        """The body as the route's model."""
        try:
            return await run_in_threadpool(self._model.model_validate_json, await self.body())
        except ValidationError as error:
            self.problems = [{"loc": ("body", *one["loc"]), "msg": one["msg"]} for one in error.errors()[:1]]
            return None


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for the OpenAPI document."""
    return {status: {"model": ErrorOut} for status in (400, 408, 413, 422, *statuses)}

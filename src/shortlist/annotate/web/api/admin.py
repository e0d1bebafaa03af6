"""What an admin does with people: watch, instruct, invite, remove, hand out tokens."""

import socket
from typing import Annotated

from fastapi import APIRouter, Path, Request
from sqlalchemy import func, insert, select

from shortlist.annotate.db.schema import Annotator, Measure
from shortlist.annotate.db.statements import count_classes
from shortlist.annotate.project.instructions import set_instructions
from shortlist.annotate.project.people import join_link
from shortlist.annotate.project.score import read_score
from shortlist.annotate.web.api.access import Admin, App, Services, refusals
from shortlist.annotate.web.api.models import (
    MAX_ID,
    InstructionsIn,
    InviteOut,
    LinkOut,
    MeasureIn,
    NameIn,
    TakenBack,
    TokenIn,
    TokenOut,
    TokenRow,
)
from shortlist.annotate.web.api.status_models import ScoreOut, Status
from shortlist.annotate.web.limits import is_address

router = APIRouter(tags=["admin"], responses=refusals(401, 403, 404, 409))
AnnotatorId = Annotated[int, Path(ge=1, le=MAX_ID)]


@router.get("/status")
def status(app: App, who: Admin) -> Status:
    """Progress, annotators, agreement, seconds, measures; at most a few seconds old."""
    with app.project.store.read() as connection:
        classes = count_classes(connection)
    found = read_score(app.project.live)
    score = None if found is None else ScoreOut(**found)
    return Status(title=app.project.settings.title, classes=classes, score=score, **app.stats.status())


@router.put("/instructions", status_code=204)
def instructions(app: App, who: Admin, body: InstructionsIn) -> None:
    """Replace the instructions; annotators read them when they next open the page. An empty text removes them."""
    set_instructions(app.project, body.text)


@router.post("/annotators", status_code=201)
def invite(app: App, who: Admin, request: Request, body: NameIn) -> InviteOut:
    """Add an annotator; the link signs them in."""
    annotator_id, secret = app.people.invite(body.name)
    return InviteOut(id=annotator_id, link=_link(app, request, secret))


@router.post("/annotators/{annotator}/invite")
def renew_invite(app: App, who: Admin, request: Request, annotator: AnnotatorId) -> InviteOut:
    """A new link; the old one ends."""
    return InviteOut(id=annotator, link=_link(app, request, app.people.renew_invite(annotator)))


@router.delete("/annotators/{annotator}", status_code=204)
def remove(app: App, who: Admin, annotator: AnnotatorId) -> None:
    """Sign an annotator out for good and give their open questions to others; their answers stay."""
    app.people.remove(annotator)
    app.queue.release(annotator)


@router.delete("/annotators/{annotator}/answers")
def take_back(app: App, who: Admin, annotator: AnnotatorId) -> TakenBack:
    """Undo every answer of an annotator, so that it is asked again: of others only, if they were removed."""
    return TakenBack(answers=app.queue.take_back(annotator))


@router.post("/admin-links", status_code=201)
def admin_link(app: App, who: Admin, request: Request) -> LinkOut:
    """A one-time link for another admin or another device."""
    return LinkOut(link=_link(app, request, app.people.admin_link()))


@router.get("/tokens")
def tokens(app: App, who: Admin) -> list[TokenRow]:
    """Every token, without its secret."""
    return [TokenRow(**row) for row in app.people.tokens()]


@router.post("/tokens", status_code=201)
def make_token(app: App, who: Admin, body: TokenIn) -> TokenOut:
    """A token for a program; send it as `Authorization: Bearer ...`."""
    return TokenOut(token=app.people.make_token(body.label, body.annotator))


@router.delete("/tokens/{token}", status_code=204)
def remove_token(app: App, who: Admin, token: AnnotatorId) -> None:
    """End a token."""
    app.people.remove_token(token)


@router.post("/measures", status_code=204)
def measure(app: App, who: Admin, body: MeasureIn) -> None:
    """Report a figure, such as the model's accuracy so far; the admin page draws its curve."""
    with app.project.store.write() as connection:
        given = connection.execute(select(func.coalesce(func.sum(Annotator.answers), 0))).scalar_one()
        row = {"at": app.auth.clock(), "name": body.name, "value": body.value, "answers": given}
        connection.execute(insert(Measure).values(row))


def _link(app: Services, request: Request, secret: str) -> str:
    return join_link(app.public_url or _reached_at(request), secret)


def _reached_at(request: Request) -> str:
    """The address that was asked for, unless the Host is a name that anybody may have made up: then our own."""
    url, own = request.base_url, request.scope.get("server")
    if own is None or is_address(url.hostname or "") or url.hostname in ("localhost", socket.gethostname()):
        return str(url)
    host = f"[{own[0]}]" if ":" in own[0] else own[0]
    return f"{url.scheme}://{host}:{own[1]}"

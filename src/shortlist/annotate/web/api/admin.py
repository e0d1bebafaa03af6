"""What an owner does with people: watch, instruct, invite, remove, hand out tokens."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from sqlalchemy import func, insert, select

from shortlist.annotate.db.schema import Annotator, Measure
from shortlist.annotate.db.statements import count_classes
from shortlist.annotate.project.instructions import set_instructions
from shortlist.annotate.project.score import read_score
from shortlist.annotate.web.api.access import App, Owner, Reviewer, refusals
from shortlist.annotate.web.api.identity import link_to
from shortlist.annotate.web.api.models import (
    MAX_ID,
    InstructionsIn,
    InviteOut,
    MeasureIn,
    NameIn,
    TakenBack,
    TokenIn,
    TokenOut,
    TokenRow,
)
from shortlist.annotate.web.api.status_models import ScoreOut, Status

router = APIRouter(tags=["admin"], responses=refusals(401, 403, 404, 409))
AnnotatorId = Annotated[int, Path(ge=1, le=MAX_ID)]


@router.get("/status")
def status(app: App, who: Reviewer) -> Status:
    """Progress, annotators, agreement, seconds, measures; at most a few seconds old."""
    with app.project.store.read() as connection:
        classes = count_classes(connection)
    found = read_score(app.project.live)
    score = None if found is None else ScoreOut(**found)
    return Status(title=app.project.settings.title, classes=classes, score=score, **app.stats.status())


@router.put("/instructions", status_code=204)
def instructions(app: App, who: Owner, body: InstructionsIn) -> None:
    """Replace the instructions; annotators read them when they next open the page. An empty text removes them."""
    set_instructions(app.project, body.text)
    app.audit(who, "instruct")


@router.post("/annotators", status_code=201)
def invite(app: App, who: Owner, request: Request, body: NameIn) -> InviteOut:
    """Add an annotator; the link signs them in."""
    annotator_id, secret = app.people.invite(body.name)
    app.audit(who, "invite", f"annotator {annotator_id}")
    return InviteOut(id=annotator_id, link=link_to(app, request, secret))


@router.post("/annotators/{annotator}/invite")
def renew_invite(app: App, who: Owner, request: Request, annotator: AnnotatorId) -> InviteOut:
    """A new link; the old one ends."""
    secret = app.people.renew_invite(annotator)
    app.audit(who, "renew invite", f"annotator {annotator}")
    return InviteOut(id=annotator, link=link_to(app, request, secret))


@router.delete("/annotators/{annotator}", status_code=204)
def remove(app: App, who: Owner, annotator: AnnotatorId) -> None:
    """Sign an annotator out for good and give their open questions to others; their answers stay."""
    app.people.remove(annotator)
    app.queue.release(annotator)
    app.audit(who, "remove", f"annotator {annotator}")


@router.delete("/annotators/{annotator}/answers")
def take_back(app: App, who: Owner, annotator: AnnotatorId) -> TakenBack:
    """Undo every answer of an annotator, so that it is asked again: of others only, if they were removed."""
    count = app.queue.take_back(annotator)
    app.audit(who, "take back", f"annotator {annotator}", answers=count)
    return TakenBack(answers=count)


@router.get("/tokens")
def tokens(app: App, who: Owner) -> list[TokenRow]:
    """Every token, without its secret."""
    return [TokenRow(**row) for row in app.people.tokens()]


@router.post("/tokens", status_code=201)
def make_token(app: App, who: Owner, body: TokenIn) -> TokenOut:
    """A token for a program; send it as `Authorization: Bearer ...`."""
    token = app.people.make_token(body.label, body.annotator)
    app.audit(who, "make token", body.label, annotator=body.annotator)
    return TokenOut(token=token)


@router.delete("/tokens/{token}", status_code=204)
def remove_token(app: App, who: Owner, token: AnnotatorId) -> None:
    """End a token."""
    app.people.remove_token(token)
    app.audit(who, "remove token", f"token {token}")


@router.post("/measures", status_code=204)
def measure(app: App, who: Owner, body: MeasureIn) -> None:
    """Report a figure, such as the model's accuracy so far; the admin page draws its curve."""
    with app.project.store.write() as connection:
        given = connection.execute(select(func.coalesce(func.sum(Annotator.answers), 0))).scalar_one()
        row = {"at": app.auth.clock(), "name": body.name, "value": body.value, "answers": given}
        connection.execute(insert(Measure).values(row))
    app.stats.forget()

"""What annotators say beside their answers; owners see it with the items."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, Field

from shortlist.annotate.project.sources import check_text
from shortlist.annotate.queue.notes import Kind, Notes, Reason
from shortlist.annotate.web.api.access import App, Submitter, refusals
from shortlist.annotate.web.api.models import Attempt, Id, In

MAX_NOTE = 2000


def check_note(text: str) -> str:
    """`text` if it can be shown; it may be empty."""
    return check_text(text.strip(), MAX_NOTE) if text.strip() else ""


router = APIRouter(tags=["answering"], responses=refusals(401, 403, 404, 429))


class NoteIn(In):
    """A comment on the item of a question of yours, or a flag, which asks an owner or a reviewer to look at it."""

    question: Id
    kind: Kind = "comment"
    text: Annotated[str, Field(max_length=MAX_NOTE), AfterValidator(check_note)] = ""


class NoteSaved(BaseModel):
    """The note's id; the same words again have the same one."""

    id: int


class ReasonIn(In):
    """Why a question was skipped; null takes it back."""

    question: Id
    attempt: Attempt = 0
    reason: Reason | None


@router.post("/notes")
def add_note(app: App, annotator: Submitter, body: NoteIn) -> NoteSaved:
    """Comment on an item, or flag it."""
    return NoteSaved(id=Notes(app.project.store).add(annotator, body.question, body.kind, body.text))


@router.post("/skips/reason", status_code=204)
def explain_skip(app: App, annotator: Submitter, body: ReasonIn) -> None:
    """Say why a question was skipped."""
    Notes(app.project.store).explain(annotator, body.question, body.attempt, body.reason)

"""What an annotator does: ask, answer, skip, undo, keep the lease. Each may be sent again without harm."""

import asyncio
import random
import time
from dataclasses import asdict

from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool

from shortlist.annotate.db.writer import Call
from shortlist.annotate.queue.leases import Served
from shortlist.annotate.queue.stored import Given, Stored
from shortlist.annotate.web.api.access import App, Services, Submitter, refusals
from shortlist.annotate.web.api.models import (
    AnswerIn,
    NextIn,
    Progress,
    QuestionOut,
    Questions,
    Saved,
    ShownClass,
    ShownItem,
    SkipIn,
    StoredOut,
    UndoIn,
)

router = APIRouter(tags=["answering"], responses=refusals(401, 403, 404, 429))
_CONFLICT = refusals(409)
BLUR_MS = 8
"""Replies wait for up to this long, by chance: gold questions take some 0.06 ms longer than others to find."""


@router.post("/next", response_model=Questions)
async def next_questions(app: App, annotator: Submitter, body: NextIn) -> Response:
    """The open questions, topped up to `hold`; the same ones until they are answered. Renews their leases."""
    asked = app.writer.ask(annotator, lambda connection: app.queue.asking(connection, annotator, body.hold))
    progress = await _progress(app)  # meanwhile: for the first request all slots are counted
    return await _reply(Questions(questions=_shown(app, await asked), progress=progress))


@router.post("/answers", response_model=Saved, responses=_CONFLICT)
async def answer(app: App, annotator: Submitter, body: AnswerIn) -> Response:
    """Store an answer. It is on disk when this returns; a different answer to the same attempt is refused (409)."""
    given = Given("typed" if body.typed else "answer", body.answer, body.seconds)
    return await _submit(app, annotator, body, given)


@router.post("/skips", response_model=Saved, responses=_CONFLICT)
async def skip(app: App, annotator: Submitter, body: SkipIn) -> Response:
    """Leave a question to somebody else. Not the same as None."""
    return await _submit(app, annotator, body, Given("skip", None, body.seconds))


@router.post("/undos", response_model=Saved, responses=_CONFLICT)
async def undo(app: App, annotator: Submitter, body: UndoIn) -> Response:
    """Take back an answer or a skip; the question is open again, at the next attempt."""
    taken = (annotator, body.question, body.attempt, body.hold)
    return await _saved(app, annotator, lambda connection: app.queue.undoing(connection, *taken))


HOT = (next_questions, answer, skip, undo)
"""What people wait for at every item: called by `dispatch` without the framework's machinery."""


async def _progress(app: Services) -> Progress:
    settled = app.queue.settled
    found = app.stats.recent_progress(settled)
    return Progress(**(await run_in_threadpool(app.stats.progress, settled) if found is None else found))


async def _submit(app: Services, annotator: int, body: AnswerIn | SkipIn, given: Given) -> Response:
    sent = (annotator, body.question, body.attempt, given, body.hold)
    return await _saved(app, annotator, lambda connection: app.queue.submitting(connection, *sent))


async def _saved(app: Services, annotator: int, submit: Call[tuple[Stored, list[Served]]]) -> Response:
    stored, held = await app.writer.ask(annotator, submit)
    saved = StoredOut(**asdict(stored))
    return await _reply(Saved(saved=saved, questions=_shown(app, held), progress=await _progress(app)))


async def _reply(content: Questions) -> Response:
    """Serialised here: FastAPI would validate our own model again. Sent at a moment that does not tell what it took."""
    await blur()
    return Response(content.model_dump_json(by_alias=True), media_type="application/json")


async def blur() -> None:
    """Wait for a time drawn by chance, to the microsecond.

    Event loops sleep for whole milliseconds: after these alone, what a reply took still shows in the rest. That is
    waited out turn by turn, so that nobody else waits.
    """
    whole, rest = divmod(random.uniform(0, BLUR_MS), 1)
    await asyncio.sleep(whole / 1000)
    end = time.perf_counter() + rest / 1000
    while time.perf_counter() < end:
        await asyncio.sleep(0)


def _media(app: Services, question: Served) -> str:
    """Browsers cache it by its address: that of another project, or of a question that was erased, is another one."""
    return f"/api/v1/media/{question.id}?of={app.auth.tag}&at={question.served_at}"


def _shown(app: Services, held: list[Served]) -> list[QuestionOut]:
    return [
        QuestionOut(
            id=question.id,
            attempt=question.attempt,
            item=ShownItem(
                kind=question.kind,
                text=question.text,
                media=None if question.media_type is None else _media(app, question),
                media_type=question.media_type,
            ),
            shortlist=[
                ShownClass(class_id=k, name=name, description=words)
                for k, name, words in zip(question.shortlist, question.names, question.descriptions, strict=True)
            ],
            again=question.turn > 0,
            served_at=question.served_at,
            lease_until=question.lease_until,
        )
        for question in held
    ]

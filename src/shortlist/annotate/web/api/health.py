"""For those who run the server: /healthz for anybody, /metrics in Prometheus's text format for owners and reviewers."""

import shutil
import threading
import time
from collections.abc import Iterator
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from sqlalchemy import func, select, text

from shortlist.annotate.db.schema import Annotator, Answer, Credential, Slot
from shortlist.annotate.live.plan import HISTORY
from shortlist.annotate.project.backup import last_backup
from shortlist.annotate.web.api.access import App, Reviewer, Services, refusals
from shortlist.annotate.web.board import BUCKETS, FAULTS
from shortlist.annotate.web.logs import describe

router = APIRouter(tags=["health"])
KEEP_SECONDS = 2.0  # anybody may ask, and each look is a write
LEAST_BYTES = 100_000_000
_LOOK = threading.Lock()


class Health(BaseModel):
    """`failing` if the database cannot be written and read or the disk is nearly full."""

    status: Literal["ok", "failing"]
    database: bool
    disk_free_bytes: int
    trainer_seconds: float | None
    """Since the model was last published; null where none is trained or nothing was published yet."""


@router.get("/healthz", response_model=Health, responses={503: {"model": Health}})
def healthz(app: App) -> Response:
    """Whether the server can do its work; 503 if not. At most two seconds old."""
    found = look(app)
    return JSONResponse(found.model_dump(), status_code=200 if found.status == "ok" else 503)


def look(app: Services) -> Health:
    """How it is, looked at once every few seconds, however many ask."""
    with _LOOK:
        made: float
        found: Health | None
        made, found = app.looked.get("health", (float("-inf"), None))
        if found is None or time.monotonic() - made > KEEP_SECONDS:
            found = _look(app)
            app.looked["health"] = (time.monotonic(), found)
        return found


def _look(app: Services) -> Health:
    free = shutil.disk_usage(app.project.folder).free
    try:
        with app.project.store.write() as connection:  # a write that changes nothing, and is yet on the disk
            connection.execute(text("UPDATE alembic_version SET version_num = version_num"))
        with app.project.store.read() as connection:
            well = connection.execute(select(func.count()).select_from(Credential)).scalar_one() >= 0
    except Exception as error:  # whatever it is, that is the answer
        app.log("the database fails", error=describe(error))
        well = False
    history = app.project.live / HISTORY
    age = time.time() - history.stat().st_mtime if history.exists() else None
    status: Literal["ok", "failing"] = "ok" if well and free >= LEAST_BYTES else "failing"
    return Health(status=status, database=well, disk_free_bytes=free, trainer_seconds=age)


@router.get("/metrics", response_class=PlainTextResponse, responses=refusals(401, 403))
def metrics(app: App, who: Reviewer) -> PlainTextResponse:
    """Figures for Prometheus; its scraper sends a token."""
    return PlainTextResponse("\n".join(_lines(app)) + "\n", media_type="text/plain; version=0.0.4")


def _lines(app: Services) -> Iterator[str]:
    health = look(app)
    yield from _metric("up", "gauge", "1 if the server can do its work", int(health.status == "ok"))
    yield from _metric("disk_free_bytes", "gauge", "on the disk of the project", health.disk_free_bytes)
    if health.trainer_seconds is not None:
        yield from _metric("trainer_age_seconds", "gauge", "since the last publication", health.trainer_seconds)
    saved = last_backup(app.project.folder)
    if saved is not None:
        yield from _metric("backup_age_seconds", "gauge", "since the last scheduled backup", time.time() - saved)
    progress = app.stats.progress(app.queue.settled)
    yield from _metric("slots_done", "gauge", "questions settled, without gold", progress["done"])
    yield from _metric("slots", "gauge", "questions to settle, without gold", progress["total"])
    with app.project.store.read() as connection:
        leased = connection.execute(select(func.count()).where(Slot.state == "leased")).scalar_one()
        people = connection.execute(select(func.count()).where(Annotator.active)).scalar_one()
        last = connection.execute(select(func.max(Answer.id))).scalar()
    yield from _metric("leases", "gauge", "questions that somebody holds", leased)
    yield from _metric("annotators", "gauge", "people who may answer", people)
    yield from _metric("log_rows_total", "counter", "answers, skips and undos ever stored", last or 0)
    yield from _metric("faults_total", "counter", "requests that failed by a fault of ours", app.board.total(FAULTS))
    yield from _requests(app)


def _metric(name: str, kind: str, words: str, value: float) -> Iterator[str]:
    yield f"# HELP shortlist_{name} {words}"
    yield f"# TYPE shortlist_{name} {kind}"
    yield f"shortlist_{name} {value:.10g}"


def _requests(app: Services) -> Iterator[str]:
    found: list[Any] = list(app.board.requests())
    yield "# HELP shortlist_requests_total requests answered"
    yield "# TYPE shortlist_requests_total counter"
    for name, by_status, _, _ in found:
        for status, count in by_status.items():
            yield f'shortlist_requests_total{{route="{name}",status="{status}"}} {count:.10g}'
    yield "# HELP shortlist_request_seconds from the last byte of the headers to the end of the reply"
    yield "# TYPE shortlist_request_seconds histogram"
    for name, _, counts, seconds in found:
        below = 0.0
        for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
            below += count
            yield f'shortlist_request_seconds_bucket{{route="{name}",le="{bound}"}} {below:.10g}'
        yield f'shortlist_request_seconds_sum{{route="{name}"}} {seconds:.10g}'
        yield f'shortlist_request_seconds_count{{route="{name}"}} {below:.10g}'

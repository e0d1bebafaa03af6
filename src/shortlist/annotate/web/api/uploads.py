"""What an owner does with files: look at what an upload would do, read it in."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query

from shortlist.annotate.formats import EXPORTS, media_type
from shortlist.annotate.project.importing import ImportOutcome
from shortlist.annotate.web.api.access import App, OffLoop, Owner, Reviewer, refusals
from shortlist.annotate.web.api.models import MAX_ID, SkippedOut
from shortlist.annotate.web.api.review_models import ExportRow, UploadOut
from shortlist.annotate.web.uploads import Upload, What

router = APIRouter(tags=["data"], route_class=OffLoop, responses=refusals(401, 403, 404, 409))
RawBody = Annotated[bytes, Body(media_type="application/octet-stream")]
FileName = Annotated[str, Query(min_length=1, max_length=500, description="its ending says what it is")]
Column = Annotated[str | None, Query(max_length=500, description="of a table of items; as `annotate add` says")]
Strict = Annotated[bool, Query(description="refuse all if any item is bad, instead of leaving it out")]
MANY = 100


async def columns(text_column: Column = None, item_column: Column = None) -> dict[str, str | None]:
    """Which columns of a table of items hold what."""
    return {"text_column": text_column or None, "item_column": item_column or None}


Columns = Annotated[dict[str, str | None], Depends(columns)]


@router.post("/uploads/preview")
def look(app: App, who: Owner, body: RawBody, what: What, name: FileName, columns: Columns) -> UploadOut:
    """What a file would do: how many items come in, what is left out and why. Nothing is changed."""
    return _out(None, "preview", app.uploads.look(what, name, body, **columns))


@router.post("/uploads", status_code=202)
def upload(
    app: App, who: Owner, body: RawBody, what: What, name: FileName, columns: Columns, strict: Strict = False
) -> UploadOut:
    """Read a file in, as `shortlist annotate add` does; ask for its number to see how far it is."""
    app.audit(who, "upload", what)
    return _progress(app.uploads.begin(what, name, body, **columns, strict=strict))


@router.get("/uploads/{number}")
def progress(app: App, who: Owner, number: Annotated[int, Path(ge=1, le=MAX_ID)]) -> UploadOut:
    """How far an upload is."""
    return _progress(app.uploads.get(number))


@router.get("/exports")
def exports(app: App, who: Reviewer) -> list[ExportRow]:
    """The files that can be downloaded."""
    return [ExportRow(name=name, media_type=media_type(name)) for name in EXPORTS]


def _progress(upload: Upload) -> UploadOut:
    found = _out(upload.id, upload.state, upload.outcome)
    return found.model_copy(update={"done": upload.done, "total": upload.total, "message": upload.message})


def _out(number: int | None, state: str, outcome: ImportOutcome) -> UploadOut:
    skipped = [SkippedOut(item=item[:200], reason=reason) for item, reason in outcome.skipped[:MANY]]
    counts = {"added": outcome.added, "classes": outcome.classes, "known": outcome.known, "scored": outcome.scored}
    more = max(len(outcome.skipped) - MANY, 0)
    told = {"skipped": skipped, "more_skipped": more, "remark": outcome.remark}
    return UploadOut(id=number, state=state, **told, **counts)  # type: ignore[arg-type]

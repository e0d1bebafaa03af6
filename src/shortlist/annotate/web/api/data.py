"""What an owner does with data: add classes and items while the app runs, export answers."""

import os
import tempfile
from pathlib import Path as FilePath
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path, Query
from fastapi.responses import FileResponse
from sqlalchemy import select
from starlette.background import BackgroundTask

from shortlist.annotate.db.schema import Item
from shortlist.annotate.db.statements import all_descriptions, class_ids, class_names
from shortlist.annotate.formats import EXPORTS, media_type
from shortlist.annotate.formats.answers import PSEUDONYMS
from shortlist.annotate.formats.label_studio_answers import import_answers
from shortlist.annotate.problems import Invalid
from shortlist.annotate.project.classes import add_classes, rename_class
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.importing import ImportOutcome, add_items, store_media
from shortlist.annotate.project.sources import Source
from shortlist.annotate.web.api.access import App, OffLoop, Owner, Reviewer, refusals
from shortlist.annotate.web.api.models import (
    MAX_ID,
    AnswersImported,
    ClassCounts,
    ClassesIn,
    ClassesOut,
    GoldIn,
    ImportOut,
    ItemOut,
    ItemsIn,
    ItemsOut,
    Name,
    RenameIn,
    SkippedOut,
)
from shortlist.internal.names import tell_alike

router = APIRouter(tags=["data"], route_class=OffLoop, responses=refusals(401, 403, 404, 409))
ExportName = Annotated[str, Path(json_schema_extra={"enum": list(EXPORTS)})]
RawBody = Annotated[bytes, Body(media_type="application/octet-stream")]


@router.get("/classes")
def classes(app: App, who: Reviewer) -> ClassesOut:
    """Every class, in the order of the ids."""
    with app.project.store.read() as connection:
        names, descriptions = class_names(connection), all_descriptions(connection)
    return ClassesOut(names=names, descriptions=[descriptions.get(k) for k in range(len(names))])


@router.post("/classes", status_code=201)
def more_classes(app: App, who: Owner, body: ClassesIn) -> ClassesOut:
    """Add classes, which appear on shortlists from the next question on, or describe existing ones."""
    names = body.names if body.descriptions is None else dict(zip(body.names, body.descriptions, strict=True))
    add_classes(app.project, names)
    app.audit(who, "add classes", count=len(body.names))
    return _remarked(classes(app, who), body.names)


@router.patch("/classes/{class_id}")
def rename(app: App, who: Owner, class_id: Annotated[int, Path(ge=0, le=2**31 - 1)], body: RenameIn) -> ClassesOut:
    """Rename a class, for instance to correct a typo. Answers refer to its number and stay."""
    rename_class(app.project, class_id, body.name)
    app.audit(who, "rename class", f"class {class_id}", name=body.name)
    return _remarked(classes(app, who), [body.name])


def _remarked(found: ClassesOut, given: list[str]) -> ClassesOut:
    return found.model_copy(update={"remark": tell_alike(found.names, [name.strip() for name in given])})


@router.get("/classes/counts")
def counts(app: App, who: Reviewer) -> ClassCounts:
    """How often each class has been picked."""
    with app.project.store.read() as connection:
        names = class_names(connection)
    found = app.stats.class_counts()
    return ClassCounts(names=names, answers=[found.get(k, 0) for k in range(len(names))], none=found.get(None, 0))


@router.get("/items")
def items(
    app: App,
    who: Reviewer,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ItemsOut:
    """The items by id, one page at a time."""
    columns = (Item.id, Item.name, Item.kind, Item.state, Item.gold, Item.pending)
    with app.project.store.read() as connection:
        statement = select(*columns).where(Item.id > after).order_by(Item.id).limit(limit)
        rows = [ItemOut(**row) for row in connection.execute(statement).mappings()]
    return ItemsOut(items=rows, after=rows[-1].id if len(rows) == limit else None)


@router.post("/items", status_code=201)
def more_items(app: App, who: Owner, body: ItemsIn) -> ImportOut:
    """Add texts."""
    sources = [Source(item.name, item.name, text=item.text, gold=item.gold) for item in body.items]
    outcome = add_items(app.project, sources, strict=body.strict)
    app.audit(who, "add items", count=outcome.added)
    return _outcome(outcome)


@router.post("/items/gold")
def more_gold(app: App, who: Owner, body: GoldIn) -> ImportOut:
    """Make items gold that nobody was asked about yet."""
    outcome = mark_gold(app.project, {one.item: one.gold for one in body.items}, strict=body.strict)
    app.audit(who, "mark gold", count=outcome.added)
    return _outcome(outcome)


@router.post("/items/media", status_code=201)
def more_media(
    app: App,
    who: Owner,
    body: RawBody,
    name: Annotated[Name, Query()],
    gold: Annotated[Name | None, Query(description="the known class name")] = None,
) -> ImportOut:
    """Add one image or sound: the body holds its bytes, which also tell the type."""
    if gold is not None:
        with app.project.store.read() as connection:
            if gold not in class_ids(connection):
                raise Invalid("no_class", f"the gold answer {gold!r} is not a class")
    store_media(app.project, name, body, gold)
    app.audit(who, "add items", count=1)
    return ImportOut(added=1, skipped=[])


@router.get(
    "/export/{name}",
    response_class=FileResponse,
    responses={200: {"content": {media_type(name).split(";")[0]: {} for name in EXPORTS}}},
)
def export(app: App, who: Owner, name: ExportName, pseudonyms: bool = False) -> FileResponse:
    """The standing answers as a file, or the waiting questions as Label Studio tasks.

    With `pseudonyms`, people are numbers that only the project can tell.
    """
    if name not in EXPORTS:
        raise Invalid("no_export", f"there is no export {name[:40]!r}: expected one of {', '.join(EXPORTS)}")
    handle, temporary = tempfile.mkstemp(prefix="shortlist-export-", suffix=FilePath(name).suffix)
    os.close(handle)
    path = FilePath(temporary)
    try:
        PSEUDONYMS.set(pseudonyms)  # for this request: its thread has a context of its own
        EXPORTS[name](app.project, path)
    except BaseException:
        path.unlink()
        raise
    app.audit(who, "export", name)
    clean_up = BackgroundTask(path.unlink)
    return FileResponse(path, media_type=media_type(name), filename=name, background=clean_up)


@router.post("/import/label-studio")
def import_label_studio(
    app: App, who: Owner, body: RawBody, kind: Literal["json", "csv"] = "json", strict: bool = False
) -> AnswersImported:
    """Label Studio's answers: the body is its JSON, JSON_MIN or CSV export. Safe to send twice."""
    outcome = import_answers(app.project, body, is_csv=kind == "csv", strict=strict)
    app.audit(who, "import answers", count=outcome.added)
    return AnswersImported(added=outcome.added, known=outcome.known, skipped=_skipped(outcome.skipped))


def _outcome(outcome: ImportOutcome) -> ImportOut:
    return ImportOut(added=outcome.added, skipped=_skipped(outcome.skipped))


def _skipped(found: list[tuple[str, str]]) -> list[SkippedOut]:
    return [SkippedOut(item=item, reason=reason) for item, reason in found]

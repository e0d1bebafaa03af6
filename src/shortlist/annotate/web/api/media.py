"""Pictures and sounds: for annotators by their question, for admins by the item."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response
from fastapi.responses import FileResponse
from sqlalchemy import Row, select

from shortlist.annotate.db.schema import Item, Question
from shortlist.annotate.problems import NotFound
from shortlist.annotate.web.api.access import Anyone, App, Reviewer, Services, refusals
from shortlist.annotate.web.api.models import MAX_ID

router = APIRouter(tags=["media"], responses=refusals(401, 403, 404))
Id = Annotated[int, Path(ge=1, le=MAX_ID)]
_SENT: dict[int | str, dict[str, Any]] = {200: {"content": {"image/*": {}, "audio/*": {}}}}
_ANY_DATE = "Thu, 01 Jan 1970 00:00:00 GMT"


@router.get("/media/{question}", response_class=FileResponse, responses=_SENT)
def media(app: App, who: Anyone, question: Id) -> FileResponse:
    """What one of the annotator's questions is about."""
    asked = (Question.id == question, Question.annotator_id == who.annotator_id)
    with app.project.store.read() as connection:
        statement = select(Item.file, Item.media_type).join(Question, Question.item_id == Item.id).where(*asked)
        row = connection.execute(statement).first()
    return _send(app, row, {"cache-control": "private, max-age=86400", "etag": f'"question-{question}"'})


@router.get("/items/{item}/media", response_class=FileResponse, responses=_SENT)
def media_of_item(app: App, who: Reviewer, item: Id, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """The image or sound of any item; one that the browser has is not sent again.

    It asks each time, as the number of an item may be that of one that was erased, or of another project's.
    """
    with app.project.store.read() as connection:
        row = connection.execute(select(Item.file, Item.media_type).where(Item.id == item)).first()
    kept = {"cache-control": "private, no-cache", "etag": f'"{row and row.file}"'}
    sent = _send(app, row, kept)
    return Response(status_code=304, headers=kept) if kept["etag"] == if_none_match else sent


def _send(app: Services, row: Row[str | None, str | None] | None, kept: dict[str, str]) -> FileResponse:
    """A file, and how long browsers keep it."""
    root = app.project.media.resolve()
    if row is None or row.file is None:
        raise NotFound("no_media", "there is no such picture or sound for you")
    path = root / row.file
    # resolve() follows links: a path that it changes contains one, or leaves the root
    if path.resolve() != path or not path.is_relative_to(root) or not path.is_file():
        raise NotFound("no_media", "this picture or sound is missing")
    headers = {"content-security-policy": "default-src 'none'; sandbox", **kept}
    # items that came in together, such as gold ones, could be told by the dates of their files
    return FileResponse(path, media_type=row.media_type, headers={**headers, "last-modified": _ANY_DATE})

"""What reviewers and owners do with items: look through them, correct, comment, see how far people agree."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from sqlalchemy import func, insert, select, update

from shortlist.annotate.db.schema import Item, Note
from shortlist.annotate.problems import Invalid, NotFound
from shortlist.annotate.project.review.browse import Filter, browse, history
from shortlist.annotate.project.review.corrections import correct, undo_correction
from shortlist.annotate.project.second_look import second_look
from shortlist.annotate.project.sources import check_text
from shortlist.annotate.web.api.access import App, Reviewer, Services, refusals
from shortlist.annotate.web.api.models import MAX_ID
from shortlist.annotate.web.api.review_models import (
    AgreementOut,
    AlphaOut,
    ClassAlpha,
    ConfusedOut,
    CorrectionIn,
    ItemHistory,
    NoteIn,
    PairOut,
    ReviewPage,
    ReviewRow,
    TimeAlpha,
    TodoOut,
    UndoCorrectionIn,
    WorkOut,
)

router = APIRouter(tags=["review"], responses=refusals(401, 403, 404, 409))
ItemId = Annotated[int, Path(ge=1, le=MAX_ID)]
Number = Annotated[int | None, Query(ge=0, le=MAX_ID)]
SecondsOf = Annotated[float | None, Query(ge=0, le=86_400, allow_inf_nan=False)]
DOUBTFUL = 1000


@router.get("/review/items")
def items(
    app: App,
    who: Reviewer,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    class_id: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    person: Number = None,
    none: bool = False,
    slower: SecondsOf = None,
    quicker: SecondsOf = None,
    answered: bool = False,
    disagreement: bool = False,
    flagged: bool = False,
    corrected: bool = False,
    skipped: bool = False,
    gold: bool = False,
    doubtful: bool = False,
    words: Annotated[str | None, Query(max_length=200, description="in the item's name or text")] = None,
) -> ReviewPage:
    """Items with their answers, by number, for which all that is asked for holds. `slower`, `quicker`: seconds."""
    if words is not None and "\x00" in words:
        raise Invalid("invalid", "words: expected printable characters")
    worth = [one.item_id for one in second_look(app.project, DOUBTFUL)] if doubtful else None
    wanted = Filter(
        class_id=class_id,
        person=person,
        none=none,
        slower=slower,
        quicker=quicker,
        answered=answered,
        disagreement=disagreement,
        flagged=flagged,
        corrected=corrected,
        skipped=skipped,
        gold=gold,
        words=words,
        doubtful=worth,
    )
    with app.project.store.read() as connection:
        found, further = browse(connection, wanted, after, limit)
    beliefs = _beliefs(app, [row["id"] for row in found])
    return ReviewPage(items=[ReviewRow(**row, **beliefs[row["id"]]) for row in found], after=further)


def _beliefs(app: Services, ids: list[int]) -> dict[int, dict[str, Any]]:
    """What a model takes each item for, where it finds the answers hard to believe; it did not see them."""
    looks = {one.item_id: one for one in second_look(app.project, among=ids)}
    found = {item: looks.get(item) for item in ids}
    return {k: {"believed": one and one.believed, "chance": one and one.chance} for k, one in found.items()}


@router.get("/review/items/{item}")
def one_item(app: App, who: Reviewer, item: ItemId) -> ItemHistory:
    """An item with everything that was said about it."""
    with app.project.store.read() as connection:
        found = history(connection, item)
    return ItemHistory(**found, **_beliefs(app, [item])[item])


@router.post("/review/items/{item}/correction")
def correction(app: App, who: Reviewer, item: ItemId, body: CorrectionIn) -> ItemHistory:
    """Say what an item is. Refused (409) if somebody has said something since version `seen`: it says what."""
    correct(app.project.store, item, body.seen, body.answer, who.name, body.why, app.auth.clock)
    app.audit(who, "correct", f"item {item}", answer=body.answer)
    return one_item(app, who, item)


@router.post("/review/items/{item}/undo")
def undo(app: App, who: Reviewer, item: ItemId, body: UndoCorrectionIn) -> ItemHistory:
    """Take back the latest correction of an item; it is what it was before."""
    undo_correction(app.project.store, item, body.seen, who.name, body.why, app.auth.clock)
    app.audit(who, "undo correction", f"item {item}")
    return one_item(app, who, item)


@router.post("/review/items/{item}/notes", status_code=201)
def note(app: App, who: Reviewer, item: ItemId, body: NoteIn) -> ItemHistory:
    """Comment on an item, or flag it."""
    if body.text or body.kind == "comment":
        check_text(body.text)
    with app.project.store.write() as connection:
        if connection.execute(select(Item.id).where(Item.id == item)).scalar() is None:
            raise NotFound("no_item", f"there is no item {item}")
        values = {"item_id": item, "author": who.name, "kind": body.kind, "text": body.text, "at": app.auth.clock()}
        connection.execute(insert(Note).values(values))
    return one_item(app, who, item)


@router.post("/review/items/{item}/flags/close")
def close_flags(app: App, who: Reviewer, item: ItemId) -> ItemHistory:
    """Close every open flag of an item: it was dealt with."""
    with app.project.store.write() as connection:
        mine = (Note.item_id == item, Note.kind == "flag", Note.closed_at.is_(None))
        connection.execute(update(Note).where(*mine).values(closed_by=who.name, closed_at=app.auth.clock()))
    app.audit(who, "close flags", f"item {item}")
    return one_item(app, who, item)


@router.get("/review/work")
def work(app: App, who: Reviewer) -> WorkOut:
    """Work over time; at most a minute old."""
    return WorkOut(**app.stats.work())


@router.get("/review/todo")
def todo(app: App, who: Reviewer) -> TodoOut:
    """How much there is to review."""
    flagged = select(func.count(func.distinct(Note.item_id))).where(Note.kind == "flag", Note.closed_at.is_(None))
    with app.project.store.read() as connection:
        count = connection.execute(flagged).scalar_one()
    return TodoOut(flagged=count, doubtful=len(second_look(app.project, DOUBTFUL)))


@router.get("/agreement")
def agreement(app: App, who: Reviewer) -> AgreementOut:
    """Krippendorff's alpha, by class and over time; who agrees with whom; which classes are confused."""
    found = app.stats.agreement()
    whole = found["alpha"]
    return AgreementOut(
        alpha=None if whole is None else AlphaOut(**asdict(whole)),
        classes=[ClassAlpha(class_id=k, **asdict(one)) for k, one in found["classes"].items()],
        times=[TimeAlpha(at=at, **asdict(one)) for at, one in found["times"]],
        pairs=[PairOut(one=a, other=b, items=n, same=same) for a, b, n, same in found["pairs"]],
        confusion=[ConfusedOut(one=a, other=b, pairs=n) for (a, b), n in found["confusion"].items()],
    )

"""What an owner does with classes while people work: see, describe, merge, retire. Adding and renaming: `data`."""

from typing import Annotated

from fastapi import APIRouter, Path
from sqlalchemy import func, select

from shortlist.annotate.db.schema import Item, LabelClass
from shortlist.annotate.project.review.class_changes import merge_classes, restore_class, retire_class
from shortlist.annotate.web.api.access import App, Owner, Reviewer, refusals
from shortlist.annotate.web.api.review_models import AskedAgain, ClassRow, MergeIn

router = APIRouter(tags=["classes"], responses=refusals(401, 403, 404, 409))
ClassId = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("/review/classes")
def rows(app: App, who: Reviewer) -> list[ClassRow]:
    """Every class, those that were merged or retired among them, with how often it was picked."""
    picked = app.stats.class_counts()
    with app.project.store.read() as connection:
        known, gold = (
            {k: count for k, count in connection.execute(select(column, func.count()).group_by(column))}  # noqa: C416
            for column in (Item.known, Item.gold)
        )
        found = connection.execute(select(LabelClass.__table__).order_by(LabelClass.id)).mappings().all()
    return [
        ClassRow(**row, answers=picked.get(row["id"], 0), gold=gold.get(row["id"], 0), known=known.get(row["id"], 0))
        for row in found
    ]


@router.post("/classes/{class_id}/merge", status_code=204)
def merge(app: App, who: Owner, class_id: ClassId, body: MergeIn) -> None:
    """Make a class a part of another one, for good: its answers are the other's from now on."""
    merge_classes(app.project, class_id, body.into, app.auth.clock)
    app.audit(who, "merge", f"class {class_id}", into=body.into)


@router.post("/classes/{class_id}/retire")
def retire(app: App, who: Owner, class_id: ClassId) -> AskedAgain:
    """Take a class off all lists; items that were answered with it are asked about again."""
    count = retire_class(app.project, class_id, app.auth.clock)
    app.audit(who, "retire", f"class {class_id}", answers=count)
    return AskedAgain(answers=count)


@router.post("/classes/{class_id}/restore", status_code=204)
def restore(app: App, who: Owner, class_id: ClassId) -> None:
    """Take a retired class back into use."""
    restore_class(app.project, class_id)
    app.audit(who, "restore", f"class {class_id}")

"""Searching all classes for one that is not on the list."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from shortlist.annotate.problems import Invalid
from shortlist.annotate.web.api.access import App, Submitter, refusals
from shortlist.annotate.web.api.models import Id, ShownClass

router = APIRouter(tags=["answering"], responses=refusals(401, 403, 404, 429))


class FoundClass(ShownClass):
    """A class to answer with, typed. `shown`: it is on the list; `refused`: it was on an earlier one."""

    shown: bool
    refused: bool


class Found(BaseModel):
    """Classes, the best match first."""

    classes: list[FoundClass]


@router.get("/classes/search")
def search(
    app: App,
    annotator: Submitter,
    question: Annotated[Id, Query(description="a question of yours")],
    q: Annotated[
        str, Query(max_length=200, description="some letters; none: the likeliest classes, those on the list last")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 8,
) -> Found:
    """The classes that match, for an answer with `typed`; among equal matches the likelier ones for the item first."""
    if not app.queue.typing:
        raise Invalid("no_typing", "this project takes only classes that are on the list, or None")
    found = app.search.find(annotator, question, q, limit)
    return Found(classes=[FoundClass(**asdict(one)) for one in found])

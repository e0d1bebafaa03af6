"""What an admin sees over the wire."""

from typing import Literal

from pydantic import BaseModel

from shortlist.annotate.web.api.models import Progress


class AnnotatorOut(BaseModel):
    """An annotator and what they did.

    `answers` counts all answers, including those on gold items; `nones`, `none_share` and `median_seconds` leave gold
    items out. On gold items, among the latest answers: where the right class was shown (`gold_shown`), a wrong class
    picked is a slip and None is a miss; where it was not, any class picked is a stray. Of those that were typed
    (`gold_typed`), wrong ones are `mistyped`.
    """

    id: int
    name: str
    active: bool
    answers: int
    nones: int
    skips: int
    none_share: float | None
    median_seconds: float | None
    gold: int
    gold_shown: int
    slips: int
    misses: int
    strays: int
    gold_typed: int
    mistyped: int


class Agreement(BaseModel):
    """The share that agree, of the pairs of people whose answers about an item could have differed."""

    pairs: int
    share: float | None


class SizeSeconds(BaseModel):
    """How long people take to answer a shortlist of this size."""

    size: int
    median_seconds: float


class MeasureOut(BaseModel):
    """A figure over time."""

    at: float
    name: str
    value: float
    answers: int


class ScoreOut(BaseModel):
    """How often the model is right on items that it has not learned from, by a sample of them, with a 95 % interval.

    Of the `size` items of the sample `items` were asked about so far, after `answers` answers in the project. `asked`
    may be more: those that come after new or skipped items in the sample's order count when these are answered.
    `undecided` ones count as wrong for `low` and as right for `high`. `corrected`: mistakes of annotators are allowed
    for; if not, answers are taken as right. `questions_for_a_point`: about how many more questions the next percentage
    point takes, where that can be told. `early`: it rests on too few items to say anything yet.
    """

    accuracy: float
    low: float
    high: float
    items: int
    undecided: int
    size: int
    asked: int
    corrected: bool
    answers: int
    questions_for_a_point: float | None
    early: bool


class Estimate(BaseModel):
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


class PlaceOut(BaseModel):
    """How often a wrong class stood at this place of a gold list, and was taken; place 11 is every later one."""

    place: int
    shown: int
    taken: int


class WayOut(BaseModel):
    """What a way to ask costs and how it errs, by the latest answers.

    `seconds` per item that got a class (`labelled` of `items`), lists that missed included. On `gold` items: the share
    of `wrong` answers, and of lists from which a wrong class was `taken`.
    """

    way: Literal["full", "search", "shortlist"]
    items: int
    labelled: int
    seconds: Estimate | None
    gold: int
    wrong: Estimate | None
    taken: Estimate | None
    by_place: list[PlaceOut]


class Status(BaseModel):
    """What the admin page shows. Only `answers`, `skips` and `hours`, the work done, include gold items.

    `items_done` includes the `known` ones, whose class is not asked for; `progress` counts the answers asked for.
    """

    title: str
    classes: int
    items: int
    items_done: int
    known: int
    progress: Progress
    answers: int
    none_share: float | None
    skips: int
    hours: float | None
    agreement: Agreement
    typed_share: float | None
    seconds_by_size: list[SizeSeconds]
    ways: list[WayOut]
    annotators: list[AnnotatorOut]
    measures: list[MeasureOut]
    score: ScoreOut | None

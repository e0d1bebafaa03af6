"""What owners and reviewers see and say over the wire."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from shortlist.annotate.web.api.models import ClassId, In, SkippedOut

Words = Annotated[str, Field(max_length=2000)]
Version = Annotated[int, Field(ge=0, le=2**31 - 1)]


class GivenOut(BaseModel):
    """A standing answer: a class, or null for None; `shortlist` holds the classes that were shown."""

    person: int
    name: str
    answer: int | None
    typed: bool
    shortlist: list[int]
    seconds: float | None


class ReviewRow(BaseModel):
    """An item with what people say about it. `known`: its class without asking, -1 for none of the classes.

    `skips`: why people skipped it, if they said. `believed`: the class a model holds it for that did not see its answer
    and finds that hard to believe; `chance`: of the answer, by that model.
    """

    id: int
    name: str
    kind: str
    text: str | None
    media_type: str | None
    state: str
    gold: int | None
    known: int | None
    answers: list[GivenOut]
    flags: int
    corrected: bool
    skips: list[str]
    believed: str | None
    chance: float | None


class ReviewPage(BaseModel):
    """A page of items. `after` asks for the next one; a page may be short, or even empty, and there may be more."""

    items: list[ReviewRow]
    after: int | None


class EventOut(BaseModel):
    """Something that was said about an item; `stands`: it was not taken back or closed."""

    id: int
    kind: str
    who: str
    at: float
    class_id: int | None
    shortlist: list[int]
    seconds: float | None
    words: str
    stands: bool


class ItemHistory(BaseModel):
    """An item with everything that was said about it, oldest first; send `version` back with a correction.

    `believed` and `chance` are those of `ReviewRow`.
    """

    id: int
    name: str
    kind: str
    text: str | None
    media_type: str | None
    state: str
    gold: int | None
    known: int | None
    pending: int
    version: int
    corrected: bool
    disagreement: bool
    answers: list[GivenOut]
    events: list[EventOut]
    names: dict[int, str]
    believed: str | None
    chance: float | None


class CorrectionIn(In):
    """The class of an item, null for none of the classes; `seen` is the version that the reviewer looked at."""

    answer: ClassId | None
    seen: Version
    why: Words = ""


class UndoCorrectionIn(In):
    """Take back the latest correction."""

    seen: Version
    why: Words = ""


class NoteIn(In):
    """A comment on an item, or a flag."""

    kind: Literal["comment", "flag"] = "comment"
    text: Words = ""


class AlphaOut(BaseModel):
    """Krippendorff's alpha with a 95 % interval, over so many items."""

    value: float
    low: float
    high: float
    items: int


class ClassAlpha(AlphaOut):
    """That of one class against all others."""

    class_id: int


class TimeAlpha(AlphaOut):
    """That of the items whose last answer came up to then."""

    at: float


class PairOut(BaseModel):
    """Two people: how many items both spoke about, and on how many they agree."""

    one: int
    other: int
    items: int
    same: int


class ConfusedOut(BaseModel):
    """Pairs of people of whom one said the one class, another the other; -1: None to a list that held the class."""

    one: int
    other: int
    pairs: int


class AgreementOut(BaseModel):
    """How far people agree, by the latest answers; at most a minute old."""

    alpha: AlphaOut | None
    classes: list[ClassAlpha]
    times: list[TimeAlpha]
    pairs: list[PairOut]
    confusion: list[ConfusedOut]


class DayOut(BaseModel):
    """What one person answered on one day, counted from 1970 in UTC."""

    day: int
    person: int
    answers: int


class WorkOut(BaseModel):
    """Answers by day and person, of the latest 30 days; how many came within the last hour.

    `over`: how many seconds ago the first of these came. `pace`: how many of the answers that are to be given
    (`Status.progress`) came in per hour since then.
    """

    days: list[DayOut]
    last_hour: int
    over: float
    pace: float | None


class TodoOut(BaseModel):
    """What waits for somebody: items with open flags, items worth a second look."""

    flagged: int
    doubtful: int


class ClassRow(BaseModel):
    """A class: how often it was picked, how many items are known or gold ones of it, what became of it."""

    id: int
    name: str
    description: str | None
    answers: int
    gold: int
    known: int
    merged_into: int | None
    ended_at: float | None


class MergeIn(In):
    """The class that takes this one in."""

    into: ClassId


class AskedAgain(BaseModel):
    """How many answers are asked for again."""

    answers: int


class SettingsOut(BaseModel):
    """What is in force. `epsilon`, `names` and `score` are about a model that chooses lists.

    `text_column` and `item_column`: those of the first table of items, which later ones have, too, if not stated.
    """

    title: str
    size: int
    overlap: int
    gold_every: int
    policy: str
    epsilon: float
    names: bool
    score: bool
    typing: bool
    compare: bool
    pinned: str | None
    text_column: str | None
    item_column: str | None


class SettingsIn(In):
    """What to change; what is left out stays as it is."""

    title: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    size: Annotated[int, Field(ge=1, le=1000)] | None = None
    overlap: Annotated[int, Field(ge=1, le=100)] | None = None
    gold_every: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    policy: Literal["uniform", "top", "adaptive", "information"] | None = None
    epsilon: Annotated[float, Field(ge=0, le=1, description="share of uniform lists among the model's")] | None = None
    names: Annotated[bool, Field(description="texts: the names of the classes choose the first lists")] | None = None
    score: Annotated[bool, Field(description="score the model by a sample that it does not learn from")] | None = None
    typing: Annotated[bool, Field(description="a class that is not on the list may be typed")] | None = None
    compare: Annotated[bool, Field(description="ask by full lists, by search and by shortlists")] | None = None
    pinned: Annotated[str, Field(max_length=500, description="the class on every list; empty: none")] | None = None


class BackupRow(BaseModel):
    """A backup in the folder `backups` of the project, on the server."""

    name: str
    bytes: int
    at: float


class CheckOut(BaseModel):
    """What is wrong, one line each; nothing: the project is sound."""

    problems: list[str]


class UploadOut(BaseModel):
    """What an upload will do, does or did. `done` of `total` items are read in while `state` is running.

    `remark`: which classes differ by capitals, spaces or zeros only.
    """

    id: int | None
    state: Literal["preview", "running", "done", "failed"]
    done: int = 0
    total: int = 0
    added: int = 0
    classes: int = 0
    known: int = 0
    scored: int = 0
    skipped: list[SkippedOut] = []
    more_skipped: int = 0
    remark: str = ""
    message: str = ""


class ExportRow(BaseModel):
    """A file that can be downloaded."""

    name: str
    media_type: str

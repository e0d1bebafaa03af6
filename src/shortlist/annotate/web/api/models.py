"""What goes over the wire."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from shortlist.annotate.project.sources import MAX_INSTRUCTIONS, check_instructions, check_name, check_text

MAX_ID = 2**63 - 1

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
ClassId = Annotated[int, Field(ge=0, le=2**31 - 1)]
Attempt = Annotated[int, Field(ge=0, le=2**31 - 1)]
Hold = Annotated[int, Field(ge=0, le=4, description="open questions wanted: the shown one and those to prefetch")]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(check_name)]
Text = Annotated[str, Field(min_length=1, max_length=100_000), AfterValidator(check_text)]


class In(BaseModel):
    """A request body: unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


class ErrorOut(BaseModel):
    """Every refusal."""

    code: str
    message: str


class SignIn(In):
    """The secret part of a link."""

    secret: Annotated[str, Field(min_length=1, max_length=500)]


class Who(BaseModel):
    """Who is signed in, to which project, with what annotators are told there (empty: nothing).

    `outbox` tells apart what browsers keep for whom, on one address.
    """

    role: Literal["admin", "annotator"]
    name: str
    title: str
    outbox: str
    instructions: str


class ShownClass(BaseModel):
    """One button. `class` is the id to answer with."""

    model_config = ConfigDict(validate_by_name=True)
    class_id: int = Field(serialization_alias="class")
    name: str
    description: str | None


class ShownItem(BaseModel):
    """What to look at (or listen to); `media` is where it is served."""

    kind: Literal["image", "text", "audio"]
    text: str | None
    media: str | None
    media_type: str | None


class QuestionOut(BaseModel):
    """A question to show. Answer it by (id, attempt). `again`: other classes were refused before."""

    id: int
    attempt: int
    item: ShownItem
    shortlist: list[ShownClass]
    again: bool
    served_at: float
    lease_until: float


class Progress(BaseModel):
    """How many of the items (times the overlap) need no more asking, of the whole project; gold apart."""

    done: int
    total: int


class Questions(BaseModel):
    """The annotator's open questions, oldest first; show the first."""

    questions: list[QuestionOut]
    progress: Progress


class NextIn(In):
    """How many open questions to hold."""

    hold: Hold = 1


class SkipIn(In):
    """Leave a question to somebody else."""

    question: Id
    attempt: Attempt = 0
    seconds: Seconds | None = None
    hold: Hold = 0


class AnswerIn(SkipIn):
    """`answer` is a class id on the shortlist, or null for None."""

    answer: ClassId | None


class UndoIn(In):
    """Without a question: take back the latest."""

    question: Id | None = None
    attempt: Attempt | None = None
    hold: Hold = 0


class StoredOut(BaseModel):
    """The stored row."""

    id: int
    question: int
    attempt: int
    kind: Literal["answer", "skip", "undo"]
    answer: int | None
    seconds: float | None
    answered_at: float
    superseded: bool


class Saved(Questions):
    """What was stored, and the open questions if some were asked for."""

    saved: StoredOut


class InstructionsIn(In):
    """What annotators are told before they begin; empty: nothing."""

    text: Annotated[str, Field(max_length=MAX_INSTRUCTIONS), AfterValidator(check_instructions)]


class NameIn(In):
    """A new annotator."""

    name: Name


class InviteOut(BaseModel):
    """`link` signs the annotator in, on any of their devices, until it is renewed or they are removed."""

    id: int
    link: str


class TakenBack(BaseModel):
    """How many answers were undone."""

    answers: int


class LinkOut(BaseModel):
    """A link that works once."""

    link: str


class AnnotatorOut(BaseModel):
    """An annotator with what they did; what is counted on gold items is of the latest answers.

    `answers` are all, gold ones among them; `nones`, `none_share` and `median_seconds` are of the others alone. Where
    the right class was shown (`gold_shown`), a wrong one picked is a slip and None a miss; where it was not, a class
    picked is a stray.
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


class Agreement(BaseModel):
    """Of the pairs of answers about one item that could have disagreed."""

    pairs: int
    share: float | None


class SizeSeconds(BaseModel):
    """How long people take for a shortlist of this size."""

    size: int
    median_seconds: float


class MeasureOut(BaseModel):
    """A figure over time."""

    at: float
    name: str
    value: float
    answers: int


class MeasureIn(In):
    """A figure of now, such as the model's accuracy."""

    name: Name
    value: Annotated[float, Field(allow_inf_nan=False)]


class Status(BaseModel):
    """The admin page. Gold items are in `answers`, `skips` and `hours`: what people did. In nothing else."""

    title: str
    classes: int
    items: int
    items_done: int
    progress: Progress
    answers: int
    none_share: float | None
    skips: int
    hours: float | None
    agreement: Agreement
    seconds_by_size: list[SizeSeconds]
    annotators: list[AnnotatorOut]
    measures: list[MeasureOut]


class TokenIn(In):
    """A token for a program: it acts as the annotator, or as an admin where none is given."""

    label: Name
    annotator: Id | None = None


class TokenOut(BaseModel):
    """The secret is shown this once."""

    token: str


class TokenRow(BaseModel):
    """A token without its secret."""

    id: int
    label: str
    role: str
    annotator_id: int | None
    created_at: float


class ClassesIn(In):
    """Classes to add behind those there are, and what each means.

    With `descriptions`, one for each name, classes that are there already may be named as well: null leaves what is
    said of a class as it is, an empty one takes it away.
    """

    names: Annotated[list[Name], Field(min_length=1, max_length=10_000)]
    descriptions: list[Annotated[str, Field(max_length=500)] | None] | None = None

    @model_validator(mode="after")
    def one_description_a_name(self) -> Self:
        """Refuse what would go to the wrong class."""
        if self.descriptions is not None:
            if len(self.descriptions) != len(self.names):
                raise ValueError(f"{len(self.names)} names and {len(self.descriptions)} descriptions")
            if len({name.strip() for name in self.names}) < len(self.names):
                raise ValueError("a name occurs twice")
        return self


class ClassesOut(BaseModel):
    """Every class name, and what it means where that is said; the index is the class id."""

    names: list[str]
    descriptions: list[str | None]


class RenameIn(In):
    """What a class is called from now on."""

    name: Name


class ClassCounts(BaseModel):
    """How many answers picked each class, and None; gold items apart. Some seconds old at most."""

    names: list[str]
    answers: list[int]
    none: int


class TextItem(In):
    """A text to label; `gold` is the known class name, if it is one to measure annotators with."""

    name: Name
    text: Text
    gold: Name | None = None


class ItemsIn(In):
    """Texts to add. With `strict` one bad item refuses all."""

    items: Annotated[list[TextItem], Field(min_length=1, max_length=10_000)]
    strict: bool = False


class GoldAnswer(In):
    """An item of the project and the name of its class."""

    item: Name
    gold: Name


class GoldIn(In):
    """Known answers for items that nobody was asked about yet. With `strict` one bad one refuses all."""

    items: Annotated[list[GoldAnswer], Field(min_length=1, max_length=10_000)]
    strict: bool = False

    @model_validator(mode="after")
    def one_answer_an_item(self) -> Self:
        """Refuse two: gold is for good, and people are measured by it."""
        if len({answer.item for answer in self.items}) < len(self.items):
            raise ValueError("an item occurs twice")
        return self


class SkippedOut(BaseModel):
    """An item left out, and why."""

    item: str
    reason: str


class ImportOut(BaseModel):
    """What an import did."""

    added: int
    skipped: list[SkippedOut]


class AnswersImported(ImportOut):
    """Of a file of answers; `known` were in already."""

    known: int


class ItemOut(BaseModel):
    """An item as the admin sees it."""

    id: int
    name: str
    kind: str
    state: str
    gold: int | None
    pending: int


class ItemsOut(BaseModel):
    """A page of items; `after` asks for the next one."""

    items: list[ItemOut]
    after: int | None

"""What goes over the wire."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from shortlist.annotate.project.sources import MAX_INSTRUCTIONS, check_instructions, check_name, check_text

MAX_ID = 2**63 - 1

Id = Annotated[int, Field(ge=1, le=MAX_ID)]
ClassId = Annotated[int, Field(ge=0, le=2**31 - 1)]
Attempt = Annotated[int, Field(ge=0, le=2**31 - 1)]
Hold = Annotated[int, Field(ge=0, le=4, description="open questions wanted: the one shown and those to prefetch")]
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
    """The secret part of a link. `instead`: take the place of somebody else who is signed in in this browser."""

    secret: Annotated[str, Field(min_length=1, max_length=500)]
    instead: bool = False


class Who(BaseModel):
    """Who is signed in, to which project, its instructions (empty: none), and whether classes may be typed.

    `outbox` names what a browser keeps for this person in this project.
    """

    role: Literal["owner", "reviewer", "annotator"]
    name: str
    title: str
    outbox: str
    instructions: str
    typing: bool


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
    """A question to show. Answer it with its id and attempt. `again`: other classes were refused before."""

    id: int
    attempt: int
    item: ShownItem
    shortlist: list[ShownClass]
    again: bool
    served_at: float
    lease_until: float


class Progress(BaseModel):
    """How many answers (items times overlap) the project has, and needs in total; without gold items."""

    done: int
    total: int


class Questions(BaseModel):
    """The annotator's open questions, oldest first; show the first one."""

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
    """`answer` is a class id on the shortlist, or null for None; with `typed`, the id of any class."""

    answer: ClassId | None
    typed: bool = False


class UndoIn(In):
    """What to take back; without a question, the latest answer or skip."""

    question: Id | None = None
    attempt: Attempt | None = None
    hold: Hold = 0


class StoredOut(BaseModel):
    """The stored row."""

    id: int
    question: int
    attempt: int
    kind: Literal["answer", "typed", "skip", "undo"]
    answer: int | None
    seconds: float | None
    answered_at: float
    superseded: bool


class Saved(Questions):
    """What was stored, and the open questions, if `hold` asked for any."""

    saved: StoredOut


class InstructionsIn(In):
    """What annotators read before they begin; empty: nothing."""

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


class AdminIn(In):
    """Who is to come in by the link, and as what: an owner does everything, a reviewer sees and corrects answers."""

    name: Name
    role: Literal["owner", "reviewer"] = "owner"


class SessionRow(BaseModel):
    """A browser in which somebody is signed in; `this`: the one that asks."""

    id: int
    role: Literal["owner", "reviewer", "annotator"]
    name: str
    annotator_id: int | None
    created_at: float
    expires_at: float | None
    this: bool


class Erased(BaseModel):
    """What went for good: so many answers."""

    answers: int


class AuditRow(BaseModel):
    """What an owner or a reviewer did. `called`: the name today of the annotator, item or class in `subject`."""

    id: int
    at: float
    actor: str
    role: str
    action: str
    subject: str
    called: str | None
    detail: dict[str, Any]


class LinkOut(BaseModel):
    """A link that works once."""

    link: str


class MeasureIn(In):
    """A current figure, such as the model's accuracy."""

    name: Name
    value: Annotated[float, Field(allow_inf_nan=False)]


class TokenIn(In):
    """A token for a program, which acts as the annotator, or as an owner if none is given."""

    label: Name
    annotator: Id | None = None


class TokenOut(BaseModel):
    """The secret, shown only this once."""

    token: str


class TokenRow(BaseModel):
    """A token without its secret."""

    id: int
    label: str
    role: str
    annotator_id: int | None
    created_at: float


class ClassesIn(In):
    """Classes to add after the existing ones, and their descriptions.

    With `descriptions`, one per name, existing classes may be named as well: null leaves a description as it is, an
    empty one removes it.
    """

    names: Annotated[list[Name], Field(min_length=1, max_length=10_000)]
    descriptions: list[Annotated[str, Field(max_length=500)] | None] | None = None

    @model_validator(mode="after")
    def one_description_per_name(self) -> Self:
        """Refuse lists of which a description could go to the wrong class."""
        if self.descriptions is not None:
            if len(self.descriptions) != len(self.names):
                raise ValueError(f"{len(self.names)} names and {len(self.descriptions)} descriptions")
            if len({name.strip() for name in self.names}) < len(self.names):
                raise ValueError("a name occurs twice")
        return self


class ClassesOut(BaseModel):
    """Every class name and its description, if it has one; the index is the class id.

    `remark`: which of the names that were just given differ from another by capitals, spaces or zeros only.
    """

    names: list[str]
    descriptions: list[str | None]
    remark: str = ""


class RenameIn(In):
    """The new name of a class."""

    name: Name


class ClassCounts(BaseModel):
    """How many answers picked each class, and None, without gold items; at most some seconds old."""

    names: list[str]
    answers: list[int]
    none: int


class TextItem(In):
    """A text to label; `gold` is the name of its class, if it is known and is to measure annotators."""

    name: Name
    text: Text
    gold: Name | None = None


class ItemsIn(In):
    """Texts to add. With `strict`, one bad item refuses all."""

    items: Annotated[list[TextItem], Field(min_length=1, max_length=10_000)]
    strict: bool = False


class GoldAnswer(In):
    """An item of the project and the name of its class."""

    item: Name
    gold: Name


class GoldIn(In):
    """Known answers for items that nobody was asked about yet. With `strict`, a bad one refuses all."""

    items: Annotated[list[GoldAnswer], Field(min_length=1, max_length=10_000)]
    strict: bool = False

    @model_validator(mode="after")
    def one_answer_per_item(self) -> Self:
        """Refuse two for one item: gold cannot be changed later, and people are measured by it."""
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
    """What an import of answers did; `known` ones were there already."""

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

"""What the page that makes a first project sends and shows."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from shortlist.annotate.web.api.models import In, Name


class Wishes(In):
    """How the project is to be; what is not said is guessed from the file."""

    title: Annotated[str, Field(max_length=200)] = ""
    text_column: str | None = None
    label_column: Annotated[str | None, Field(description="empty: no column holds classes")] = None
    item_column: Annotated[str | None, Field(description="empty: rows are named by their numbers, from 0")] = None
    classes: Annotated[tuple[Name, ...], Field(max_length=10_000)] = ()
    size: Annotated[int, Field(ge=1, le=50)] = 5


class Guess(BaseModel):
    """A text and the classes that the names suggest for it, the likeliest first."""

    text: str
    classes: list[str]


class FirstLook(BaseModel):
    """What is in the file: its columns, those that seem to hold texts, classes and names of rows, the classes found.

    `labelled` rows have a class already: they are learned from and not asked about; `to_ask` is what is left. Of
    pictures and sounds each is a row, there is no column of texts, and `folder` is a column where they lie in several.
    Classes that are `alike` differ by capitals, spaces or zeros only.
    """

    kind: Literal["text", "image", "audio", "both"]
    rows: int
    columns: list[str]
    text_column: str
    label_column: str
    item_column: str
    classes: list[str]
    alike: list[list[str]]
    labelled: int
    to_ask: int
    guesses: list[Guess]

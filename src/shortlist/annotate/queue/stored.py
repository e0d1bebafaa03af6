"""The append-only log of answers, skips and undos: its rows, read and written."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import bindparam, select

from shortlist.annotate.db.quick import Row, Runs
from shortlist.annotate.db.schema import answers
from shortlist.annotate.db.statements import SET_QUESTION, insert_id

Kind = Literal["answer", "typed", "skip", "undo"]

_A = answers.c
_ATTEMPT = (_A.question_id == bindparam("question"), _A.attempt == bindparam("at_attempt"))
_ANSWER = select(answers).where(*_ATTEMPT, _A.kind != "undo")
_UNDO = select(answers).where(*_ATTEMPT, _A.kind == "undo")


@dataclass(frozen=True)
class Given:
    """What somebody says to a question: a class or None, picked or typed, or that they skip it; in how many seconds."""

    kind: Kind
    answer: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Stored:
    """A row of the append-only log, as it was stored."""

    id: int
    question: int
    attempt: int
    kind: Kind
    answer: int | None
    seconds: float | None
    answered_at: float
    superseded: bool


def set_question(connection: Runs, question_id: int, state: str, attempt: int) -> None:
    """Move a question to another state."""
    values = {"question": question_id, "to_state_of_question": state, "to_attempt": attempt}
    connection.execute(SET_QUESTION, values)


def append(connection: Runs, question: Row, given: Given, now: float, supersedes: int | None = None) -> Stored:
    """Store a row about the question's present attempt."""
    values: dict[str, Any] = {"question_id": question["id"], "attempt": question["attempt"], "kind": given.kind}
    values |= {"class_id": given.answer, "seconds": given.seconds, "answered_at": now, "supersedes": supersedes}
    return as_stored(insert_id(connection, answers, values), question, given, now)


def as_stored(made: int, question: Row, given: Given, now: float) -> Stored:
    """The row of that id."""
    at = (question["id"], question["attempt"])
    return Stored(made, *at, given.kind, given.answer, given.seconds, now, superseded=False)


def find_answer(connection: Runs, question: Row, attempt: int) -> Stored | None:
    """The answer or skip of this attempt."""
    row = connection.execute(_ANSWER, {"question": question["id"], "at_attempt": attempt}).mappings().first()
    return None if row is None else _read(row, superseded=attempt < question["attempt"])


def find_undo(connection: Runs, question: Row, attempt: int) -> Stored:
    """The undo that ended this attempt."""
    row = connection.execute(_UNDO, {"question": question["id"], "at_attempt": attempt}).mappings().one()
    return _read(row, superseded=False)


def _read(row: Row, superseded: bool) -> Stored:
    return Stored(
        id=row["id"],
        question=row["question_id"],
        attempt=row["attempt"],
        kind=row["kind"],
        answer=row["class_id"],
        seconds=row["seconds"],
        answered_at=row["answered_at"],
        superseded=superseded,
    )

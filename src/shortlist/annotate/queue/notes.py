"""What annotators say beside their answers: comments and flags on an item, the reason for a skip.

Each may be sent again without harm: the same words of the same person about the same item are one note.
"""

import time
from collections.abc import Callable
from typing import Literal

from sqlalchemy import Connection, insert, select, update

from shortlist.annotate.db.schema import Annotator, Answer, Note, Question
from shortlist.annotate.db.store import Store
from shortlist.annotate.problems import Invalid, NotFound

Kind = Literal["comment", "flag"]
Reason = Literal["unclear", "broken", "unlisted", "mine"]
"""Why somebody skips: it is unclear, it cannot be seen, its class is not in the list, it is not for them."""


class Notes:
    """The notes of one project."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def add(self, annotator_id: int, question_id: int, kind: Kind, text: str) -> int:
        """Say something about the item of a question that one was asked; returns the note's id."""
        text = text.strip()
        if kind == "comment" and not text:
            raise Invalid("empty", "a comment without words")
        with self._store.write() as connection:
            item_id, author = self._asked(connection, annotator_id, question_id)
            said = {"item_id": item_id, "annotator_id": annotator_id, "kind": kind, "text": text}
            open_one = Note.closed_at.is_(None)  # what was dealt with may be said again
            same = select(Note.id).filter_by(**said).where(open_one)
            found = connection.execute(same).scalar()
            if found is None:
                made = insert(Note).values(**said, author=author, at=self._clock()).returning(Note.id)
                found = connection.execute(made).scalar_one()
            return int(found)

    def explain(self, annotator_id: int, question_id: int, attempt: int, reason: Reason | None) -> None:
        """Say why one skipped; None takes the reason back."""
        skip = (Answer.question_id == question_id, Answer.attempt == attempt, Answer.kind == "skip")
        with self._store.write() as connection:
            self._asked(connection, annotator_id, question_id)
            if not connection.execute(update(Answer).where(*skip).values(reason=reason)).rowcount:
                raise NotFound("no_skip", f"question {question_id} was not skipped at attempt {attempt}")

    @staticmethod
    def _asked(connection: Connection, annotator_id: int, question_id: int) -> tuple[int, str]:
        """The item of the question, and the annotator's name."""
        statement = (
            select(Question.item_id, Annotator.name)
            .join(Annotator, Annotator.id == Question.annotator_id)
            .where(Question.id == question_id, Question.annotator_id == annotator_id)
        )
        row = connection.execute(statement).first()
        if row is None:
            raise NotFound("no_question", f"question {question_id} is not one of yours")
        return row.item_id, row.name

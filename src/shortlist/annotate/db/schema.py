"""The tables. Times are seconds since 1970 (UTC); states are short words, listed beside the column."""

from typing import Any, cast

from sqlalchemy import JSON, BigInteger, Boolean, Float, ForeignKey, Index, Integer, String, Table, UniqueConstraint
from sqlalchemy import text as sql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

REVISION = "0007"  # the newest migration; to open a database at this revision, alembic is not imported

# SQLite counts rows up by itself only where the key is plain INTEGER
ID = BigInteger().with_variant(Integer, "sqlite")

# SQLite would give the id of an erased row to the next one; browsers and files may still hold it for the old one
NO_ID_TWICE = {"sqlite_autoincrement": True}

NO_CLASS = -1
"""As the known class of an item: it is of none of the classes, so it is neither asked about nor learned from."""


class Base(DeclarativeBase):
    """Every table of the app."""


class LabelClass(Base):
    """A class. Its id is its index: 0, 1, 2, ... in the order of classes.txt; classes are added, never removed.

    One that was merged into another or retired keeps its id, because lists shown before refer to it (`class_map`).
    """

    __tablename__ = "classes"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(String, unique=True)
    description: Mapped[str | None] = mapped_column(String)
    merged_into: Mapped[int | None] = mapped_column(Integer)  # the class that it is a part of now
    ended_at: Mapped[float | None] = mapped_column(Float)  # when it was merged, or retired: no item is of it any more
    __table_args__ = (
        Index(
            "classes_ended",
            "id",
            sqlite_where=sql("ended_at IS NOT NULL"),
            postgresql_where=sql("ended_at IS NOT NULL"),
        ),
    )


class Item(Base):
    """Something to label. `pending` counts its slots that still wait for an answer."""

    __tablename__ = "items"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(String, unique=True)
    kind: Mapped[str] = mapped_column(String)  # image | text | audio
    text: Mapped[str | None] = mapped_column(String)
    file: Mapped[str | None] = mapped_column(String)  # below the project's media folder
    media_type: Mapped[str | None] = mapped_column(String)
    gold: Mapped[int | None] = mapped_column(ForeignKey("classes.id"))  # the known answer
    state: Mapped[str] = mapped_column(String)  # open | done | closed (the policy does not ask about it any more)
    pending: Mapped[int] = mapped_column(Integer)
    # a class known without asking: learned from, not asked about; or NO_CLASS
    known: Mapped[int | None] = mapped_column(Integer)
    was_known: Mapped[int | None] = mapped_column(Integer)  # the class known until it was retired
    __table_args__ = (
        *(
            Index(
                f"items_{name}",
                "id",
                sqlite_where=sql(f"{name} IS NOT NULL"),
                postgresql_where=sql(f"{name} IS NOT NULL"),
            )
            for name in ("gold", "known")
        ),
        NO_ID_TWICE,
    )


class Annotator(Base):
    """A person (or a program) that answers. The counters leave out answers that were taken back."""

    __tablename__ = "annotators"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(String, unique=True)
    active: Mapped[bool] = mapped_column(Boolean)
    invite_serial: Mapped[int] = mapped_column(Integer)  # an invite link carries it; a new link outdates the old one
    created_at: Mapped[float] = mapped_column(Float)
    answers: Mapped[int] = mapped_column(Integer)
    nones: Mapped[int] = mapped_column(Integer)
    skips: Mapped[int] = mapped_column(Integer)
    gold_seen: Mapped[int] = mapped_column(BigInteger)  # unused: gold items once came in the order of their ids
    __table_args__ = (NO_ID_TWICE,)


class Slot(Base):
    """One person's say on an item: an overlap of n is n slots. Free ones are given out by rank, a freed one last."""

    __tablename__ = "slots"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    number: Mapped[int] = mapped_column(BigInteger)
    gold: Mapped[bool] = mapped_column(Boolean)
    state: Mapped[str] = mapped_column(String)  # free | leased | done | closed
    rank: Mapped[int] = mapped_column(BigInteger)
    turn: Mapped[int] = mapped_column(Integer)  # 0, then 1, 2, ... when a None is asked again with another shortlist
    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotators.id"))
    lease_until: Mapped[float | None] = mapped_column(Float)
    __table_args__ = (
        UniqueConstraint("item_id", "number"),
        UniqueConstraint("item_id", "annotator_id"),  # nobody has two slots of an item
        Index("slots_queue", "gold", "state", "rank"),
        Index("slots_rank", "rank"),
        Index("slots_leases", "state", "lease_until"),
    )


class Question(Base):
    """What was shown to whom, stored before it is shown. `attempt` counts the undos."""

    __tablename__ = "questions"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    slot_id: Mapped[int] = mapped_column(ForeignKey("slots.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotators.id"))
    turn: Mapped[int] = mapped_column(Integer)
    shortlist: Mapped[list[int]] = mapped_column(JSON)  # class ids in the order shown
    policy: Mapped[str] = mapped_column(String)
    policy_version: Mapped[str] = mapped_column(String)
    # how likely each shown class was to be on the list; the column keeps the name that the first projects gave it
    inclusion: Mapped[list[float]] = mapped_column("probabilities", JSON)
    seed: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(String)  # open | answered | skipped | expired
    attempt: Mapped[int] = mapped_column(Integer)
    served_at: Mapped[float] = mapped_column(Float)
    way: Mapped[str | None] = mapped_column(String)  # full | search | shortlist where ways are compared
    __table_args__ = (
        # the database itself refuses a second lease of a slot
        Index(
            "questions_one_open",
            "slot_id",
            unique=True,
            sqlite_where=sql("state = 'open'"),
            postgresql_where=sql("state = 'open'"),
        ),
        Index("questions_of_annotator", "annotator_id", "item_id"),
        Index("questions_held", "annotator_id", "state", "id"),
        Index("questions_of_slot", "slot_id", "turn"),
        NO_ID_TWICE,
    )


class Answer(Base):
    """Append-only. An undo is a row of its own that supersedes the answer (or skip) it takes back."""

    __tablename__ = "answers"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    question_id: Mapped[int] = mapped_column(ForeignKey("questions.id"))
    attempt: Mapped[int] = mapped_column(Integer)
    kind: Mapped[str] = mapped_column(String)  # answer | typed (a class found among all of them) | skip | undo
    class_id: Mapped[int | None] = mapped_column(ForeignKey("classes.id"))  # of an answer; null is None
    seconds: Mapped[float | None] = mapped_column(Float)  # measured in the browser
    answered_at: Mapped[float] = mapped_column(Float)
    supersedes: Mapped[int | None] = mapped_column(ForeignKey("answers.id"), unique=True)
    reason: Mapped[str | None] = mapped_column(String)  # of a skip: unclear | broken | unlisted | mine
    __table_args__ = (
        Index("answers_of_class", "class_id", "question_id"),
        # the database itself refuses a second answer to the same attempt
        Index(
            "answers_once",
            "question_id",
            "attempt",
            unique=True,
            sqlite_where=sql("kind <> 'undo'"),
            postgresql_where=sql("kind <> 'undo'"),
        ),
    )


class Note(Base):
    """What somebody wrote about an item: a comment, or a flag that an owner or reviewer closes."""

    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotators.id"))  # null: an owner or reviewer
    author: Mapped[str] = mapped_column(String)  # their name at that time
    kind: Mapped[str] = mapped_column(String)  # comment | flag
    text: Mapped[str] = mapped_column(String)  # of a flag it may be empty
    at: Mapped[float] = mapped_column(Float)
    closed_by: Mapped[str | None] = mapped_column(String)
    closed_at: Mapped[float | None] = mapped_column(Float)
    __table_args__ = (
        Index("notes_of_item", "item_id", "id"),
        Index(
            "notes_open_flags",
            "item_id",
            sqlite_where=sql("kind = 'flag' AND closed_at IS NULL"),
            postgresql_where=sql("kind = 'flag' AND closed_at IS NULL"),
        ),
        NO_ID_TWICE,
    )


class Correction(Base):
    """Append-only: a class that a reviewer gave an item, or an undo of the latest one that stands.

    `version` counts an item's rows, so that of two reviewers who saw the same one only one is taken.
    """

    __tablename__ = "corrections"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    version: Mapped[int] = mapped_column(Integer)  # 1, 2, 3, ... of an item
    kind: Mapped[str] = mapped_column(String)  # correction | undo
    class_id: Mapped[int | None] = mapped_column(ForeignKey("classes.id"))  # null: no class (or an undo)
    undoes: Mapped[int | None] = mapped_column(Integer)  # the version that an undo takes back
    before: Mapped[int | None] = mapped_column(Integer)  # what the item's known (or gold) class was until then
    author: Mapped[str] = mapped_column(String)
    why: Mapped[str] = mapped_column(String)
    at: Mapped[float] = mapped_column(Float)
    __table_args__ = (UniqueConstraint("item_id", "version"),)


class Credential(Base):
    """A session, a program's token or the admin's one-time link. Only the digest of the secret is kept."""

    __tablename__ = "credentials"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    digest: Mapped[str] = mapped_column(String, unique=True)
    kind: Mapped[str] = mapped_column(String)  # session | token | link
    role: Mapped[str] = mapped_column(String)  # owner | reviewer | annotator
    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotators.id"), index=True)
    label: Mapped[str] = mapped_column(String)  # of an owner or a reviewer, the name; of a token, what it is for
    created_at: Mapped[float] = mapped_column(Float)
    expires_at: Mapped[float | None] = mapped_column(Float)
    __table_args__ = (NO_ID_TWICE,)


class Measure(Base):
    """A figure over time that a trainer reports, such as the model's accuracy so far."""

    __tablename__ = "measures"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    at: Mapped[float] = mapped_column(Float)
    name: Mapped[str] = mapped_column(String)
    value: Mapped[float] = mapped_column(Float)
    answers: Mapped[int] = mapped_column(Integer)  # standing answers at that moment: the x axis
    __table_args__ = (Index("measures_by_name", "name", "id"),)


class AuditEntry(Base):
    """What an owner or a reviewer did, never changed. People are named by their ids: they may be erased."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(ID, primary_key=True)
    at: Mapped[float] = mapped_column(Float)
    actor: Mapped[str] = mapped_column(String)
    role: Mapped[str] = mapped_column(String)
    action: Mapped[str] = mapped_column(String)  # such as "invite"
    subject: Mapped[str] = mapped_column(String)  # such as "annotator 7"
    detail: Mapped[dict[str, Any]] = mapped_column(JSON)


# The same tables without the object layer: statements built on these once, at import, cost the queue the least.
classes, items, annotators, slots, questions, answers, credentials, measures, notes, corrections = (
    cast(Table, model.__table__)
    for model in (LabelClass, Item, Annotator, Slot, Question, Answer, Credential, Measure, Note, Correction)
)


def tables() -> list[Table]:
    """Every table, parents before children: the order in which rows can be inserted."""
    return list(Base.metadata.sorted_tables)

"""The first tables.

Frozen: later changes are new files; `schema.py` is what the newest of them arrives at (a test compares the two).
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make them, parents before children."""
    _annotators()
    _classes()
    _measures()
    _credentials()
    _items()
    _slots()
    _questions()
    _answers()


def downgrade() -> None:
    """Drop them, children before parents."""
    for table in ("answers", "questions", "slots", "items", "credentials", "measures", "classes", "annotators"):
        op.drop_table(table)


def _annotators() -> None:
    op.create_table(
        "annotators",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("invite_serial", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.Column("nones", sa.Integer(), nullable=False),
        sa.Column("skips", sa.Integer(), nullable=False),
        sa.Column("gold_seen", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )


def _classes() -> None:
    op.create_table(
        "classes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )


def _measures() -> None:
    op.create_table(
        "measures",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("measures_by_name", "measures", ["name", "id"], unique=False)


def _credentials() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("annotator_id", ID, nullable=True),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["annotator_id"],
            ["annotators.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_credentials_annotator_id", "credentials", ["annotator_id"], unique=False)


def _items() -> None:
    op.create_table(
        "items",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=True),
        sa.Column("file", sa.String(), nullable=True),
        sa.Column("media_type", sa.String(), nullable=True),
        sa.Column("gold", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["gold"],
            ["classes.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index(
        "items_gold",
        "items",
        ["id"],
        unique=False,
        sqlite_where=sa.text("gold IS NOT NULL"),
        postgresql_where=sa.text("gold IS NOT NULL"),
    )


def _slots() -> None:
    op.create_table(
        "slots",
        sa.Column("id", ID, nullable=False),
        sa.Column("item_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("gold", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("annotator_id", ID, nullable=True),
        sa.Column("lease_until", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["annotator_id"],
            ["annotators.id"],
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["items.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("item_id", "annotator_id"),
        sa.UniqueConstraint("item_id", "number"),
    )
    op.create_index("slots_leases", "slots", ["state", "lease_until"], unique=False)
    op.create_index("slots_queue", "slots", ["gold", "state", "rank"], unique=False)
    op.create_index("slots_rank", "slots", ["rank"], unique=False)


def _questions() -> None:
    op.create_table(
        "questions",
        sa.Column("id", ID, nullable=False),
        sa.Column("slot_id", ID, nullable=False),
        sa.Column("item_id", ID, nullable=False),
        sa.Column("annotator_id", ID, nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("shortlist", sa.JSON(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("policy_version", sa.String(), nullable=False),
        sa.Column("probabilities", sa.JSON(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("served_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["annotator_id"],
            ["annotators.id"],
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["items.id"],
        ),
        sa.ForeignKeyConstraint(
            ["slot_id"],
            ["slots.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("questions_held", "questions", ["annotator_id", "state", "id"], unique=False)
    op.create_index("questions_of_annotator", "questions", ["annotator_id", "item_id"], unique=False)
    op.create_index("questions_of_slot", "questions", ["slot_id", "turn"], unique=False)
    op.create_index(
        "questions_one_open",
        "questions",
        ["slot_id"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )


def _answers() -> None:
    op.create_table(
        "answers",
        sa.Column("id", ID, nullable=False),
        sa.Column("question_id", ID, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("answered_at", sa.Float(), nullable=False),
        sa.Column("supersedes", ID, nullable=True),
        sa.ForeignKeyConstraint(
            ["class_id"],
            ["classes.id"],
        ),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["questions.id"],
        ),
        sa.ForeignKeyConstraint(
            ["supersedes"],
            ["answers.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("supersedes"),
    )
    op.create_index(
        "answers_once",
        "answers",
        ["question_id", "attempt"],
        unique=True,
        sqlite_where=sa.text("kind <> 'undo'"),
        postgresql_where=sa.text("kind <> 'undo'"),
    )

"""Comments and flags, reasons for skips, corrections by reviewers, classes that were merged or retired."""

import sqlalchemy as sa
from alembic import op

from shortlist.annotate.db.schema import ID

revision = "0005"
down_revision = "0004"
OPEN_FLAG = sa.text("kind = 'flag' AND closed_at IS NULL")
ENDED = sa.text("ended_at IS NOT NULL")


def upgrade() -> None:
    """Nothing of this kind was said so far."""
    op.add_column("classes", sa.Column("merged_into", sa.Integer(), nullable=True))
    op.add_column("classes", sa.Column("ended_at", sa.Float(), nullable=True))
    op.create_index("classes_ended", "classes", ["id"], sqlite_where=ENDED, postgresql_where=ENDED)
    op.add_column("answers", sa.Column("reason", sa.String(), nullable=True))
    op.create_index("answers_of_class", "answers", ["class_id", "question_id"])
    op.create_table(
        "notes",
        sa.Column("id", ID, nullable=False),
        sa.Column("item_id", ID, nullable=False),
        sa.Column("annotator_id", ID, nullable=True),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("closed_by", sa.String(), nullable=True),
        sa.Column("closed_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"]),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotators.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("notes_of_item", "notes", ["item_id", "id"])
    op.create_index("notes_open_flags", "notes", ["item_id"], sqlite_where=OPEN_FLAG, postgresql_where=OPEN_FLAG)
    op.create_table(
        "corrections",
        sa.Column("id", ID, nullable=False),
        sa.Column("item_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=True),
        sa.Column("undoes", sa.Integer(), nullable=True),
        sa.Column("before", sa.Integer(), nullable=True),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"]),
        sa.ForeignKeyConstraint(["class_id"], ["classes.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("item_id", "version"),
    )


def downgrade() -> None:
    """Forget all of it."""
    op.drop_table("corrections")
    op.drop_table("notes")
    op.drop_index("answers_of_class", "answers")
    op.drop_column("answers", "reason")
    op.drop_index("classes_ended", "classes")
    op.drop_column("classes", "ended_at")
    op.drop_column("classes", "merged_into")

"""Typed answers, and the way in which a question was asked.

A typed answer is a row of `answers` of its own kind and needs no column; but a version that does not know this kind
would leave such answers out, so it must not open the database.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """No question so far was asked to compare ways."""
    op.add_column("questions", sa.Column("way", sa.String(), nullable=True))


def downgrade() -> None:
    """Forget how they were asked."""
    op.drop_column("questions", "way")

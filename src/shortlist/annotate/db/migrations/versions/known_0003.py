"""Items whose class is known without asking anybody."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Of the existing items nothing is known yet."""
    op.add_column("items", sa.Column("known", sa.Integer(), nullable=True))
    known = sa.text("known IS NOT NULL")
    op.create_index("items_known", "items", ["id"], sqlite_where=known, postgresql_where=known)


def downgrade() -> None:
    """Forget what is known."""
    op.drop_index("items_known", "items")
    op.drop_column("items", "known")

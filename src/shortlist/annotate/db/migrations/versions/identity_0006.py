"""Owners and reviewers by name, and a log of what they did. Until now an owner was an "admin" without a name."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Those who are signed in stay so, under the name "owner"."""
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("UPDATE credentials SET label = 'owner' WHERE role = 'admin' AND kind <> 'token'")
    op.execute("UPDATE credentials SET role = 'owner' WHERE role = 'admin'")


def downgrade() -> None:
    """Reviewers go: there was no such role."""
    op.execute("DELETE FROM credentials WHERE role = 'reviewer'")
    op.execute("UPDATE credentials SET role = 'admin' WHERE role = 'owner'")
    op.drop_table("audit")

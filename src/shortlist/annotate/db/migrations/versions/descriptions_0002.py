"""What a class means, in a sentence below its name."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Existing classes have none yet."""
    op.add_column("classes", sa.Column("description", sa.String(), nullable=True))


def downgrade() -> None:
    """Forget them."""
    op.drop_column("classes", "description")

"""No number is given twice on SQLite, and a class that comes back into use has its known items again.

Without AUTOINCREMENT, SQLite gives the number of the last row to the next one once that row is erased. Browsers,
programs and files that still hold the number would take the new row for the old one. SQLite cannot change this in
place, so the tables are copied.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# those whose numbers leave the database and whose rows can be deleted
COPIED = ("items", "annotators", "questions", "notes", "credentials")


def upgrade() -> None:
    """Rows keep their numbers. PostgreSQL gives no number twice anyway."""
    op.add_column("items", sa.Column("was_known", sa.Integer(), nullable=True))
    if op.get_bind().dialect.name == "sqlite":
        for table in COPIED:
            with op.batch_alter_table(table, recreate="always", table_kwargs={"sqlite_autoincrement": True}):
                pass


def downgrade() -> None:
    """The older versions work with such tables as well."""
    op.drop_column("items", "was_known")

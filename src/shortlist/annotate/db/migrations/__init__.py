"""Alembic migrations, run from inside the package; one directory for SQLite and PostgreSQL."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

ADVISORY_LOCK = 6_074_112  # any fixed number: two servers starting on one PostgreSQL take turns


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Bring the tables to `revision` in the transaction that is open on `connection`."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)

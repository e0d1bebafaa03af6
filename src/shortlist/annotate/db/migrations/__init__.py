"""Alembic migrations, run from inside the package; one directory for SQLite and PostgreSQL."""

from pathlib import Path

from alembic import command
from alembic.config import Config

from shortlist.annotate.db.store import Store

ADVISORY_LOCK = 6_074_112  # any fixed number: two servers starting on one PostgreSQL take turns


def upgrade(store: Store, revision: str = "head") -> None:
    """Bring the tables to `revision` in one transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    with store.write() as connection:
        if not store.is_sqlite:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

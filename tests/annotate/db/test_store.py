import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import insert, inspect, text

from shortlist.annotate.db import migrations
from shortlist.annotate.db.schema import REVISION, Base, LabelClass
from shortlist.annotate.db.store import Store, sqlite_url
from shortlist.errors import InputError


def downgrade(store: Store, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", migrations.__path__[0])
    with store.write() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def opened(database: str | None, tmp_path) -> Store:
    return Store.open(database or sqlite_url(tmp_path / "a.db"))


def test_migrations_arrive_at_the_schema(database, tmp_path):
    store = opened(database, tmp_path)
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == REVISION
    store.close()


def test_an_open_store_is_found_as_it_was_left(database, tmp_path):
    store = opened(database, tmp_path)
    with store.write() as connection:
        connection.execute(insert(LabelClass), [{"id": 0, "name": "a"}])
    store.close()
    again = opened(database, tmp_path)
    with again.read() as connection:
        assert connection.execute(text("SELECT name FROM classes")).scalars().all() == ["a"]
    assert again.check() == []
    again.close()


def test_a_failed_block_leaves_nothing(database, tmp_path):
    store = opened(database, tmp_path)

    def fail() -> None:
        with store.write() as connection:
            connection.execute(insert(LabelClass), [{"id": 0, "name": "a"}])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM classes")).scalar() == 0
    store.close()


def test_migrations_go_back_down(tmp_path):
    store = opened(None, tmp_path)
    downgrade(store, "base")
    with store.read() as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
    store.close()


def test_sqlite_is_durable_and_writers_begin_at_once(tmp_path):
    store = opened(None, tmp_path)
    with store.write() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
        # IMMEDIATE: the lock is held before anything was written
        other = store.engine.raw_connection()
        other.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(Exception, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
    store.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql://x/y", "sqlite://", "postgresql://nobody@/x?host=/nowhere"])
def test_a_bad_database_is_one_clear_line(url):
    with pytest.raises(InputError) as error:
        Store.open(url)
    assert "\n" not in str(error.value)


def set_revision(store: Store, revision: str) -> None:
    with store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def test_a_database_of_a_newer_version_is_one_clear_line(database, tmp_path):
    store = opened(database, tmp_path)
    set_revision(store, "0009")
    store.close()
    with pytest.raises(
        InputError, match=r"by a newer Shortlist \(revision 0009, this one knows \d{4}\): upgrade"
    ) as error:
        opened(database, tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004"])
def test_an_older_database_is_brought_up_to_date_with_what_it_holds(database, tmp_path, revision):
    store = opened(database, tmp_path)
    with store.write() as connection:
        connection.execute(insert(LabelClass), [{"id": 0, "name": "a"}])
    downgrade(store, revision)
    store.close()
    again = opened(database, tmp_path)
    with again.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
        assert connection.execute(text("SELECT name, description FROM classes")).all() == [("a", None)]
    again.close()

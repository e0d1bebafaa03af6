import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, event, text

from shortlist.annotate.db import group_commit
from shortlist.annotate.db import store as stores
from shortlist.annotate.db.group_commit import GroupCommit


@pytest.fixture
def group(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path / 'a.db'}")
    event.listen(engine, "connect", stores._prepare_sqlite)
    event.listen(engine, "begin", stores._begin_sqlite)
    made = GroupCommit(engine.execution_options(shortlist_write=True))
    with made.write() as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER UNIQUE CHECK (x < 1000))"))
    made.commits = 0
    event.listen(engine, "commit", lambda _: setattr(made, "commits", made.commits + 1))
    yield made
    made.close()
    engine.dispose()


def add(group: GroupCommit, x: int) -> None:
    with group.write() as connection:
        connection.execute(text("INSERT INTO t VALUES (:x)"), {"x": x})


def stored(group: GroupCommit) -> list[int]:
    """What another connection sees: what is committed."""
    with group._engine.connect().execution_options(shortlist_write=False) as connection:
        return sorted(connection.execute(text("SELECT x FROM t")).scalars())


def test_a_lone_writer_commits_at_once(group):
    for x in range(5):
        add(group, x)
        assert stored(group) == list(range(x + 1))
    assert group.commits == 5


def test_each_is_on_the_disk_when_its_block_is_left(group):
    def one(x: int) -> bool:
        add(group, x)
        return x in stored(group)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(300)))
    assert stored(group) == list(range(300))


@pytest.mark.parametrize(("seconds", "commits"), [(60.0, 1), (0.0, 12)])
def test_those_who_wait_share_a_commit_as_long_as_the_first_may_wait(group, monkeypatch, seconds, commits):
    monkeypatch.setattr(group_commit, "MAX_SECONDS", seconds)
    with ThreadPoolExecutor(11) as pool:
        with group.write() as connection:
            rest = [pool.submit(add, group, x) for x in range(1, 12)]
            while group._waiting < len(rest):
                time.sleep(0.001)
            connection.execute(text("INSERT INTO t VALUES (0)"))
        for future in rest:
            future.result()
    assert stored(group) == list(range(12))
    assert group.commits == commits


def test_one_that_fails_takes_nobody_with_it(group):
    def one(x: int) -> str:
        try:
            add(group, 5000 + x if x % 3 == 0 else x)
        except Exception as error:
            return type(error).__name__
        return "stored"

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(one, range(120)))
    assert outcomes == ["IntegrityError" if x % 3 == 0 else "stored" for x in range(120)]
    assert stored(group) == [x for x in range(120) if x % 3]


def test_a_lost_transaction_is_reported_and_the_next_one_works(group):
    begun = threading.Event()

    def lose() -> None:
        with group.write() as connection:
            connection.execute(text("INSERT INTO t VALUES (1)"))
            begun.set()
            time.sleep(0.05)
            connection.connection.driver_connection.rollback()  # as SQLite does by itself when the disk is full

    def join() -> None:
        begun.wait()
        add(group, 2)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(lose), pool.submit(join)]
        errors = [future.exception(timeout=10) for future in futures]
    assert errors[0] is not None
    assert errors[1] is None
    add(group, 3)
    assert stored(group) == [2, 3]


def test_a_failed_commit_fails_everybody_in_the_batch(group, monkeypatch):
    monkeypatch.setattr(group_commit, "MAX_SECONDS", 10.0)  # the first leaves the commit to the second
    begun = threading.Event()

    def store() -> None:
        with group.write() as connection:
            connection.execute(text("INSERT INTO t VALUES (1)"))
            begun.set()
            time.sleep(0.05)

    def lose() -> None:
        begun.wait()
        with group.write() as connection:
            connection.connection.driver_connection.rollback()

    with ThreadPoolExecutor(2) as pool:
        errors = [future.exception(timeout=10) for future in [pool.submit(store), pool.submit(lose)]]
    assert all(errors), "the first was not acknowledged either"
    assert stored(group) == []

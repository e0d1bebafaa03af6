"""People who wait are served in one transaction, step by step together on PostgreSQL: nobody notices the others."""

import asyncio
import threading

import pytest
from sqlalchemy import func, select

from shortlist.annotate.db import store
from shortlist.annotate.db.quick import Quick
from shortlist.annotate.db.schema import Answer, Question
from shortlist.annotate.db.writer import Writer
from shortlist.annotate.problems import Conflict, NotFound
from shortlist.annotate.queue.stored import Given

from ..conftest import Clock, new_database, people

NONE = Given("answer", None, 1.0)


def together(project, *calls):
    """What came of each (key, call), the error where there was one: all are served in one batch, in this order."""
    writer, ready, batches = Writer(project.store), threading.Event(), []

    def wait(_):
        ready.wait(30)
        yield

    run = writer._run
    writer._run = lambda parts, again=False: (batches.append(len(parts)), run(parts, again))[1]

    async def ask():
        first = writer.ask(-1, wait)
        rest = [writer.ask(key, call) for key, call in calls]
        ready.set()
        await first
        return await asyncio.gather(*rest, return_exceptions=True)

    found = asyncio.run(ask())
    return found, batches[1:]


def asks(queue, who, hold=1):
    return who, lambda connection: queue.asking(connection, who, hold)


def says(queue, who, question, hold=0, given=NONE):
    return who, lambda connection: queue.submitting(connection, who, question, 0, given, hold)


def test_a_batch_is_as_good_as_one_after_another(make_project, database):
    """And whoever is refused takes nobody with them."""
    project = make_project(database, items=40, gold=5, gold_every=3, overlap=2)
    queue, crowd = project.queue(), people(project, *map(str, range(30)))
    held, sizes = together(project, *(asks(queue, who) for who in crowd))
    assert sizes == [30]
    assert len({q.id for (q,) in held}) == 30
    wrong = held[0][0].id
    calls = [
        says(queue, who, wrong if k % 5 == 1 else q.id, hold=1)
        for k, (who, (q,)) in enumerate(zip(crowd, held, strict=True))
    ]
    found, sizes = together(project, *calls)
    assert sizes == [30]
    for k, one in enumerate(found):
        if k % 5 == 1:
            assert isinstance(one, NotFound)
        else:
            stored, (after,) = one
            assert (stored.question, stored.kind) == (held[k][0].id, "answer")
            assert after.id > stored.question
    assert len({one[0].id for one in found if not isinstance(one, NotFound)}) == 24
    with project.store.read() as connection:
        assert connection.execute(select(func.count()).select_from(Answer)).scalar_one() == 24
    assert project.check() == []


def test_what_one_person_asks_for_twice_is_not_asked_together(make_project, database):
    """Two tabs see the same question; the second of two answers finds the first one stored."""
    project = make_project(database, items=9)
    queue, (ada, bob) = project.queue(), people(project, "ada", "bob")
    ((q,), (same,), (other,)), sizes = together(project, asks(queue, ada), asks(queue, ada), asks(queue, bob))
    assert sizes == [2, 1]
    assert q.id == same.id != other.id
    found, _ = together(project, says(queue, ada, q.id), says(queue, bob, other.id), says(queue, ada, q.id))
    assert found[0] == found[2] != found[1]
    taken, _ = together(project, says(queue, ada, q.id, given=Given("skip")), asks(queue, ada))
    assert isinstance(taken[0], Conflict)
    assert project.check() == []


@pytest.mark.parametrize("first", ["ada", "bob"])
def test_a_lease_that_runs_out_while_its_holder_is_served_is_not_given_away(make_project, database, first):
    project, clock = make_project(database, items=1), Clock()
    queue, (ada, bob) = project.queue(clock=clock), people(project, "ada", "bob")
    (q,) = queue.next(ada)
    clock.now += 10_000
    calls = {"ada": says(queue, ada, q.id), "bob": asks(queue, bob)}
    found, sizes = together(project, calls.pop(first), *calls.values())
    assert sizes == [2]
    assert [] in found, "there was one item, and ada has answered"
    assert project.check() == []
    with project.store.read() as connection:
        assert connection.execute(select(Question.state)).scalars().all() == ["answered"]


@pytest.mark.parametrize("first", ["ada", "bob"])
def test_a_late_answer_counts_only_if_nobody_was_given_the_slot_in_the_same_batch(make_project, database, first):
    project, clock = make_project(database, items=1), Clock()
    queue, (ada, bob) = project.queue(clock=clock), people(project, "ada", "bob")
    (q,) = queue.next(ada)
    queue.release(ada)
    calls = {"ada": says(queue, ada, q.id), "bob": asks(queue, bob)}
    found, sizes = together(project, calls.pop(first), *calls.values())
    assert sizes == [2]
    said, held = found if first == "ada" else reversed(found)
    assert isinstance(said, Conflict) == bool(held), "one of the two has it"
    assert project.check() == []


def end_connections(url: str) -> None:
    """As when PostgreSQL was started anew."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.mark.postgres
def test_a_connection_that_died_meanwhile_is_replaced(make_project, postgres, monkeypatch):
    monkeypatch.setattr(store, "TRUSTED_SECONDS", 0.0)
    url = new_database(postgres)
    project = make_project(url, items=9)
    (ada,) = people(project, "ada")
    end_connections(url)
    assert len(project.queue().next(ada)) == 1


@pytest.mark.postgres
@pytest.mark.parametrize("others", [[], ["bob", "cem"]])
def test_what_was_lost_with_its_connection_is_run_again(make_project, postgres, others):
    url = new_database(postgres)
    project = make_project(url, items=9)
    queue, crowd = project.queue(), people(project, "ada", *others)
    ends = iter([end_connections])

    def asks_and_loses(connection):
        next(ends, str)(url)
        return (yield from queue.asking(connection, crowd[0], 1))

    found, _ = together(project, (crowd[0], asks_and_loses), *(asks(queue, who) for who in crowd[1:]))
    assert all(len(held) == 1 for held in found), found
    assert project.check() == []


@pytest.mark.postgres
def test_a_commit_that_was_not_heard_of_is_not_repeated(make_project, postgres, monkeypatch):
    """It may have been done: everybody in the batch is told, and asks again."""
    url = new_database(postgres)
    project = make_project(url, items=9)
    queue, (ada, bob) = project.queue(), people(project, "ada", "bob")
    commit = Quick.commit

    def lose(quick):
        commit(quick)
        if len(quick.together_with) > 1:
            monkeypatch.undo()
            end_connections(url)

    monkeypatch.setattr(Quick, "commit", lose)
    found, sizes = together(project, asks(queue, ada), asks(queue, bob))
    assert sizes == [2], "not run again"
    assert all(isinstance(one, Exception) for one in found)
    (again,) = queue.next(ada)
    assert queue.next(ada)[0].id == again.id
    assert project.check() == []

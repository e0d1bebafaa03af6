"""A person or an item erased: nothing is left of it, and all that was counted still adds up."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, func, select, text

from shortlist.annotate.db.schema import Annotator, Answer, Item, Note, Question, Slot, tables
from shortlist.annotate.problems import NotFound, Unauthorized
from shortlist.annotate.project.audit import CommandLine, read_audit
from shortlist.annotate.project.erasing import erase_item, erase_person
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import DATABASE
from shortlist.annotate.project.sources import Source
from shortlist.annotate.queue.notes import Notes
from shortlist.annotate.setup import export_file

from ..conftest import people


def work(project, names, rounds=6):
    """Everybody answers, says None, skips and takes back in turn."""
    queue, ids = project.queue(), people(project, *names)
    for k in range(rounds):
        for annotator in ids:
            for question in queue.next(annotator, 1):
                if k % 4 == 3:
                    queue.skip(annotator, question.id, question.attempt)
                else:
                    queue.answer(
                        annotator, question.id, question.attempt, None if k % 4 == 1 else question.shortlist[0], 1.0
                    )
                if k % 5 == 2:
                    queue.undo(annotator, question.id, question.attempt)
    return ids


def check_sums(project):
    """Counters against the rows themselves, one by one."""
    with project.store.read() as connection:
        answers = connection.execute(
            select(Answer.kind, Answer.class_id, Question.annotator_id)
            .join(Question, Question.id == Answer.question_id)
            .where(Answer.kind != "undo", Answer.attempt == Question.attempt)
        ).all()
        for row in connection.execute(select(Annotator.id, Annotator.answers, Annotator.nones, Annotator.skips)):
            mine = [one for one in answers if one.annotator_id == row.id]
            assert row.answers == sum(one.kind != "skip" for one in mine)
            assert row.nones == sum(one.kind != "skip" and one.class_id is None for one in mine)
            assert row.skips == sum(one.kind == "skip" for one in mine)
        slots = connection.execute(select(Slot.item_id, Slot.state, Slot.gold)).all()
        for item in connection.execute(select(Item.id, Item.pending, Item.state).where(Item.gold.is_(None))):
            waiting = [slot for slot in slots if slot.item_id == item.id and slot.state != "done"]
            assert item.pending == len(waiting), item
            assert (item.state == "done") == (not waiting)
    assert project.store.check() == []


def test_a_person_is_erased_and_others_are_asked_instead(make_project, database):
    project = make_project(database, items=12, gold=3, gold_every=3, overlap=2)
    ada, ben = work(project, ["Ada Unforgettable", "ben"])
    token = People(project).make_token("hers", ada)
    with project.store.read() as connection:
        hers = connection.execute(select(Annotator.answers).where(Annotator.id == ada)).scalar_one()
        his = connection.execute(select(func.count()).where(Question.annotator_id == ben)).scalar_one()
    assert hers > 2
    assert erase_person(project, ada, CommandLine()) == hers
    check_sums(project)
    with project.store.read() as connection:
        assert connection.execute(select(func.count()).where(Question.annotator_id == ben)).scalar_one() == his
        for table in tables():
            found = str(connection.execute(select(table)).all())
            assert "Unforgettable" not in found
            assert token not in found
    assert (read_audit(project.store)[0]["action"], read_audit(project.store)[0]["subject"]) == (
        "erase",
        f"annotator {ada}",
    )
    (cleo,) = people(project, "cleo")
    queue, asked = project.queue(), 0
    while question := next(iter(queue.next(cleo, 1)), None):
        queue.answer(cleo, question.id, question.attempt, question.shortlist[0], 1.0)
        asked += 1
    assert asked >= 12, "one of the two voices on each item is hers now"
    with pytest.raises(NotFound):
        erase_person(project, ada, CommandLine())


def test_an_item_is_erased_with_its_answers(make_project, database):
    project = make_project(database, items=4, gold=2, gold_every=2, overlap=2)
    work(project, ["ada", "ben"], rounds=10)
    for item in (2, 5):  # the second is gold
        with project.store.read() as connection:
            about = connection.execute(select(func.count()).where(Question.item_id == item)).scalar_one()
        assert about
        erase_item(project, item, CommandLine())
        check_sums(project)
        with project.store.read() as connection:
            assert connection.execute(select(func.count()).where(Item.id == item)).scalar_one() == 0
    with pytest.raises(NotFound):
        erase_item(project, 2, CommandLine())


def test_notes_go_with_their_person_or_item(make_project, database):
    project = make_project(database, items=4, overlap=2)
    queue, notes = project.queue(), Notes(project.store)
    ada, ben = people(project, "Ada Unforgettable", "ben")
    for annotator in (ada, ben):
        for question in queue.next(annotator, hold=4):
            for kind in ("comment", "flag"):
                notes.add(annotator, question.id, kind, f"{kind} of {annotator} on {question.item_id}")
            queue.skip(annotator, question.id, question.attempt)
            notes.explain(annotator, question.id, question.attempt, "unclear")

    def left() -> set[tuple[int, int, str, str]]:
        with project.store.read() as connection:
            rows = connection.execute(select(Note.annotator_id, Note.item_id, Note.kind, Note.text))
            return {tuple(row) for row in rows}

    before = left()
    assert len(before) == 16
    erase_person(project, ada, CommandLine())
    assert left() == {note for note in before if note[0] == ben}
    with project.store.read() as connection:
        assert "Unforgettable" not in str([connection.execute(select(table)).all() for table in tables()])
        assert connection.execute(select(func.count()).where(Answer.reason == "unclear")).scalar_one() == 4
    erase_item(project, 2, CommandLine())
    assert left() == {note for note in before if note[0] == ben and note[1] != 2}
    check_sums(project)


def test_somebody_is_erased_while_classes_become_known(make_project, database):
    """On PostgreSQL the two waited for each other until the database ended one of them."""
    project = make_project(database, items=20)
    (ada,) = people(project, "ada")
    queue = project.queue()
    for _ in range(5):
        (held,) = queue.next(ada)
        queue.answer(ada, held.id, 0, held.shortlist[0], 1.0)
    begun = threading.Event()

    def hesitate(_connection, _cursor, statement, *_) -> None:
        if statement.startswith("UPDATE slots") and not begun.is_set():  # its items are changed already
            begun.set()
            time.sleep(0.5)

    event.listen(project.store.engine, "before_cursor_execute", hesitate)
    with ThreadPoolExecutor(1) as pool:
        erased = pool.submit(erase_person, project, ada, CommandLine())
        assert begun.wait(10)
        assert mark_known(project, {f"item {k}": "class 1" for k in range(20)}) == (20, [])
        assert erased.result(10) == 5
    check_sums(project)


def test_an_answer_to_an_erased_question_is_never_stored_for_another(make_project, database):
    """SQLite gave the number of the last question to the next one: an answer that came late was stored for that."""
    project = make_project(database, items=1, classes=3)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (erased,) = queue.next(ada)
    erase_item(project, erased.item_id, CommandLine())
    add_items(project, [Source("new", "new", text="Something else")])
    (other,) = queue.next(ada)
    assert other.item_id > erased.item_id
    with pytest.raises(NotFound):
        queue.answer(ada, erased.id, erased.attempt, erased.shortlist[0], 1.0)
    with pytest.raises(NotFound):
        Notes(project.store).add(ada, erased.id, "flag", "blurred")
    assert queue.next(ada)[0].id == other.id


def test_the_log_does_not_call_who_was_erased_by_the_name_of_the_next(make_project, database):
    project = make_project(database, items=1)
    (ada,) = people(project, "ada")
    erase_person(project, ada, CommandLine())
    people(project, "ben")
    assert read_audit(project.store)[0]["called"] is None


@pytest.mark.parametrize("renewed", [False, True])
def test_the_link_of_who_was_erased_lets_nobody_in(make_project, database, renewed):
    """Nor into the account of the next one."""
    project = make_project(database, items=1)
    here = People(project)
    annotator, link = here.invite("ada")
    if renewed:
        link = here.renew_invite(annotator)
    erase_person(project, annotator, CommandLine())
    ben = here.invite("ben")
    if renewed:
        ben = (ben[0], here.renew_invite(ben[0]))
    with project.store.read() as connection:
        with pytest.raises(Unauthorized):
            here.invited(connection, link)
        assert here.invited(connection, ben[1]) == ben[0]


def test_what_is_erased_is_not_left_in_the_file(make_project):
    project = make_project(items=30)
    People(project).invite("Xanthippe Unforgettable")
    erase_person(project, 1, CommandLine())
    with project.store.engine.connect() as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
    assert b"Xanthippe" not in (project.folder / DATABASE).read_bytes()


def test_exports_under_a_pseudonym(make_project, tmp_path):
    project = make_project(items=6)
    work(project, ["ada", "ben"], rounds=2)
    named = export_file(project, tmp_path / "names.csv")
    assert export_file(project, tmp_path / "numbers.csv", pseudonyms=True) == named
    assert export_file(project, tmp_path / "kit.csv", "crowd-kit", pseudonyms=True)
    for name in ("numbers.csv", "kit.csv"):
        content = (tmp_path / name).read_text()
        assert "person 1" in content
        assert "person 2" in content
        assert "ada" not in content
        assert "ben" not in content
    assert "ada" in (tmp_path / "names.csv").read_text()


def test_erasing_by_the_api_ends_sessions(make_site):
    site = make_site(items=3)
    owner, ada = site.admin(), site.annotator("ada")
    assert ada.post("/api/v1/next", json={}).status_code == 200
    assert ada.delete("/api/v1/people/1/data").status_code == 403
    assert ada.delete("/api/v1/items/1").status_code == 403
    assert owner.delete("/api/v1/people/1/data").json() == {"answers": 0}
    assert ada.post("/api/v1/next", json={}).status_code == 401
    assert owner.delete("/api/v1/items/1").json() == {"answers": 0}
    assert owner.delete("/api/v1/items/1").status_code == 404

"""Merged and retired classes: what people are asked from then on, and what the exports make of what was."""

import threading

import pytest
from sqlalchemy import select, update

from shortlist.annotate.db.schema import Item, LabelClass, Slot
from shortlist.annotate.db.statements import class_names
from shortlist.annotate.db.steps import finish
from shortlist.annotate.problems import Conflict, Invalid
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.review import class_changes
from shortlist.annotate.project.review.class_changes import (
    ask_about_retired,
    merge_classes,
    restore_class,
    retire_class,
)
from shortlist.annotate.project.review.corrections import correct, undo_correction
from shortlist.annotate.project.sources import Source
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.chooser import UniformChooser
from shortlist.annotate.queue.pinned import Pinned
from shortlist.annotate.queue.stored import Given
from shortlist.annotate.setup import rename_by_name
from shortlist.labels import StochasticLabels

from ...conftest import people
from ...running import Server, free_port
from .test_corrections import answer_all, item, rows


def shown(project, queue, annotator):
    found = set()
    while held := queue.next(annotator):
        found.update(held[0].shortlist)
        queue.answer(annotator, held[0].id, held[0].attempt, None, 1.0)
    return found


def test_a_merged_class_is_on_no_list_and_its_answers_are_the_others(make_project, database, tmp_path):
    project = make_project(database, items=30, gold=6, size=3, gold_every=2)
    ada, ben = people(project, "ada", "ben")
    truth = {}

    def choose(question):
        truth.setdefault(question.item_id, question.item_id % 6)
        return truth[question.item_id] if truth[question.item_id] in question.shortlist else None

    answer_all(project, project.queue(), [ada], choose)
    merge_classes(project, 1, 0)
    exported = rows(project, "answers.csv", tmp_path)
    assert exported[0]["classes"] == "class 0|class 2|class 3|class 4|class 5"
    for row in exported:
        assert "class 1" not in row["shortlist"].split("|")
        assert len(row["probabilities"].split("|")) == len(row["shortlist"].split("|"))
    assert item(project, "gold 1")["gold"] == 0
    labels, by_item = StochasticLabels.read(tmp_path / "out.csv"), {row["item"]: row for row in exported}
    assert labels.num_classes == 5
    for name, row in by_item.items():
        old = truth[item(project, name)["id"]]
        today = f"class {0 if old == 1 else old}"
        assert row["answer"] in ("", today)
        assert row["answer"] or today not in row["shortlist"].split("|"), "None never rules out the right class"
    queue = project.queue()
    make_more(project, 40)
    assert 1 not in shown(project, queue, ben), "nor on the lists of gold items"


def make_more(project, count):
    add_items(project, [Source(f"more {i}", f"more {i}", text="?") for i in range(count)])


def test_a_retired_class_is_asked_about_again_and_can_come_back(make_project, database, tmp_path):
    project = make_project(database, items=6, size=3)
    ada, ben = people(project, "ada", "ben")
    answer_all(project, project.queue(), [ada], lambda q: 2 if 2 in q.shortlist else None)
    before = rows(project, "answers.csv", tmp_path)
    picked = [row["item"] for row in before if row["answer"] == "class 2"]
    mark_known(project, {"item 5": "class 2"})
    make_more(project, 1)
    mark_known(project, {"more 0": "class 2"})
    assert retire_class(project, 2) == len(picked) + 1
    after = {row["item"]: row for row in rows(project, "answers.csv", tmp_path)}
    for row in before:
        rest = [name for name in row["shortlist"].split("|") if name != "class 2"]
        assert after[row["item"]]["shortlist"].split("|") == rest
        assert after[row["item"]]["answer"] == ("" if row["answer"] in ("", "class 2") else row["answer"])
        assert "merged" not in after[row["item"]]["policy"], "a uniform list without one class is uniform"
    asked = set()
    queue = project.queue()
    while held := queue.next(ben):
        asked.add(held[0].item_id)
        assert 2 not in held[0].shortlist
        queue.answer(ben, held[0].id, held[0].attempt, held[0].shortlist[0], 1.0)
    assert asked == {item(project, name)["id"] for name in (*picked, "more 0")}
    restore_class(project, 2)
    exported = rows(project, "answers.csv", tmp_path)
    restored = [(row["item"], row["shortlist"], row["answer"]) for row in exported if row["annotator"] == "ada"]
    assert restored == [(row["item"], row["shortlist"], row["answer"]) for row in before if row["item"] != "item 5"]
    assert {row["item"]: row["answer"] for row in exported if row["policy"] == "known/1"} == {
        "item 5": "class 2",
        "more 0": "class 2",
    }


def test_a_class_that_comes_back_has_its_known_items_again(make_project, database, monkeypatch):
    """People were asked about them for good."""
    project = make_project(database, items=6, overlap=2)
    ada, ben = people(project, "ada", "ben")
    known = {f"item {k}": "class 2" for k in range(5)}
    mark_known(project, known)
    monkeypatch.setattr(class_changes, "AT_ONCE", 2)
    retire_class(project, 2)
    queue = project.queue()
    for annotator in (ada, ben):
        for question in queue.next(annotator, hold=6):
            if question.item_id in (1, 2):
                queue.answer(annotator, question.id, 0, question.shortlist[0], 1.0)
    correct(project.store, item(project, "item 2")["id"], 0, 3, "rev", "")
    restore_class(project, 2)
    assert [item(project, f"item {k}")["known"] for k in range(6)] == [2, 2, 3, 2, 2, None]
    assert project.check() == []
    queue.release(ada)
    queue.release(ben)
    assert {one.item_id for one in queue.next(ada, hold=6)} == {item(project, "item 5")["id"]}
    assert retire_class(project, 2) == 2, "two have their answers, and one is of another class"


@pytest.mark.parametrize(
    ("known", "corrected", "comes_back"),
    [(None, 2, None), (2, 2, 2), (2, 3, 2), (0, 2, 4), (3, 2, 3)],
    ids=["asked about before", "said twice", "corrected away", "merged", "of another class"],
)
def test_a_correction_taken_back_after_its_class_was_retired(make_project, known, corrected, comes_back):
    """When the class was restored, the item was of it all the same; or it was not what it had been before."""
    project = make_project(items=1)
    if known is not None:
        mark_known(project, {"item 0": f"class {known}"})
    correct(project.store, 1, 0, corrected, "rev", "")
    merge_classes(project, 0, 4)
    for retired in (2, 4):
        retire_class(project, retired)
    undo_correction(project.store, 1, 1, "rev")
    for restored in (2, 4):
        restore_class(project, restored)
    assert item(project, "item 0")["known"] == comes_back


def test_an_item_that_a_policy_had_closed_is_open_again_when_its_class_is_retired(make_project, database):
    """It went on counting as done, and nobody was asked in the second person's place."""
    project = make_project(database, items=1, size=2, overlap=2)
    ada, ben = people(project, "ada", "ben")
    queue = project.queue()
    (held,) = queue.next(ada)
    queue.answer(ada, held.id, 0, held.shortlist[0], 1.0)
    with project.store.write() as connection:  # sure enough
        connection.execute(update(Slot).where(Slot.state == "free").values(state="closed"))
        connection.execute(update(Item).values(state="closed"))
    assert project.status()["items_done"] == 1
    retire_class(project, held.shortlist[0])
    assert (Stats(project.store).status()["items_done"], project.check()) == (0, [])
    for annotator in (ben, people(project, "cleo")[0]):
        (held,) = queue.next(annotator)
        queue.answer(annotator, held.id, 0, held.shortlist[0], 1.0)
    assert Stats(project.store).status()["items_done"] == 1


def test_an_answer_given_while_its_class_is_retired_settles_nothing(make_project, database):
    """On PostgreSQL neither saw the other: the item was done, with no class, until the next start."""
    project = make_project(database, items=1, size=6)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (held,) = queue.next(ada)
    retiring = threading.Thread(target=retire_class, args=(project, 2))
    with project.store.quick() as connection:
        steps = queue.submitting(connection, ada, held.id, 0, Given("answer", 2, 1.0), 0)
        next(steps)
        assert connection.execute(select(LabelClass.ended_at).where(LabelClass.id == 2)).scalar() is None
        retiring.start()
        retiring.join(0.5)
        finish(steps)
    retiring.join()
    assert (project.status()["progress"]["done"], project.check()) == (0, [])


def test_a_class_given_by_a_reviewer_meanwhile_stays(make_project, database):
    """Many items are opened a batch after another: one of them may have got another class since they were found."""
    project = make_project(database, items=3)
    mark_known(project, {f"item {k}": "class 2" for k in range(3)})
    one = item(project, "item 1")["id"]
    with project.store.write() as connection:
        connection.execute(update(LabelClass).where(LabelClass.id == 2).values(ended_at=1.0))
    opening = threading.Thread(target=ask_about_retired, args=(project,))
    with project.store.write() as connection:  # as `correct` does
        connection.execute(project.store.locked(select(Slot.id).where(Slot.item_id == one), of=Slot)).all()
        connection.execute(update(Item).where(Item.id == one).values(known=3))
        opening.start()
        opening.join(0.5)
    opening.join()
    assert [item(project, f"item {k}")["known"] for k in range(3)] == [None, 3, None]
    assert [item(project, f"item {k}")["state"] for k in range(3)] == ["open", "closed", "open"]
    assert project.check() == []


def test_who_picks_a_class_that_was_just_retired_settles_nothing(make_project, database):
    """Protects the item: it was done with no class, and nobody was asked about it again."""
    project = make_project(database, items=1, size=3)
    ada, ben = people(project, "ada", "ben")
    queue = project.queue()
    (held,) = queue.next(ada)
    part, whole, right = held.shortlist
    merge_classes(project, part, whole)
    retire_class(project, whole)
    stored, _ = queue.answer(ada, held.id, held.attempt, part, 1.0)
    assert queue.answer(ada, held.id, held.attempt, part, 1.0) == (stored, [])
    assert (project.status()["progress"]["done"], project.check()) == (0, [])
    (again,) = queue.next(ben)
    assert not {part, whole} & {*again.shortlist}
    queue.release(ben)
    queue.undo(ada, held.id)
    queue.answer(ada, held.id, held.attempt + 1, right, 1.0)
    assert (project.status()["progress"]["done"], project.check()) == (1, [])


def test_what_was_corrected_is_asked_about_when_the_correction_is_undone_and_the_class_gone(make_project, database):
    project = make_project(database, items=2, size=2)
    ada, ben = people(project, "ada", "ben")
    queue = project.queue(Pinned(UniformChooser(2), 2))
    answer_all(project, queue, [ada], lambda q: 2)
    correct(project.store, 1, 0, 3, "rev", "")
    assert retire_class(project, 2) == 1, "the other item"
    (held,) = project.queue().next(ben)
    project.queue().answer(ben, held.id, held.attempt, held.shortlist[0], 1.0)
    assert project.queue().next(ben) == []
    restore_class(project, 2)
    assert retire_class(project, 2) == 0, "what has an answer since then stays answered"
    undo_correction(project.store, 1, 1, "rev")
    assert project.check() == []
    (held,) = project.queue().next(ben)
    assert held.item_id == 1


def test_what_people_say_after_a_corrected_class_has_gone_is_exported(make_project, database, tmp_path):
    """They are asked about the item again: the reviewer's word, of no class any more, stood in the way of theirs."""
    project = make_project(database, items=2, size=2)
    ada, _ = people(project, "ada", "ben")
    one = item(project)["id"]
    correct(project.store, one, 0, 2, "rev", "")
    before = rows(project, "labels.csv", tmp_path)
    assert retire_class(project, 2) == 1
    answer_all(project, project.queue(), [ada], lambda q: q.shortlist[0])
    assert {row["item"] for row in rows(project, "answers.csv", tmp_path)} == {"item 0", "item 1"}
    assert all(row["label"] for row in rows(project, "labels.csv", tmp_path))
    correct(project.store, one, 1, 3, "rev", "")
    undo_correction(project.store, one, 2, "rev")
    assert all(row["label"] for row in rows(project, "labels.csv", tmp_path)), "the one below it is of the same class"
    restore_class(project, 2)
    (again,) = (row for row in rows(project, "labels.csv", tmp_path) if row["item"] == "item 0")
    assert (
        (again["label"], again["corrected_by"]) == (before[0]["label"], before[0]["corrected_by"]) == ("class 2", "rev")
    )


def test_known_items_of_a_class_that_has_gone_are_opened_a_batch_after_another(make_project, database, monkeypatch):
    project = make_project(database, items=5)
    mark_known(project, {f"item {k}": f"class {2 if k else 3}" for k in range(5)})
    monkeypatch.setattr(class_changes, "AT_ONCE", 2)
    assert retire_class(project, 2) == 4
    (ada,) = people(project, "ada")
    assert {held.item_id for held in project.queue().next(ada, hold=5)} == {2, 3, 4, 5}
    assert (item(project)["known"], item(project)["state"], project.check()) == (3, "closed", [])


def test_a_file_that_names_an_ended_class_gives_the_one_it_is_part_of(make_project, database, tmp_path):
    """Known or gold items were of a class that is none any more: the exports could not be read again."""
    project = make_project(database, items=5, gold_every=1_000_000)
    merge_classes(project, 0, 1)
    retire_class(project, 2)
    known = mark_known(project, {"item 0": "class 0", "item 1": "class 2"})
    assert known == (1, [("item 1", "its class 'class 2' was retired")])
    gold = mark_gold(project, {"item 2": "class 0", "item 3": "class 2"})
    assert (gold.added, gold.skipped) == (1, [("item 3", "the gold answer 'class 2' is not a class")])
    more = add_items(project, [Source(f"more {k}", f"more {k}", text="?", gold=f"class {k}") for k in (0, 2)])
    assert [name for name, _ in more.skipped] == ["more 2"]
    names = ("item 0", "item 1", "item 2", "item 3", "more 0", "more 2")
    found = [(item(project, name)["known"], item(project, name)["gold"]) for name in names]
    assert found == [(1, None), (None, None), (None, 1), (None, None), (None, 1), (None, None)]
    assert [row["answer"] for row in rows(project, "answers.csv", tmp_path)] == ["class 1"]
    assert StochasticLabels.read(tmp_path / "out.csv").class_names == ("class 1", "class 3", "class 4", "class 5")
    assert len(project.queue().next(people(project, "ada")[0], hold=9)) == 4, "what was refused is asked about"
    rename_by_name(project, "class 0", "old")
    assert class_names_of(project)[:2] == ["old", "class 1"]


def class_names_of(project):
    with project.store.read() as connection:
        return class_names(connection)


def test_a_retirement_that_was_ended_in_between_goes_on_when_the_server_starts(make_project):
    """Killed after its first step: what had been answered with the class stayed done, with no class."""
    project = make_project(items=3, size=6)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (held,) = queue.next(ada)
    queue.answer(ada, held.id, 0, 2, 1.0)
    mark_known(project, {"item 1": "class 2"})
    with project.store.write() as connection:
        connection.execute(update(LabelClass).where(LabelClass.id == 2).values(ended_at=1.0))
    server = Server(project.folder, free_port())
    try:
        server.wait()
    finally:
        server.kill()
    assert project.status()["progress"] == {"done": 0, "total": 3}
    assert project.check() == []


def test_what_cannot_be_ended_is_said_in_one_line(make_project):
    project = make_project(items=1, classes=3, gold=1)
    with pytest.raises(Conflict, match="1 gold items are of this class"):
        retire_class(project, 0)
    with pytest.raises(Invalid, match="another class in use"):
        merge_classes(project, 1, 1)
    merge_classes(project, 1, 2)
    with pytest.raises(Conflict, match="merged or retired already"):
        retire_class(project, 1)
    with pytest.raises(Conflict, match="at least 2 classes"):
        merge_classes(project, 0, 2)
    with pytest.raises(Conflict, match="cannot be undone"):
        restore_class(project, 1)
    with pytest.raises(Conflict, match="in use"):
        restore_class(project, 2)


def test_an_undone_correction_gives_back_the_class_of_today(make_project):
    project = make_project(items=1)
    one = item(project)["id"]
    correct(project.store, one, 0, 1, "rev", "")
    correct(project.store, one, 1, 2, "rev", "")
    merge_classes(project, 1, 3)
    undo_correction(project.store, one, 2, "rev")
    assert item(project)["known"] == 3


def test_a_class_that_ended_cannot_be_typed_or_given(make_project):
    project = make_project(items=2, typing=True)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (question,) = queue.next(ada)
    retire_class(project, 5)
    with pytest.raises(Invalid, match="no class 5"):
        queue.answer(ada, question.id, question.attempt, 5, 1.0, typed=True)
    with pytest.raises(Invalid, match="no class 5"):
        correct(project.store, item(project)["id"], 0, 5, "rev", "")

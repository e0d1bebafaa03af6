"""A reviewer's word on an item: stored once, seen by the queue and the exports, taken back."""

import csv
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import NO_CLASS, Correction, Item
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.problems import Conflict, Invalid, NotFound
from shortlist.annotate.project.audit import CommandLine
from shortlist.annotate.project.erasing import erase_item
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.review.class_changes import retire_class
from shortlist.annotate.project.review.corrections import correct, standing_corrections, undo_correction

from ...conftest import new_database, people


def item(project, name="item 0"):
    with project.store.read() as connection:
        return connection.execute(select(Item.__table__).where(Item.name == name)).mappings().one()


def rows(project, name, tmp_path):
    EXPORTS[name](project, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def answer_all(project, queue, who, choose):
    """Everybody answers until nothing is left."""
    for annotator in who:
        while held := queue.next(annotator):
            question = held[0]
            queue.answer(annotator, question.id, question.attempt, choose(question), 1.0)


def test_a_correction_takes_the_place_of_the_answers_until_it_is_undone(make_project, database, tmp_path):
    project = make_project(database, items=2)
    (ada,) = people(project, "ada")
    answer_all(project, project.queue(), [ada], lambda question: question.shortlist[0])
    before = {name: rows(project, name, tmp_path) for name in ("answers.csv", "labels.csv")}
    one = item(project)
    assert correct(project.store, one["id"], 0, 4, "rev", "it has wings") == 1
    assert (item(project)["known"], item(project)["state"]) == (4, "closed")
    mine = [row for row in rows(project, "answers.csv", tmp_path) if row["item"] == "item 0"]
    assert [(row["shortlist"], row["answer"], row["annotator"], row["policy"]) for row in mine] == [
        ("class 4", "class 4", "rev", "correction/1")
    ]
    assert float(mine[0]["probabilities"]) == 1
    assert len(rows(project, "answers.csv", tmp_path)) == 2
    labels = {row["item"]: row for row in rows(project, "labels.csv", tmp_path)}
    assert (labels["item 0"]["label"], labels["item 0"]["corrected_by"]) == ("class 4", "rev")
    assert not labels["item 1"]["corrected_by"]
    assert undo_correction(project.store, one["id"], 1, "ben", "no, it has not") == 2
    assert (item(project)["known"], item(project)["state"]) == (None, "done")
    assert {name: rows(project, name, tmp_path) for name in before} == before
    with project.store.read() as connection:
        kept = connection.execute(select(Correction.kind, Correction.author, Correction.why)).all()
    assert kept == [("correction", "rev", "it has wings"), ("undo", "ben", "no, it has not")], "history stays"


def test_nobody_is_asked_about_a_corrected_item_and_again_after_an_undo(make_project, database):
    project = make_project(database, items=2)
    (ada,) = people(project, "ada")
    queue = project.queue()
    one = item(project)
    correct(project.store, one["id"], 0, 1, "rev", "")
    (question,) = queue.next(ada, hold=2)
    assert question.item_id != one["id"]
    undo_correction(project.store, one["id"], 1, "rev")
    assert {question.item_id for question in queue.next(ada, hold=2)} == {one["id"], item(project, "item 1")["id"]}


def test_corrections_of_corrections_are_undone_one_by_one(make_project, database):
    project = make_project(database, items=1)
    one = item(project)["id"]
    for version, class_id in enumerate([1, 2, None]):
        correct(project.store, one, version, class_id, "rev", "")
    assert item(project)["known"] == NO_CLASS
    known = [undo_correction(project.store, one, version, "rev") and item(project)["known"] for version in (3, 4, 5)]
    assert known == [2, 1, None]
    with pytest.raises(Conflict, match="no correction"):
        undo_correction(project.store, one, 6, "rev")


def test_an_item_of_no_class_is_in_no_training(make_project, tmp_path):
    project = make_project(items=2)
    (ada,) = people(project, "ada")
    answer_all(project, project.queue(), [ada], lambda question: question.shortlist[0])
    correct(project.store, item(project)["id"], 0, None, "rev", "a black picture")
    assert [row["item"] for row in rows(project, "answers.csv", tmp_path)] == ["item 1"]
    labels = {row["item"]: row["label"] for row in rows(project, "labels.csv", tmp_path)}
    assert labels["item 0"] == ""


def test_of_two_reviewers_one_is_told_what_the_other_said(make_project, database):
    project = make_project(database, items=1)
    one = item(project)["id"]
    results: list = []
    barrier = threading.Barrier(8)

    def review(class_id: int) -> None:
        barrier.wait()
        try:
            results.append(correct(project.store, one, 0, class_id % 6, f"rev {class_id}", "sure"))
        except Conflict as problem:
            results.append(problem)

    threads = [threading.Thread(target=review, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with project.store.read() as connection:
        (row,) = connection.execute(select(Correction.class_id, Correction.author)).all()
    assert results.count(1) == 1
    refused = [result for result in results if isinstance(result, Conflict)]
    assert len(refused) == 7
    assert any(row.author in str(problem) and f"class {row.class_id}" in str(problem) for problem in refused)
    assert item(project)["known"] == row.class_id


def test_a_gold_item_gets_another_gold_class(make_project, database):
    project = make_project(database, items=1, gold=1)
    one = item(project, "gold 0")
    correct(project.store, one["id"], 0, 3, "rev", "")
    assert (item(project, "gold 0")["gold"], item(project, "gold 0")["known"]) == (3, None)
    with pytest.raises(Invalid, match="needs a class"):
        correct(project.store, one["id"], 1, None, "rev", "")
    undo_correction(project.store, one["id"], 1, "rev")
    assert item(project, "gold 0")["gold"] == one["gold"]
    with project.store.read() as connection:
        assert standing_corrections(connection) == {}


def test_a_gold_item_does_not_get_a_retired_class_back(make_project, database):
    """It would be gold no longer, and the answers that measured people would be trained on."""
    project = make_project(database, items=1, gold=1)
    one = item(project, "gold 0")
    correct(project.store, one["id"], 0, 3, "owner", "")
    retire_class(project, one["gold"])
    with pytest.raises(Conflict, match="the gold class it had before was retired"):
        undo_correction(project.store, one["id"], 1, "owner")
    assert item(project, "gold 0")["gold"] == 3
    assert correct(project.store, one["id"], 1, 2, "owner", "") == 2


def test_a_corrected_item_is_not_made_gold(make_project):
    project = make_project(items=1)
    correct(project.store, item(project)["id"], 0, 3, "rev", "")
    assert mark_gold(project, {"item 0": "class 1"}).skipped == [
        ("item 0", "its class is known already, and learned from")
    ]


@pytest.mark.parametrize("class_id", [-1, 6, 99])
def test_what_cannot_be_is_refused_and_changes_nothing(make_project, class_id):
    project = make_project(items=1)
    before = item(project)
    with pytest.raises(Invalid, match="no class"):
        correct(project.store, before["id"], 0, class_id, "rev", "")
    with pytest.raises(NotFound):
        correct(project.store, 999, 0, 1, "rev", "")
    with pytest.raises(Conflict, match="no such version"):
        correct(project.store, before["id"], 1, 1, "rev", "")
    assert item(project) == before


@pytest.mark.postgres
@pytest.mark.parametrize("erase", [False, True])
def test_who_answers_and_who_corrects_do_not_wait_for_each_other(make_project, postgres, erase):
    """For ever, had PostgreSQL not ended one of the two."""
    project = make_project(new_database(postgres), items=1)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (held,) = queue.next(ada)
    with ThreadPoolExecutor(1) as pool, project.store.quick():
        queue.next(ada)  # holds the slot
        act = (erase_item, project, 1, CommandLine()) if erase else (correct, project.store, 1, 0, 4, "rev", "")
        waits = pool.submit(*act)
        time.sleep(0.3)
        queue.answer(ada, held.id, 0, None, 1.0)
        assert not waits.done()
    assert waits.result(20) == 1
    assert project.check() == []

"""Items found by what was said about them, against a loop over all answers; a million items are looked at in parts."""

import random

import pytest
from sqlalchemy import insert, update

from shortlist.annotate.db.schema import Item, Note
from shortlist.annotate.problems import NotFound
from shortlist.annotate.project.review import browse as module
from shortlist.annotate.project.review.browse import Filter, browse, disagree, history
from shortlist.annotate.project.review.class_changes import merge_classes
from shortlist.annotate.project.review.corrections import correct, undo_correction

from ...conftest import people


def everything(project, wanted=None, limit=3):
    """All pages one after another."""
    rows, after = [], 0
    with project.store.read() as connection:
        while after is not None:
            page, after = browse(connection, wanted or Filter(), after, limit)
            rows += page
    return rows


@pytest.fixture
def spoken(make_project, database):
    """Three people answer twelve items, two each; by chance."""
    project = make_project(database, items=12, gold=3, overlap=2, gold_every=4)
    dice, queue = random.Random(3), project.queue()
    for who in people(project, "ada", "ben", "eve"):
        for _ in range(9):
            held = queue.next(who)
            if held and dice.random() < 0.2:
                queue.skip(who, held[0].id, held[0].attempt)
            elif held:
                queue.answer(who, held[0].id, 0, dice.choice([None, *held[0].shortlist]), dice.uniform(0, 10))
    return project


FILTERS = {
    "answered": (Filter(answered=True), lambda a: True),
    "class": (Filter(class_id=2), lambda a: a["answer"] == 2),
    "person": (Filter(person=2), lambda a: a["person"] == 2),
    "none": (Filter(none=True), lambda a: a["answer"] is None),
    "slower": (Filter(slower=5.0), lambda a: a["seconds"] >= 5),
    "quicker": (Filter(quicker=5.0), lambda a: a["seconds"] <= 5),
    "class of a person": (Filter(class_id=1, person=1), lambda a: a["answer"] == 1 and a["person"] == 1),
    "slow none of a person": (
        Filter(none=True, person=3, slower=2.0),
        lambda a: a["answer"] is None and a["person"] == 3 and a["seconds"] >= 2,
    ),
}


@pytest.mark.parametrize("look", [1, 4, 20_000])
def test_each_filter_finds_what_a_loop_finds(spoken, monkeypatch, look):
    monkeypatch.setattr(module, "LOOK", look)
    with spoken.store.write() as connection:  # nobody was asked about it
        connection.execute(insert(Item).values(id=16, name="new", kind="text", text="x", state="open", pending=1))
    rows = everything(spoken)
    assert [row["id"] for row in rows] == list(range(1, 17))
    assert sum(len(row["answers"]) for row in rows) > 12
    for wanted, holds in FILTERS.values():
        expected = [row["id"] for row in rows if any(map(holds, row["answers"]))]
        assert [row["id"] for row in everything(spoken, wanted)] == expected, wanted
    expected = [row["id"] for row in rows if disagree(row["answers"])]
    assert [row["id"] for row in everything(spoken, Filter(disagreement=True))] == expected
    assert [row["id"] for row in everything(spoken, Filter(gold=True))] == [13, 14, 15]
    assert [row["id"] for row in everything(spoken, Filter(words="ITEM 1"))] == [2, 11, 12]
    assert everything(spoken, Filter(words="item_1")) == [], "a _ is a _"
    with spoken.store.write() as connection:
        connection.execute(update(Item).where(Item.id.in_([3, 7])).values(text="I want a Refund, 100% of it"))
    assert [row["id"] for row in everything(spoken, Filter(words="refund, 100% of"))] == [3, 7]
    assert everything(spoken, Filter(words="refund% of")) == [], "a % is a %"
    assert [row["id"] for row in everything(spoken, Filter(doubtful=[9, 4]))] == [4, 9]


def test_flags_corrections_and_merged_classes(spoken):
    with spoken.store.write() as connection:
        flag = {"item_id": 4, "author": "ada", "kind": "flag", "text": "?", "at": 5.0}
        connection.execute(insert(Note), [flag, {**flag, "item_id": 6, "kind": "comment"}])
    correct(spoken.store, 7, 0, 1, "rev", "because")
    assert [row["id"] for row in everything(spoken, Filter(flagged=True))] == [4]
    (row,) = everything(spoken, Filter(corrected=True))
    assert (row["id"], row["corrected"], row["known"]) == (7, True, 1)
    both = {row["id"] for k in (1, 2) for row in everything(spoken, Filter(class_id=k))}
    merge_classes(spoken, 1, 2)
    assert {row["id"] for row in everything(spoken, Filter(class_id=2))} == both
    undo_correction(spoken.store, 7, 1, "rev", "no")
    with spoken.store.read() as connection:
        found = history(connection, 7)
        with pytest.raises(NotFound):
            history(connection, 99)
    assert (found["version"], found["corrected"], found["known"]) == (2, False, None)
    assert [(one["kind"], one["who"], one["words"], one["stands"]) for one in found["events"][-2:]] == [
        ("correction", "rev", "because", False),
        ("correction undone", "rev", "no", False),
    ]


def test_two_people_disagree_if_one_refused_what_the_other_gave():
    def said(person, answer, *shortlist):
        return {"person": person, "answer": answer, "shortlist": list(shortlist)}

    assert disagree([said(1, 0, 0, 1), said(2, 1, 0, 1)])
    assert disagree([said(1, 0, 0, 1), said(2, None, 0, 2)])
    assert not disagree([said(1, 0, 0, 1), said(2, None, 2, 3)])
    assert not disagree([said(1, None, 0, 1), said(1, 2, 2, 3)]), "asked again after a None"

"""Items worth a second look: people differ about them, or the model does."""

import csv

import pytest
from sqlalchemy import insert

from shortlist.annotate import export_file
from shortlist.annotate.db.schema import Slot
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.second_look import DOUBTS, second_look, write_doubts

from ..conftest import people
from ..formats.test_formats import _say
from ..live.test_live_score import PLAN, sources, train


def test_people_and_models_that_differ(make_project, database, tmp_path):
    project = make_project(database, items=8, classes=3, overlap=3, gold=1)
    with project.store.write() as connection:
        connection.execute(insert(Slot).values(item_id=9, number=1, gold=True, state="done", rank=-1, turn=0))
    ada, bob = people(project, "ada", "bob")
    for who, item, shown, answer in (
        *((ada, 1, [0, 1], 0), (bob, 1, [0, 1], 1)),  # two classes
        *((ada, 2, [0, 1], 0), (bob, 2, [0, 2], None)),  # one that the other refused
        *((ada, 3, [0, 1], None), (ada, 3, [0, 2], 0)),  # the same person changed their mind: nobody differs
        *((ada, 4, [0, 1], 1), (bob, 4, [1, 2], 1)),  # they agree, the model does not
        *((ada, 5, [0, 1], 1), (bob, 5, [0, 2], None)),  # a None to another list contradicts nothing
        *((ada, 6, [0], None), (bob, 6, [1], None)),  # nobody said anything
        *((ada, 7, [0, 1], 1), (ada, 8, [0, 1], 0)),
        *((ada, 9, [0, 1], 0), (bob, 9, [0, 1], 1)),  # gold
    ):
        _say(project, who, item, shown, answer)
    assert [(look.item, look.reason) for look in second_look(project)] == [
        ("item 0", "people differ"),
        ("item 1", "people differ"),
    ]
    project.live.mkdir(exist_ok=True)
    # the last was answered otherwise since; a class that is gone and an item that nobody answered are left out
    left_out = [(7, 2, 1, 0.2), (5, 7, 1, 0.3), (99, 0, 1, 0.3)]
    write_doubts(project.live, [(8, 0, 2, 0.01), (4, 1, 0, 0.1), (2, 0, 1, 0.2), *left_out])
    found = second_look(project)
    assert [(look.item, look.label, look.believed, look.reason) for look in found] == [
        ("item 1", "class 0", "class 1", "both differ"),
        ("item 0", None, None, "people differ"),
        ("item 7", "class 0", "class 2", "the model differs"),
        ("item 3", "class 1", "class 0", "the model differs"),
    ]
    assert [look.item for look in second_look(project, 2)] == ["item 1", "item 0"]
    assert second_look(project, among=[3, 4, 7]) == found[3:], "of some items only"
    assert (found[0].people, found[0].refused, found[0].chance) == ({"class 0": 1}, {"class 0": 1}, 0.2)
    assert found[1].people == {"class 0": 1, "class 1": 1}
    assert export_file(project, tmp_path / "look.csv", "second-look") == 4
    with (tmp_path / "look.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {
        **{"item": "item 1", "label": "class 0", "believed": "class 1", "chance": "0.2000"},
        **{"people": "class 0: 1", "refused": "class 0: 1", "reason": "both differ"},
    }
    assert rows[1]["people"] == "class 0: 1; class 1: 1"


@pytest.mark.parametrize("damage", [None, "[[1, 2", "[[1]]", "{}", "[7]"])
def test_a_damaged_word_of_the_model_is_none(make_project, damage):
    project = make_project(items=2)
    project.live.mkdir(exist_ok=True)
    if damage is not None:
        (project.live / DOUBTS).write_text(damage)
    assert second_look(project) == []


def test_the_trainer_says_which_answers_it_does_not_believe(make_project):
    project = make_project(items=0)
    add_items(project, sources(1, 120))
    (ada,) = people(project, "ada")
    trainer, wrong = Trainer(project, PLAN), {9, 40, 81}
    for item in range(1, 100):  # the words of most texts give their class away, that of every seventh is another
        if item % 7:
            _say(project, ada, item, [0, 1, 2, 3, 4, 5], (item + 2 * (item in wrong)) % 6)
    train(trainer)
    looks = second_look(project)
    assert {look.item for look in looks[:3]} == {f"text {item}" for item in wrong}
    assert all(look.believed == f"class {int(look.item.split()[1]) % 6}" for look in looks[:3])
    assert {look.reason for look in looks} == {"the model differs"}

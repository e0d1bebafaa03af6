"""Items become gold later: asked of everybody, as those that came in as gold; never one that was asked already."""

import csv
import threading
from itertools import count

import pytest
from sqlalchemy import event, func, select

from shortlist.annotate.db.schema import Item, Question, Slot
from shortlist.annotate.db.statements import class_names
from shortlist.annotate.live.items import shape
from shortlist.annotate.project.additions import Additions, add_to_project, preview
from shortlist.annotate.project.gold_items import mark_gold
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.setup import export_file

from ..conftest import people
from ..test_annotate_commands import refused, run


def answer_all(project, *who: int) -> None:
    queue = project.queue(seeds=count().__next__)
    for one in who:
        while held := queue.next(one):
            queue.answer(one, held[0].id, 0, held[0].shortlist[0], 1.0)


def gold_asked(project, who: int) -> list[str]:
    """The gold items that somebody was asked about, in that order."""
    statement = select(Item.name).join(Question, Question.item_id == Item.id).join(Slot, Slot.id == Question.slot_id)
    with project.store.read() as connection:
        asked = statement.where(Slot.gold, Question.annotator_id == who).order_by(Question.id)
        return list(connection.execute(asked).scalars())


def test_everybody_is_asked_about_the_new_ones_and_about_none_twice(make_project, database, tmp_path):
    project = make_project(database, items=30, classes=4, gold=3, gold_every=2, overlap=2)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue(seeds=count().__next__)
    for _ in range(20):  # ada has seen all gold items there are, whose ids are above those of the others
        (q,) = queue.next(ada)
        queue.answer(ada, q.id, 0, None, 1.0)
    before = gold_asked(project, ada)
    assert sorted(before) == ["gold 0", "gold 1", "gold 2"]
    with project.store.read() as connection:
        old = shape(connection)
    report = mark_gold(project, {f"item {i}": f"class {i % 4}" for i in range(25, 30)})
    assert (report.added, report.skipped) == (5, [])
    with project.store.read() as connection:
        assert shape(connection) != old, "a live model begins anew"
    assert Stats(project.store).status()["progress"]["total"] == 25 * 2
    answer_all(project, ada, bob)
    fresh = {f"item {i}" for i in range(25, 30)}
    assert gold_asked(project, ada)[:3] == before
    for one in (ada, bob):
        asked = gold_asked(project, one)
        assert len(set(asked)) == len(asked) > 3
        assert {*before, *fresh} >= set(asked)
    status = Stats(project.store).status()
    assert status["progress"] == {"done": 50, "total": 50}
    assert status["items"] == 25
    export_file(project, tmp_path / "a.csv", None)
    with (tmp_path / "a.csv").open(newline="") as file:
        assert not {row["item"] for row in csv.DictReader(file)} & fresh
    assert project.store.check() == []


def test_what_was_asked_is_not_made_gold(make_project, database):
    project = make_project(database, items=6, classes=3, gold=1)
    (ada,) = people(project, "ada")
    queue = project.queue(seeds=iter(range(1, 100, 2)).__next__)  # odd ones: no gold question among these two
    held = [q.item_id for q in queue.next(ada, hold=2)]
    with project.store.read() as connection:
        asked = set(connection.execute(select(Item.name).where(Item.id.in_(held))).scalars())
    known = {f"item {i}": "class 0" for i in range(6)} | {"gold 0": "class 1", "nobody": "class 0", "a\x00b": "class 0"}
    report = mark_gold(project, known | {"item 5": "no class"})
    reasons = dict(report.skipped)
    assert {name for name, reason in reasons.items() if reason.startswith("somebody was asked")} == asked
    assert len(asked) == 2
    assert reasons["gold 0"] == "is a gold item already"
    assert reasons["nobody"] == reasons["a\x00b"] == "a gold answer for an item that does not exist"
    assert "no class" in reasons["item 5"]
    assert report.added == 5 - len(asked)
    answer_all(project, ada)
    assert Stats(project.store).status()["progress"]["done"] == len(asked) + 1


def test_while_people_answer_no_item_is_both(make_project, database):
    project = make_project(database, items=200, classes=4, overlap=2, gold_every=3)
    queue, failures = project.queue(), []

    def work(who: int) -> None:
        try:
            while held := queue.next(who, hold=3):
                queue.answer(who, held[0].id, 0, None, 1.0)
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(who,)) for who in people(project, "ada", "bob", "cem")]
    for worker in workers:
        worker.start()
    added = sum(mark_gold(project, {f"item {i}": "class 1" for i in range(j, 200, 10)}).added for j in range(10))
    for worker in workers:
        worker.join()
    assert failures == []
    assert added == count_gold(project) > 0
    with project.store.read() as connection:
        mixed = select(Item.id).join(Slot, Slot.item_id == Item.id).where(Item.gold.is_not(None) != Slot.gold)
        assert connection.execute(mixed).all() == []
    assert Stats(project.store).status()["progress"] == {"done": 2 * (200 - added), "total": 2 * (200 - added)}


def test_by_the_command_line_and_the_api(make_site, tmp_path):
    site = make_site(items=4, classes=3)
    folder, gold = site.project.folder, tmp_path / "gold.csv"
    gold.write_text("item,gold\nitem 1,class 2\nitem 9,class 0\n")
    assert "item 9: a gold answer for an item that does not exist" in refused("add", folder, "--gold", gold, "--strict")
    assert count_gold(site.project) == 0, "all or nothing"
    assert "1 gold answers added, 1 skipped" in run("add", folder, "--gold", gold)
    body = {"items": [{"item": "item 2", "gold": "class 0"}, {"item": "item 1", "gold": "class 0"}]}
    reply = site.admin().post("/api/v1/items/gold", json=body).json()
    assert reply == {"added": 1, "skipped": [{"item": "item 1", "reason": "is a gold item already"}]}
    assert site.admin().post("/api/v1/items/gold", json={**body, "strict": True}).status_code == 422
    assert site.annotator("ada").post("/api/v1/items/gold", json=body).status_code == 403
    twice = {"items": [body["items"][0], body["items"][0]]}
    assert "an item occurs twice" in site.admin().post("/api/v1/items/gold", json=twice).text
    assert count_gold(site.project) == 2


@pytest.mark.parametrize("with_items", [False, True])
def test_what_strict_refuses_adds_no_class_either(make_project, tmp_path, with_items):
    """Protects the order: gold answers may name classes that come in with them, but a bad one must add nothing."""
    project = make_project(items=2, classes=3)
    gold, classes, items = tmp_path / "gold.csv", tmp_path / "classes.txt", tmp_path / "items.csv"
    classes.write_text("newt\n")
    items.write_text("item,text\nnew,a text\n")
    name = "new" if with_items else "item 1"
    words = ["add", project.folder, "--classes", classes, *(["--items", items] if with_items else []), "--strict"]
    gold.write_text(f"item,gold\n{name},newt\nghost,newt\n")
    assert "ghost" in refused(*words, "--gold", gold)
    with project.store.read() as connection:
        assert (class_names(connection), count_gold(project)) == (["class 0", "class 1", "class 2"], 0)
    gold.write_text(f"item,gold\n{name},newt\n")
    assert "4 classes now" in run(*words, "--gold", gold)
    assert count_gold(project) == 1


def count_gold(project) -> int:
    with project.store.read() as connection:
        return int(connection.execute(select(func.count()).where(Item.gold.is_not(None))).scalar_one())


def test_the_preview_says_what_will_be_left_out_and_why(make_project, database, tmp_path):
    """It counted items that had been asked about, or whose class was known."""
    project = make_project(database, items=5, gold=1, gold_every=1_000_000)
    (ada,) = people(project, "ada")
    project.queue().next(ada)
    mark_known(project, {"item 1": "class 2"})
    names = ["gold 0", "item 0", "item 1", "item 2", "item 3", "ghost"]
    path = tmp_path / "gold.csv"
    path.write_text("item,gold\n" + "".join(f"{name},class {9 if name == 'item 2' else 1}\n" for name in names))
    told = preview(project, Additions(gold=path))
    done = add_to_project(project, Additions(gold=path))
    assert (told.added, told.skipped) == (done.added, done.skipped)
    assert (done.added, [name for name, _ in done.skipped]) == (1, ["gold 0", "item 0", "item 1", "item 2", "ghost"])


def test_many_become_gold_in_few_statements(make_project):
    """Nobody is asked about anything meanwhile: 3,000 kept everybody waiting for three seconds on PostgreSQL."""
    project = make_project(items=400)
    written = []
    event.listen(project.store.engine, "before_cursor_execute", lambda *about: written.append(about[2]))
    assert mark_gold(project, {f"item {k}": f"class {k % 6}" for k in range(400)}).added == 400
    assert len(written) < 20
    with project.store.read() as connection:
        assert list(connection.execute(select(Item.gold).order_by(Item.id)).scalars()) == [k % 6 for k in range(400)]
        assert connection.execute(select(func.count()).select_from(Slot)).scalar() == 0

"""Classes: read from a file; while people work counted, described anew, and renamed without touching an answer."""

import csv

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Answer, Question
from shortlist.annotate.problems import Conflict, NotFound
from shortlist.annotate.project.classes import add_classes, rename_class
from shortlist.annotate.project.sources import read_classes
from shortlist.annotate.setup import export_file
from shortlist.errors import InputError

from ..conftest import people
from ..test_annotate_commands import refused, run


def test_answers_per_class_are_those_that_count(make_site, database):
    site = make_site(database, items=12, classes=4, size=2, gold=10, gold_every=2)
    (ada,) = people(site.project, "ada")
    queue, expected, none = site.project.queue(), [0] * 4, 0
    for turn in range(12):
        (q,) = queue.next(ada)
        pick = None if turn % 3 == 0 else q.shortlist[0]
        queue.answer(ada, q.id, 0, pick, 1.0)
        if turn % 4 == 0:  # taken back, and answered otherwise
            queue.undo(ada, q.id)
            pick = q.shortlist[1]
            queue.answer(ada, q.id, 1, pick, 1.0)
        if q.item_id <= 12:  # no gold item
            expected[pick if pick is not None else 0] += pick is not None
            none += pick is None
    (q,) = queue.next(ada)
    queue.skip(ada, q.id, 0)
    admin = site.admin()
    found = admin.get("/api/v1/classes/counts").json()
    assert found == {"names": [f"class {k}" for k in range(4)], "answers": expected, "none": none}
    admin.post("/api/v1/classes", json={"names": ["new"]})
    assert admin.get("/api/v1/classes/counts").json()["answers"] == [*expected, 0]
    assert site.annotator("bob").get("/api/v1/classes/counts").status_code == 403


def log(project) -> list[tuple]:
    with project.store.read() as connection:
        statement = select(Answer.id, Answer.class_id, Question.shortlist).join(Question).order_by(Answer.id)
        return [tuple(row) for row in connection.execute(statement)]


def test_a_renamed_class_keeps_its_answers(make_site, database, tmp_path):
    site = make_site(database, items=6, classes=2, size=2)
    ada, admin = site.annotator("ada"), site.admin()
    (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
    ada.post("/api/v1/answers", json={"question": q["id"], "answer": 1})
    before = log(site.project)
    (held,) = ada.post("/api/v1/next", json={}).json()["questions"]
    names = admin.patch("/api/v1/classes/1", json={"name": " pelican "}).json()["names"]
    assert names == ["class 0", "pelican"]
    (again,) = ada.post("/api/v1/next", json={}).json()["questions"]
    assert again["id"] == held["id"], "the question in hand stays"
    assert {one["class"]: one["name"] for one in again["shortlist"]} == {0: "class 0", 1: "pelican"}
    assert log(site.project) == before
    export_file(site.project, tmp_path / "a.csv", None)
    with (tmp_path / "a.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["answer"] == "pelican"
    assert row["classes"] == "class 0|pelican"
    assert admin.patch("/api/v1/classes/1", json={"name": "class 0"}).status_code == 409
    assert admin.patch("/api/v1/classes/2", json={"name": "x"}).status_code == 404
    assert admin.patch("/api/v1/classes/1", json={"name": "pelican"}).status_code == 200
    assert ada.patch("/api/v1/classes/1", json={"name": "mine"}).status_code == 403


def test_by_another_process_while_people_work(make_site, database):
    """The command line beside a running server: its next question has the new name."""
    site = make_site(database, items=6, classes=2, size=2)
    ada = site.annotator("ada")
    ada.post("/api/v1/next", json={})
    run("rename", site.project.folder, "class 0", "emu")
    (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
    assert {one["name"] for one in q["shortlist"]} == {"emu", "class 1"}
    assert "no class 'class 0'" in refused("rename", site.project.folder, "class 0", "gnu")
    assert "two cannot be made one" in refused("rename", site.project.folder, "emu", "class 1")


def test_a_bad_name_changes_nothing(make_project, database):
    project = make_project(database, classes=2)
    for bad in ("", "a\nb", "x" * 501):
        with pytest.raises(InputError):
            rename_class(project, 0, bad)
    with pytest.raises(Conflict):
        rename_class(project, 0, "class 1")
    with pytest.raises(NotFound):
        rename_class(project, 7, "new")
    rename_class(project, 0, "class 2")


def test_classes_come_with_what_they_mean_and_that_can_be_changed(make_project, database, tmp_path):
    path = tmp_path / "classes.csv"
    path.write_text('class,description\nhen,"a bird, kept for eggs"\nemu,\n', encoding="utf-8")
    found = read_classes(path)
    assert found == {"hen": "a bird, kept for eggs", "emu": ""}
    project = make_project(database, items=1, classes=0, size=2)
    add_classes(project, found)
    (ada,) = people(project, "ada")
    queue = project.queue()

    def said() -> dict[str, str | None]:
        (question,) = queue.next(ada)
        return dict(zip(question.names, question.descriptions, strict=True))

    assert said() == {"hen": "a bird, kept for eggs", "emu": None}
    assert add_classes(project, {"hen": None, "emu": "a tall bird", "fox": None}) == 3
    assert said() == {"hen": "a bird, kept for eggs", "emu": "a tall bird"}
    path.write_text("class,description\nhen,\nemu,a tall one\n", encoding="utf-8")
    add_classes(project, read_classes(path))
    assert said() == {"hen": None, "emu": "a tall one"}, "as the file says, also where it says nothing any more"
    with pytest.raises(InputError, match="already"):
        add_classes(project, ["emu"])
    with pytest.raises(InputError, match="the description of 'fox'"):
        add_classes(project, {"fox": "x" * 501})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text,label\nhello,a\n", "expected the column class, and description if wanted, got text, label"),
        ("class\na\nb\na\n", "class 'a' occurs twice"),
        ("class,description\na,x\n,y\n", "row 3 has no class"),
    ],
)
def test_a_table_that_is_not_one_of_classes_is_refused(tmp_path, content, said):
    path = tmp_path / "classes.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_classes(path)

"""What the commands print and leave behind, as a shell sees it."""

import pytest
from PIL import Image
from sqlalchemy import select, text
from typer.testing import CliRunner

from shortlist.annotate import Additions, init_project
from shortlist.annotate.db.schema import Item
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.project.audit import read_audit
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.score import write_score
from shortlist.cli import app
from shortlist.errors import InputError

from .conftest import people


def run(*words: object, code: int = 0) -> str:
    """What a command prints, both streams together; it must end with `code`."""
    done = CliRunner().invoke(app, ["annotate", *map(str, words)], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


def refused(*words: object) -> str:
    """The one line that a command ends with."""
    done = CliRunner().invoke(app, ["annotate", *map(str, words)])
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


def test_a_token_that_was_refused_is_not_in_the_log(make_project):
    project = make_project(items=1)
    (ada,) = people(project, "ada")
    People(project).remove(ada)
    assert "no active annotator" in refused("invite", project.folder, "ada", "--token")
    assert read_audit(project.store) == []
    run("invite", project.folder, "ben", "--token")
    assert [one["action"] for one in read_audit(project.store)] == ["make token"]


def test_an_unknown_format_is_told_every_one(make_project, tmp_path):
    line = refused("export", make_project(items=1).folder, tmp_path / "out.csv", "--format", "poem")
    assert all(name in line for name in EXPORTS)


def test_a_file_in_the_place_of_a_folder_and_the_other_way_round(make_project, tmp_path):
    project, file, folder = make_project(items=1).folder, tmp_path / "file", tmp_path / "folder.csv"
    file.write_text("x")
    folder.mkdir()
    for command in ("export", "backup"):
        assert refused(command, project, file / "out.csv") == f"{file}: a file, expected a folder"
        assert refused(command, project, folder) == f"{folder}: a folder, expected the name of a file"
    assert refused("status", file).startswith(f"{file} is a file, expected the folder of a project")
    assert refused("restore", folder, tmp_path / "new") == f"{folder}: cannot be read: Is a directory"
    items, classes = tmp_path / "items.csv", tmp_path / "classes.txt"
    items.write_text("text\nx\n")
    classes.write_text("a\nb\n")
    assert refused("init", file, "--items", items, "--classes", classes) == f"{file}: cannot be made: File exists"


def test_a_database_that_fails_is_one_line(make_project):
    """A disk that is full while somebody is invited, a server that is gone: it was a traceback."""
    project = make_project(items=1)
    with project.store.write() as connection:
        connection.execute(
            text("CREATE TRIGGER full BEFORE INSERT ON annotators BEGIN SELECT RAISE(ABORT, 'full'); END")
        )
        connection.execute(text("ALTER TABLE notes RENAME TO gone"))
    assert refused("invite", project.folder, "ada") == f"{project.folder}: the database: full"
    assert (
        refused("backup", project.folder, project.folder / "b.zip")
        == f"{project.folder}: the database: no such table: notes"
    )


def test_status_prints_slips_misses_and_strays(make_project):
    project = make_project(items=30, classes=8, size=2, gold=30, gold_every=2)
    (ada,) = people(project, "ada")
    queue = project.queue()
    counts = {"gold": 0, "shown": 0, "strays": 0}
    while held := queue.next(ada):
        number = held[0].item_id - 31
        if number >= 0:
            shown = number % 8 in held[0].shortlist
            counts["gold"] += 1
            counts["shown"] += shown
            counts["strays"] += not shown
        queue.answer(ada, held[0].id, 0, None if number >= 0 and shown else held[0].shortlist[0], 1.0)
    assert min(counts.values()) > 0
    text = run("status", project.folder)
    assert "30 of 30 items done\n" in text
    assert f"{30 + counts['gold']} answers, 0 None (without gold)" in text
    misses = f"0 slips, {counts['shown']} misses of {counts['shown']} shown"
    assert f"gold {counts['gold']} ({misses}, {counts['strays']} strays of {counts['strays']} not shown)" in text


def test_status_of_the_first_hour_is_in_minutes_and_without_gold_where_there_is_none(make_project):
    project = make_project(items=5)
    (ada,) = people(project, "ada")
    queue = project.queue()
    for seconds in (50.0, 70.0, 60.0):
        (held,) = queue.next(ada)
        queue.answer(ada, held.id, 0, None, seconds)
    lines = run("status", project.folder).splitlines()
    assert lines[1:] == ["  time spent: 3 min", "  ada: 3 answers, 3 None, 0 skipped"]


def test_tasks_for_label_studio_say_that_their_lists_are_random(tmp_path):
    items, classes = tmp_path / "items.csv", tmp_path / "classes.txt"
    items.write_text("text\none\ntwo\nthree\n")
    classes.write_text("a\nb\nc\nd\n")
    for policy in ("adaptive", "uniform"):
        project = tmp_path / policy
        run("init", project, "--items", items, "--classes", classes, "--size", 2, "--policy", policy)
        said = run("export", project, tmp_path / "tasks.json", "--format", "label-studio")
        assert ("the lists of these tasks are random" in said) == (policy == "adaptive")
        assert "random" not in run("export", project, tmp_path / "config.xml", "--format", "label-studio")


def test_a_second_table_without_names_is_told_what_it_lacks(tmp_path):
    items, classes = tmp_path / "items.csv", tmp_path / "classes.txt"
    items.write_text("text\none\ntwo\n")
    classes.write_text("a\nb\nc\n")
    run("init", tmp_path / "project", "--items", items, "--classes", classes, "--size", 2)
    said = run("add", tmp_path / "project", "--items", items)
    assert "0 items added, 2 skipped" in said
    assert "named by their number: give a second table that column" in said


def test_a_reason_is_printed_once(tmp_path):
    items, classes = tmp_path / "items.csv", tmp_path / "classes.txt"
    items.write_text("text\n" + "".join(f"text {k}\n" for k in range(30)))
    classes.write_text("a\nb\nc\n")
    run("init", tmp_path / "project", "--items", items, "--classes", classes, "--size", 2)
    items.write_text(items.read_text() + '" "\n')
    lines = run("add", tmp_path / "project", "--items", items).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("skipped row 2 (0), row 3 (1), row 4 (2) and 27 more: the project has an item")
    assert lines[1:] == ["skipped row 32 (30): an empty text", "0 items added, 31 skipped"]
    items.write_text("item,text,gold\n" + "".join(f"n{k},text,class {k}\n" for k in range(25)))
    lines = run("add", tmp_path / "project", "--items", items).splitlines()
    assert len(lines) == 22
    assert lines[-2] == "skipped others for 5 more reasons"


def test_a_damaged_picture_is_said_to_be_one(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(b"not a picture")
    Image.new("RGB", (8, 8), "red").save(tmp_path / "pictures" / "b.png")
    (tmp_path / "classes.txt").write_text("a\nb\n")
    said = run("init", tmp_path / "p", "--items", tmp_path / "pictures", "--classes", tmp_path / "classes.txt")
    assert "skipped a.png: not an image or a sound of a known type, or damaged" in said
    assert run("check", tmp_path / "p") == "no damage found\n"
    next((tmp_path / "p" / "media").rglob("*.png")).unlink()
    assert run("check", tmp_path / "p", code=1) == "item 1: its file is missing\n1 problems\n"


def test_classes_that_look_alike_are_said(tmp_path):
    items, classes, project = tmp_path / "items.csv", tmp_path / "classes.txt", tmp_path / "project"
    items.write_text("text\none\ntwo\n")
    classes.write_text("Lost card\nlost card\nother\n")
    told = "classes that differ by capitals, spaces or zeros only: "
    said = run("init", project, "--items", items, "--classes", classes, "--size", 2)
    assert f"{told}'Lost card' and 'lost card'\n" in said
    classes.write_text("more\n")
    assert told not in run("add", project, "--classes", classes)
    classes.write_text("OTHER\nM ore\n")
    assert f"{told}'other' and 'OTHER'; 'more' and 'M ore'\n" in run("add", project, "--classes", classes)
    assert run("rename", project, "OTHER", "another") == ""
    assert run("rename", project, "another", "Other") == f"{told}'other' and 'Other'\n"
    classes.write_text("".join(f"class {k}\nClass {k}\n" for k in range(8)))
    line = run("init", tmp_path / "many", "--items", items, "--classes", classes)
    assert "'class 4' and 'Class 4'; and 3 more\n" in line
    assert "class 5" not in line
    classes.write_text("1\n01\n10\n1.0\n")
    line = run("init", tmp_path / "numbers", "--items", items, "--classes", classes)
    assert f"{told}'1' and '01' and '1.0'\n" in line


def test_where_all_classes_are_known_nothing_is_left_to_ask(tmp_path):
    items, classes, known = tmp_path / "items.csv", tmp_path / "classes.txt", tmp_path / "known.csv"
    items.write_text("item,text\na,one\nb,two\n")
    classes.write_text("x\ny\n")
    given = ("--items", items, "--classes", classes, "--known", known)
    known.write_text("item,class\na,x\nb,y\n")
    assert "nothing is left to ask" in run("init", tmp_path / "all", *given)
    known.write_text("item,class\na,x\n")
    assert "nothing is left to ask" not in run("init", tmp_path / "some", *given)


def test_a_score_by_few_items_is_too_early(make_project):
    project = make_project(items=2)
    project.live.mkdir()
    score = {"accuracy": 1.0, "low": 0.463, "high": 1.0, "items": 9, "undecided": 0, "size": 24, "corrected": False}
    score |= {"asked": 9, "answers": 32, "questions_for_a_point": 12.0}
    write_score(project.live, score)
    text = run("status", project.folder)
    assert "  model: too early to say, 9 of 24 sampled items are answered\n" in text
    assert "100.0%" not in text
    write_score(project.live, {**score, "items": 4, "asked": 20})
    said = "4 of 24 sampled items count so far: 20 are answered, some after new or skipped ones, which are asked"
    assert f"  model: too early to say, {said} about next\n" in run("status", project.folder)
    write_score(project.live, {**score, "items": 10})
    assert "  model: 100.0% right (46.3% to 100.0%) by 10 of 24 sampled items" in run("status", project.folder)


def test_ways_to_ask_are_compared_from_init_to_status(tmp_path):
    items, classes, many = tmp_path / "items.csv", tmp_path / "classes.txt", tmp_path / "many.txt"
    items.write_text("text\n" + "".join(f"text {k}\n" for k in range(12)))
    classes.write_text("a\nb\nc\nd\n")
    many.write_text("".join(f"class {k}\n" for k in range(201)))
    given = ("--items", items, "--size", 2, "--compare")
    assert "at most 200" in refused("init", tmp_path / "no", *given, "--classes", many)
    assert "without typing" in refused("init", tmp_path / "no", *given, "--classes", classes, "--no-typing")
    run("init", tmp_path / "trial", *given, "--classes", classes)
    assert " by " not in run("status", tmp_path / "trial"), "nothing to compare yet"
    with Project.open(tmp_path / "trial") as project:
        (ada,) = people(project, "ada")
        queue = project.queue()
        while held := queue.next(ada):
            queue.answer(ada, held[0].id, 0, 1, 2.0, typed=True)
    text = run("status", tmp_path / "trial")
    assert "by full list: " in text
    assert "2.0 s per labelled item (2.0 to 2.0)" in text


@pytest.mark.parametrize(("folder", "title"), [("my_birds-2", "My birds 2"), ("Öl", "Öl"), ("__", "__")])
def test_the_title_is_the_folders_name_as_words(tmp_path, folder, title):
    (tmp_path / "items.csv").write_text("text\na\nb\n")
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    made, _ = init_project(tmp_path / folder, Additions(tmp_path / "items.csv", tmp_path / "classes.txt"))
    assert made.title == title


def test_labels_in_the_table_of_items_are_told_and_taken_where_wanted(tmp_path):
    items, classes = tmp_path / "items.csv", tmp_path / "classes.txt"
    items.write_text("text,label\nmy card is gone,lost card\nwhat is the rate,\nthe card again,lost card\nso,urgent\n")
    classes.write_text("lost card\nexchange rate\n")
    made = ("--items", items, "--classes", classes, "--size", 2)
    said = run("init", tmp_path / "p", *made)
    assert "items that have a class in their table already (2) will be asked about all the same" in said
    items.write_text(items.read_text().replace("urgent", ""))
    said = run("init", tmp_path / "q", *made, "--known", items)
    assert "2 items of known class: learned from, not asked about" in said
    assert "all the same" not in said
    with Project.open(tmp_path / "q") as project, project.store.read() as connection:
        known = connection.execute(select(Item.name, Item.known).order_by(Item.id)).all()
    assert [tuple(row) for row in known] == [("0", 0), ("1", None), ("2", 0), ("3", None)]
    items.write_text(items.read_text().replace("text,label", "message,Kind of case"))  # a column of any name
    said = run("init", tmp_path / "r", *made, "--text-column", "message")
    assert "items that have a class in their table already (2)" in said
    items.write_text("item,message,Kind of case\nx,one more,lost card\ny,another one,\n")
    said = run("add", tmp_path / "r", "--items", items, "--text-column", "message")
    assert "items that have a class in their table already (1)" in said, "a class of the project, not of this command"
    with items.open("a") as file:
        file.write("z,a third one,lost card\n")
    said = run("add", tmp_path / "r", "--items", items, "--text-column", "message")
    assert "items that have a class in their table already (1)" in said, "not those that were there before"
    for name in ("lost card", "elsewhere"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "pictures" / name / "a.png")
    said = run("init", tmp_path / "u", "--items", tmp_path / "pictures", "--classes", classes, "--size", 2)
    assert "items that have a class in the name of their folder already (1)" in said
    items.write_text("message,status\nmy card is gone,open\nthe rate,closed\nlost card,lost card\nx,new\n")  # by chance
    assert "have a class" not in run("init", tmp_path / "s", *made, "--text-column", "message")
    more = tmp_path / "more.csv"  # its row 0 is not the project's item 0
    more.write_text("text,label\nthe euro,exchange rate\n")
    assert "has no column 'item'" in refused("add", tmp_path / "q", "--items", more, "--known", more)

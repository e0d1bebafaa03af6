"""What the commands print and leave behind, as a shell sees it."""

import pytest
from typer.testing import CliRunner

from shortlist.annotate import Additions, init_project
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.project.project import Project
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


def test_an_unknown_format_is_told_every_one(make_project, tmp_path):
    line = refused("export", make_project(items=1).folder, tmp_path / "out.csv", "--format", "poem")
    assert all(name in line for name in EXPORTS)


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
    assert "30 of 30 done" in text
    assert f"{30 + counts['gold']} answers, 0 None (without gold)" in text
    misses = f"0 slips, {counts['shown']} misses of {counts['shown']} shown"
    assert f"gold {counts['gold']} ({misses}, {counts['strays']} strays of {counts['strays']} not shown)" in text


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

"""What the commands print and leave behind, as a shell sees it."""

from typer.testing import CliRunner

from shortlist.annotate.formats import EXPORTS
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


def test_the_help_of_export_names_every_format():
    text = run("export", "--help")
    for name in EXPORTS:
        stem, ending = name.split(".")
        assert stem in text
        assert f".{ending}" in text


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
    assert f"{30 + counts['gold']} answers, 0 None besides gold" in text
    misses = f"0 slips, {counts['shown']} misses of {counts['shown']} shown"
    assert f"gold {counts['gold']} ({misses}, {counts['strays']} strays of {counts['strays']} not shown)" in text

"""Every numeric option of every command, given numbers that cannot be meant: one line that names it, or it is fine."""

import shutil
import typing
from pathlib import Path

import pytest

from shortlist.cli import app

from .conftest import text_rows, text_table

RUNS = {
    "demo": "--seeds 1 --epochs 1 --out made",
    "simulate": "rows.csv --size 2 --out made.csv",
    "train": "rows.csv --size 2 --overwrite --out made",
    "predict": "trained rows.csv --out made.csv",
    "label": "rows.csv --size 2 --seeds 1 --budget 60 --no-rivals",
    "reproduce": "table1 --quick --datasets digits --methods likelihood --protocol fair --dry-run",
    "plan": "--classes 5 --items 50",
    "annotate": "",
    "annotate init": "made --items rows.csv --classes classes.txt --policy adaptive",
    "annotate serve": "project --policy adaptive",
    "annotate demo": "",
}
"""What each command needs beside the option."""
SERVES = ("annotate", "annotate serve", "annotate demo")
"""With a number that is fine these do not end."""


def numeric_options():
    """(command, option, how many numbers it takes) of all that typer knows."""
    commands = [(one.name, one.callback) for one in app.registered_commands]
    for group in app.registered_groups:
        inside = group.typer_instance
        commands.append((group.name, inside.registered_callback.callback))
        commands += [(f"{group.name} {one.name or one.callback.__name__}", one.callback)
                     for one in inside.registered_commands]  # fmt: skip
    for command, callback in commands:
        for name, hint in typing.get_type_hints(callback).items():
            parts = {hint, *typing.get_args(hint)}
            kinds = parts | {kind for part in parts for kind in typing.get_args(part)}
            if kinds & {int, float}:
                yield command, "--" + name.replace("_", "-"), 2 if typing.get_origin(hint) is tuple else 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("numbers")
    text_table(made / "rows.csv", text_rows(60))
    (made / "classes.txt").write_text("lost card\nexchange rate\ntop up\n")
    return made


@pytest.fixture
def here(folder, shortlist, monkeypatch):
    """A folder with data, a trained model and a project."""
    monkeypatch.chdir(folder)
    if not Path("project").exists():
        assert shortlist("train", "rows.csv", "--size", "2", "--out", "trained").code == 0
        assert shortlist("annotate", "init", "project", "--items", "rows.csv", "--classes", "classes.txt").code == 0
    yield
    shutil.rmtree("made", ignore_errors=True)


@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "99999999999999999999999", "1e300"])
@pytest.mark.parametrize(("command", "option", "count"), [*numeric_options()])
def test_a_number_that_cannot_be_meant_is_one_line(here, shortlist, command, option, count, value):
    if value == "0" and command in SERVES:
        return
    words = RUNS[command].split()
    if option in words:
        place = words.index(option)
        del words[place : place + 2]
    done = shortlist(*command.split(), *words, option, *[value] * count)
    if value == "0" and done.code == 0:
        return
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert option.strip("-") in done.err.replace("_", "-")
    if value != "0":
        assert value in done.err or str(float(value)) in done.err, "what was got"


def test_every_command_with_numbers_is_there():
    assert {command for command, _, _ in numeric_options()} == set(RUNS)

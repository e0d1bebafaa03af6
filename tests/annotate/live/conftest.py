"""A project of texts that give their class away, and somebody who answers rightly."""

import csv
import time

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Item
from shortlist.annotate.project.additions import Additions
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import Source
from shortlist.annotate.setup import init_project

from .starting import COUNT, NAMES, text

WORDS = ["cat mouse fur", "dog bark fur", "emu egg feather", "fly wing buzz", "gnu horn grass", "hen egg coop"]


@pytest.fixture
def words(make_project):
    """A project of texts that give their class away: item i is of class i % 6."""

    def make(database=None, count=60, **settings):
        project = make_project(database, items=0, **settings)
        texts = [f"{WORDS[i % 6]} number{i}" for i in range(count)]
        add_items(project, [Source(f"text {i}", f"text {i}", text=text) for i, text in enumerate(texts)])
        return project

    return make


@pytest.fixture
def make(tmp_path):
    """A project of texts: item i is of class i % 12; with `codes` its text says so in words of its own."""

    def make(folder="p", codes=False, database=None, names=True, overlap=1, **files):
        with (tmp_path / "items.csv").open("w", newline="") as file:
            rows = [(f"t{row}", text(row, codes)) for row in range(COUNT)]
            csv.writer(file).writerows([("item", "text"), *rows])
        (tmp_path / "classes.txt").write_text("\n".join(NAMES))
        additions = Additions(tmp_path / "items.csv", tmp_path / "classes.txt", **files)
        how = {"policy": "top", "size": 2, "database": database, "names": names, "overlap": overlap}
        outcome = init_project(tmp_path / folder, additions, **how)[1]
        return Project.open(tmp_path / folder), outcome

    return make


def truth(project, question):
    with project.store.read() as connection:
        name = connection.execute(select(Item.name).where(Item.id == question.item_id)).scalar_one()
    return int(name.split()[1]) % 6


def answer_all(project, chooser, who, most=10_000):
    """Ask and answer rightly until nothing is left; the questions."""
    queue, asked = project.queue(chooser), []
    while len(asked) < most and (held := queue.next(who)):
        (question,) = held
        right = truth(project, question)
        queue.answer(who, question.id, question.attempt, right if right in question.shortlist else None, 1.0)
        asked.append(question)
    return asked


def wait_for(ready, seconds=120.0):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)

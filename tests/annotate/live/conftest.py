"""A project of texts that give their class away, and somebody who answers rightly."""

import time

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Item
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import Source

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

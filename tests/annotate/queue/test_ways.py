"""Three ways to ask, drawn by chance for each item and person."""

from collections import Counter
from functools import partial
from random import Random

import pytest
from sqlalchemy import select

from shortlist import StochasticLabels
from shortlist.annotate.db.schema import Question, Slot
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.live.answer_log import AnswerLog, gold_log, rounds
from shortlist.annotate.problems import Invalid
from shortlist.annotate.project.project import Settings
from shortlist.annotate.queue.chooser import UniformChooser
from shortlist.annotate.queue.ways import WAYS, Comparing
from shortlist.errors import InputError
from shortlist.policies import TimeModel

from ..conftest import people
from .test_typed import AsksAgain


def test_a_third_each_and_a_shortlist_after_none():
    chooser = Comparing(UniformChooser(2))
    seeds = [k * 7_919_777 for k in range(3000)]
    drawn = [chooser.choose(1, 5, [], seed) for seed in seeds]
    assert all(900 < count < 1100 for count in Counter(choice.way for choice in drawn).values())
    on_gold = Counter(choice.way for choice, seed in zip(drawn, seeds, strict=True) if seed % 9 == 0)
    assert all(80 < on_gold[way] < 145 for way in WAYS), "how often gold comes must not decide the way"
    shown = {choice.way: choice for choice in drawn}
    assert (shown["full"].shortlist, shown["full"].inclusion) == ((0, 1, 2, 3, 4), (1.0,) * 5)
    assert (shown["search"].shortlist, len(shown["shortlist"].shortlist)) == ((), 2)
    again = [chooser.choose(1, 5, [0, 1], seed) for seed in range(0, 1 << 30, 1 << 20)]
    assert {choice.way for choice in again} == {"shortlist"}
    assert chooser.choose(1, 5, range(5), 7) is None


@pytest.fixture
def compared(make_project, database):
    """Two people answer all of 40 items and 20 gold ones: class 3, at 1 s and 0.25 s per name, or typed in 4 s."""
    project = make_project(database, items=40, classes=6, gold=20, gold_every=2, compare=True)
    queue = project.queue(AsksAgain(2), seeds=partial(Random(0).getrandbits, 53))
    ids, done = people(project, "ada", "bob"), False
    while not done:
        done = True
        for who in ids:
            for q in queue.next(who):
                done = False
                if q.shortlist == []:
                    queue.answer(who, q.id, 0, 3, 4.0, typed=True)
                else:
                    here = 3 in q.shortlist
                    looked = q.shortlist.index(3) + 1 if here else len(q.shortlist)
                    queue.answer(who, q.id, 0, 3 if here else None, 1.0 + 0.25 * looked)
    return project


def test_people_are_asked_in_all_ways_and_gold_in_each(compared):
    with compared.store.read() as connection:
        statement = select(Question.way, Question.shortlist, Slot.gold, Question.annotator_id).join(Slot)
        rows = connection.execute(statement).all()
    assert len({(row.way, row.gold, row.annotator_id) for row in rows}) == 3 * 2 * 2
    sizes = {way: {len(row.shortlist) for row in rows if row.way == way} for way in WAYS}
    assert (sizes["full"], sizes["search"]) == ({6}, {0})
    assert max(sizes["shortlist"]) == 2
    full = [row.shortlist for row in rows if row.way == "full"]
    assert all(shown == [0, 1, 2, 3, 4, 5] for shown in full), "gold ones, too: nobody can tell them apart"


def test_status_export_and_learning_know_the_ways(compared, tmp_path):
    found = {way["way"]: way for way in compared.status()["ways"]}
    assert found["full"]["seconds"]["value"] == pytest.approx(2.0)
    assert found["search"]["seconds"]["value"] == pytest.approx(4.0)
    assert found["shortlist"]["labelled"] == found["shortlist"]["items"], "asked again until it has a class"
    assert sum(way["items"] for way in found.values()) == 40
    assert EXPORTS["answers.csv"](compared, tmp_path / "answers.csv") > 40
    labels = StochasticLabels.read(tmp_path / "answers.csv")
    assert set(labels.answer.tolist()) == {3, -1}
    assert TimeModel.read(tmp_path / "answers.csv").typing == pytest.approx(4.0 - 1.0 - 0.25 * 3, abs=0.05)
    with compared.store.read() as connection:
        given, _ = AnswerLog().read(connection)
    log, _ = gold_log(given, 6)
    assert (log.sizes == 0).any()
    rows = {one.item_id: row for row, one in enumerate(given)}
    learned = list(rounds([one for one in given if one.truth is None], rows, 6))
    assert sum(len(part[0]) for part in learned) == sum(one.truth is None for one in given)


def test_a_search_is_answered_by_a_class_or_skipped(make_project):
    project = make_project(items=30, compare=True)
    (ada,) = people(project, "ada")
    queue = project.queue()
    q = next(q for _ in range(30) for q in queue.next(ada) if q.shortlist == [] or not queue.skip(ada, q.id, 0))
    with pytest.raises(Invalid, match="type one, or skip"):
        queue.answer(ada, q.id, 0, None, 1.0)
    assert queue.answer(ada, q.id, 0, 2, 1.0, typed=True)[0].kind == "typed"
    other = next(q for _ in range(30) for q in queue.next(ada) if q.shortlist == [] or not queue.skip(ada, q.id, 0))
    assert queue.skip(ada, other.id, 0)[0].kind == "skip"


def test_without_typing_nothing_is_compared():
    with pytest.raises(InputError, match="cannot be compared without typing"):
        Settings("t", 3, typing=False, compare=True)

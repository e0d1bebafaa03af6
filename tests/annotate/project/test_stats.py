import time
from itertools import pairwise

import pytest
from sqlalchemy import func, insert, select, update

from shortlist.annotate.db.schema import Answer, Item, Measure, Slot
from shortlist.annotate.project.review.corrections import correct
from shortlist.annotate.project.stats import Stats, agreement, gold_quality

from ..conftest import people
from ..queue.test_typed import AsksAgain


def row(annotator=1, item=1, answer=None, shown=(0, 1), gold=None, typed=False):
    return {
        **{"annotator_id": annotator, "item_id": item, "class_id": answer, "shortlist": list(shown), "gold": gold},
        **{"is_gold": gold is not None, "seconds": 1.0, "size": len(shown), "typed": typed},
    }


def test_slips_misses_and_strays():
    rows = [
        row(1, answer=0, gold=0),  # right
        row(1, answer=None, gold=2),  # right: it was not shown
        row(1, answer=None, gold=0),  # a miss
        row(1, answer=1, gold=0),  # a slip: another was picked
        row(1, answer=1, gold=2),  # a stray: it was not shown, and yet one was picked
        row(2, answer=0, gold=0),
        row(2, answer=0),  # no gold item
    ]
    assert gold_quality(rows) == {
        1: {"gold": 5, "gold_shown": 3, "slips": 1, "misses": 1, "strays": 1, "gold_typed": 0, "mistyped": 0},
        2: {"gold": 1, "gold_shown": 1, "slips": 0, "misses": 0, "strays": 0, "gold_typed": 0, "mistyped": 0},
    }


def test_who_types_has_said_none_to_a_list_without_the_class():
    rows = [
        row(answer=2, gold=2, typed=True),  # right, and None was right
        row(answer=0, gold=0, typed=True),  # right, and on the list
        row(answer=2, gold=0, typed=True),  # the right one was overlooked, and a wrong one typed
        row(answer=1, gold=0, typed=True),  # a slip, typed
        row(answer=3, gold=2, typed=True),  # None was right, what was typed is wrong
    ]
    found = {"gold": 5, "gold_shown": 3, "slips": 1, "misses": 1, "strays": 0, "gold_typed": 5, "mistyped": 3}
    assert gold_quality(rows) == {1: found}


def test_agreement_counts_the_pairs_that_could_disagree():
    assert agreement([]) == {"pairs": 0, "share": None}
    two_nones = [row(1), row(2)]
    assert agreement(two_nones)["pairs"] == 0, "two Nones say nothing about each other"
    elsewhere = [row(1, answer=0, shown=(0, 1)), row(2, answer=None, shown=(2, 3))]
    assert agreement(elsewhere)["pairs"] == 0
    same = [row(1, answer=0), row(2, answer=0), row(3, answer=0, item=2)]
    assert agreement(same) == {"pairs": 1, "share": 1.0}
    missed = [row(1, answer=0), row(2, answer=None)]
    assert agreement(missed) == {"pairs": 1, "share": 0.0}
    mixed = [row(1, answer=0), row(2, answer=0), row(3, answer=1)]
    assert agreement(mixed) == {"pairs": 3, "share": 1 / 3}
    typed = [row(1, answer=3, typed=True), row(2, answer=0), row(3, answer=None, shown=(4, 5))]
    assert agreement(typed) == {"pairs": 1, "share": 0.0}, "who typed could have typed what the other picked"
    assert agreement([row(1, answer=0, typed=True, shown=(1,)), row(2, answer=0)]) == {"pairs": 1, "share": 1.0}


def test_agreement_hears_each_person_once_an_item():
    """Under a policy that asks again after a None, one person answers many lists about an item."""
    alone = [row(1, answer=None, shown=(0, 1)), row(1, answer=0, shown=(0, 2))]
    assert agreement(alone)["pairs"] == 0, "nobody agrees or disagrees with themselves"
    right = [row(1, answer=3, shown=(2, 3)), row(2), row(2, shown=(0, 2)), row(2, answer=3, shown=(3,))]
    assert agreement(right) == {"pairs": 1, "share": 1.0}
    refused_thrice = [row(1, answer=0), row(2), row(2, shown=(0, 2)), row(2, answer=3, shown=(0, 3))]
    assert agreement(refused_thrice) == {"pairs": 1, "share": 0.0}


def test_an_item_that_a_policy_has_closed_is_done(make_project):
    project = make_project(items=3)
    with project.store.write() as connection:
        connection.execute(update(Item).where(Item.id == 1).values(state="closed"))
    status = Stats(project.store).status()
    assert (status["items"], status["items_done"]) == (3, 1)


def test_the_status_of_a_real_project(make_project, database):
    project = make_project(database, items=3, overlap=2, classes=2, size=2, gold=2, gold_every=2)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue()
    for who, choice in ((ada, 0), (bob, 1)):
        while held := queue.next(who):
            queue.answer(who, held[0].id, 0, choice, 2.0 if who == ada else 4.0)
    status = Stats(project.store).status()
    assert status["progress"] == {"done": 6, "total": 6}
    assert (status["items"], status["items_done"]) == (3, 3), "gold items are never done, and not counted"
    assert status["none_share"] == 0
    assert status["agreement"] == {"pairs": 3, "share": 0.0}
    assert [who["median_seconds"] for who in status["annotators"]] == [2.0, 4.0]
    assert status["hours"] == pytest.approx(
        sum(2.0 * who["id"] * who["answers"] for who in status["annotators"]) / 3600
    )
    for who in status["annotators"]:
        assert who["slips"] <= who["gold_shown"] <= who["gold"]
        assert who["answers"] == 3 + who["gold"]
    assert status["seconds_by_size"][0]["size"] == 2


def test_answers_on_gold_items_are_in_no_share_and_no_median(make_project, database):
    """Half of their lists hold the class by design: here all of them are answered, slowly, and no other list is."""
    project = make_project(database, items=40, classes=20, size=2, gold=20, gold_every=2)
    ada, bob = people(project, "ada", "bob")
    queue, on_gold = project.queue(), 0
    for who in (ada, bob):
        while held := queue.next(who):
            is_gold = held[0].item_id > 40
            on_gold += is_gold
            queue.answer(who, held[0].id, 0, held[0].shortlist[0] if is_gold else None, 9.0 if is_gold else 1.0)
    assert on_gold > 5
    status = Stats(project.store).status()
    assert status["none_share"] == 1.0
    assert sum(who["nones"] for who in status["annotators"]) == 40
    assert all(who["none_share"] in (1.0, None) for who in status["annotators"])
    assert {who["median_seconds"] for who in status["annotators"]} <= {1.0, None}
    assert status["seconds_by_size"] == [{"size": 2, "median_seconds": 1.0}]
    assert status["answers"] == 40 + on_gold, "they are work all the same"
    assert status["hours"] == pytest.approx((40 + 9 * on_gold) / 3600)
    queue.undo(ada)
    assert Stats(project.store).status()["none_share"] == 1.0, "also after one of them was taken back"


def report(project, *points: tuple[int, float], name: str = "accuracy") -> list[tuple[int, float]]:
    """What the curve shows after a trainer has reported these (answers, value)."""
    rows = [{"at": 0.0, "name": name, "value": value, "answers": answers} for answers, value in points]
    if rows:
        with project.store.write() as connection:
            connection.execute(insert(Measure), rows)
    return [(m["answers"], m["value"]) for m in Stats(project.store).status()["measures"] if m["name"] == name]


def test_a_curve_does_not_run_backwards_after_answers_were_taken_back(make_project, database):
    project = make_project(database)
    report(project, (30, 0.1), (40, 0.2), name="resolved")
    assert report(project, (10, 0.3), (20, 0.5), (30, 0.7)) == [(10, 0.3), (20, 0.5), (30, 0.7)]
    assert report(project, (15, 0.4)) == [(10, 0.3), (15, 0.4)], "20 and 30 knew what was taken back"
    assert report(project, (20, 0.6), (25, 0.8)) == [(10, 0.3), (15, 0.4), (20, 0.6), (25, 0.8)]
    assert report(project, name="resolved") == [(30, 0.1), (40, 0.2)], "a curve of its own"
    assert report(project, (0, 0.1)) == [(0, 0.1)]


def test_a_long_curve_begins_at_its_beginning_and_ends_at_its_end(make_project, database):
    shown = report(make_project(database), *((n, n / 5000) for n in range(1, 5001)))
    assert 200 <= len(shown) <= 251
    assert shown[0][0] <= 20
    assert shown[-1] == (5000, 1.0)
    gaps = [b - a for (a, _), (b, _) in pairwise(shown)]
    assert max(gaps) <= 25


def test_answers_taken_back_and_none_asked_again_are_no_pace(make_project, database):
    """Answers of ten minutes: the last is taken back, one is None and asked again, some are on a gold item."""
    project = make_project(database, items=30, classes=4, size=2, gold=8, gold_every=2)
    (ada,) = people(project, "ada")
    queue = project.queue(AsksAgain(2))
    settled = 0
    for turn in range(16):
        (q,) = queue.next(ada)
        none = turn == 2
        queue.answer(ada, q.id, q.attempt, None if none else q.shortlist[0], 1.0)
        settled += not none and q.item_id <= 30
    assert settled < 15, "a gold one among them"
    assert queue.undo(ada)
    with project.store.write() as connection:
        connection.execute(update(Answer).values(answered_at=time.time() - 600))
    work = Stats(project.store).work()
    assert work["last_hour"] == 15
    assert work["over"] == pytest.approx(600, abs=30)
    with project.store.read() as connection:
        done = connection.execute(select(func.count()).where(Slot.state == "done", Slot.gold.is_(False))).scalar_one()
    assert done in (settled, settled - 1)
    assert work["pace"] == pytest.approx(6 * done, rel=0.05)
    assert Stats(project.store).status()["answers"] == 15


def test_known_items_are_told_from_those_that_were_asked_about(make_project):
    project = make_project(items=5)
    correct(project.store, 2, 0, 1, "ada", "")
    status = Stats(project.store).status()
    assert (status["items"], status["items_done"], status["known"]) == (5, 1, 1)
    assert status["progress"] == {"done": 0, "total": 4}


def test_the_pace_is_that_of_the_time_since_the_hours_first_answer(make_project):
    project = make_project(items=12)
    (ada,) = people(project, "ada")
    queue = project.queue()
    for _ in range(10):
        held = queue.next(ada)
        queue.answer(ada, held[0].id, 0, None, 1.0)
    assert Stats(project.store).work()["pace"] is None, "seconds say nothing"
    with project.store.write() as connection:
        connection.execute(update(Answer).values(answered_at=time.time() - 360))
        connection.execute(update(Answer).where(Answer.id == 1).values(answered_at=time.time() - 7200))
    work = Stats(project.store).work()
    assert work["last_hour"] == 9
    assert work["pace"] == pytest.approx(90, rel=0.1)

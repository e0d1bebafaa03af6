"""Finding a class by a few letters."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.annotate.problems import NotFound
from shortlist.annotate.project.classes import rename_class
from shortlist.annotate.queue.chooser import UniformChooser
from shortlist.annotate.queue.search import ClassIndex, ClassSearch

from ..conftest import people
from .test_typed import AsksAgain

NAMES = ["card_arrival", "lost_card", "Card payment fee", "visa or mastercard", "Überweisung", "exchange rate", "pin"]


def found(typed, beliefs=None, limit=8, descriptions=None):
    return [NAMES[k] for k in ClassIndex(NAMES, descriptions or {}).best(typed, beliefs, limit)]


def test_names_that_begin_so_come_first_then_words_then_parts_then_what_looks_alike():
    assert found("card") == ["card_arrival", "Card payment fee", "lost_card", "visa or mastercard"]
    assert found("ca lo") == ["lost_card"]
    assert found("UBER") == ["Überweisung"]
    assert found("exchnage rate") == ["exchange rate"]
    assert found("zzz") == []
    assert found("plastic", descriptions={1: "a plastic thing is gone"}) == ["lost_card"]
    assert found("card", limit=1) == ["card_arrival"]


def test_the_likelier_of_equal_matches_comes_first():
    beliefs = np.array([0.1, 0.5, 0.2, 0.9, 0, 0, 0.3])
    assert found("card", beliefs)[:3] == ["Card payment fee", "card_arrival", "lost_card"]
    assert found("", beliefs, 3) == ["visa or mastercard", "lost_card", "pin"], "nothing typed: the likeliest"
    assert found(" _ ", None, 2) == NAMES[:2]


def words(text: str) -> list[str]:
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", bare)


@given(
    names=st.lists(st.text(alphabet="abc _-é", min_size=1, max_size=8), min_size=1, max_size=6, unique=True),
    typed=st.text(alphabet="abcé ", max_size=4),
)
@settings(max_examples=150)
def test_every_name_that_holds_the_words_typed_is_found_in_the_order_of_how(names, typed):
    got = ClassIndex(names, {}).best(typed, None, 50)
    assert len(set(got)) == len(got)
    asked = words(typed)
    if not asked:
        assert got == list(range(len(names)))
        return

    def grade(k: int) -> int:
        mine = words(names[k])
        if " ".join(mine).startswith(" ".join(asked)):
            return 0
        if all(any(word.startswith(one) for word in mine) for one in asked):
            return 1
        return 2 if all(any(one in word for word in mine) for one in asked) else 3

    grades = [grade(k) for k in got]
    assert grades == sorted(grades)
    assert {k for k in range(len(names)) if grade(k) < 3} <= set(got)


class Believes(AsksAgain):
    def beliefs(self, item, num_classes, seed):
        return (np.arange(num_classes) == 4).astype(np.float32)


def test_classes_are_marked_as_shown_and_refused(make_project, database):
    project = make_project(database, items=1)
    ada, bob = people(project, "ada", "bob")
    queue = project.queue(Believes(2))
    search = ClassSearch(project.store, queue.chooser)
    (q,) = queue.next(ada)
    _, (again,) = queue.answer(ada, q.id, 0, None, 1.0, hold=1)
    matches = search.find(ada, again.id, "class", 8)
    assert [one.class_id for one in matches] == [4, 0, 1, 2, 3, 5]
    assert {one.class_id for one in matches if one.refused} == set(q.shortlist)
    assert {one.class_id for one in matches if one.shown} == set(again.shortlist)
    assert {one.name for one in search.find(ada, again.id, "3", 8)} == {"class 3"}
    browsed = [one.shown or one.refused for one in search.find(ada, again.id, "", 8)]
    assert browsed == [False, False, True, True, True, True], "what was read already comes last"
    with pytest.raises(NotFound):
        search.find(bob, again.id, "class", 8)


def test_a_class_is_found_by_its_new_name(make_project, monkeypatch):
    project = make_project(items=1)
    (ada,) = people(project, "ada")
    (q,) = project.queue().next(ada)
    search = ClassSearch(project.store, UniformChooser(3))
    assert search.find(ada, q.id, "emu", 8) == []
    rename_class(project, 2, "emu")
    monkeypatch.setattr("shortlist.annotate.queue.search.KEEP_SECONDS", 0.0)
    assert [one.class_id for one in search.find(ada, q.id, "emu", 8)] == [2]

"""A class on every list: drawn with probability 1, beside lists that are drawn as if it were not there."""

from functools import partial
from itertools import combinations
from random import Random

import numpy as np
import pytest
from scipy.stats import chisquare

from shortlist import StochasticLabels
from shortlist.annotate.queue.chooser import UniformChooser
from shortlist.annotate.queue.gold import gold_like
from shortlist.annotate.queue.pinned import Pinned
from shortlist.annotate.queue.ways import Comparing
from shortlist.annotate.setup import export_file
from shortlist.labels import NONE

from ..conftest import people
from .test_typed import AsksAgain


@pytest.mark.parametrize("refused", [[], [1]])
def test_it_is_last_on_every_list_and_the_others_are_drawn_without_it(refused):
    chooser, others = Pinned(UniformChooser(2), 3), [k for k in range(5) if k not in (3, *refused)]
    every = {frozenset(pair): 0 for pair in combinations(others, 2)}
    for seed in range(3000):
        choice = chooser.choose(1, 5, refused, seed)
        *drawn, last = choice.shortlist
        assert (last, choice.pinned) == (3, 3)
        assert choice.inclusion == pytest.approx([2 / len(others)] * 2 + [1.0])
        every[frozenset(drawn)] += 1
    assert len(every) == len(list(combinations(others, 2)))
    assert chisquare(list(every.values())).pvalue > 1e-3


def test_once_refused_it_is_not_asked_again_and_it_is_asked_when_nothing_else_is_left():
    chooser = Pinned(UniformChooser(2), 3)
    assert chooser.choose(1, 5, [3, 0], 7) == UniformChooser(2).choose(1, 5, [3, 0], 7)
    assert chooser.choose(1, 5, [0, 1, 2, 4], 7).shortlist == (3,)
    assert chooser.choose(1, 5, [0, 1, 2, 3, 4], 7) is None


@pytest.mark.parametrize("truth", range(4))
def test_gold_questions_look_like_the_others(truth):
    chooser, held = Pinned(UniformChooser(2), 3), []
    for seed in range(2000):
        choice = gold_like(chooser.choose(1, 6, [5], seed), truth, 6, [5], seed + 10_000)
        assert (len(choice.shortlist), choice.shortlist[-1], choice.policy) == (3, 3, "gold")
        assert len(set(choice.shortlist)) == 3
        assert 5 not in choice.shortlist
        held.append(truth in choice.shortlist)
    assert np.mean(held) == (1 if truth == 3 else pytest.approx(0.5, abs=0.05))


def test_ways_that_are_compared_pin_it_on_shortlists_alone():
    drawn = [Comparing(Pinned(UniformChooser(2), 3)).choose(1, 5, [], k * 7_919_777) for k in range(60)]
    assert {(choice.way, len(choice.shortlist)) for choice in drawn} == {("full", 5), ("search", 0), ("shortlist", 3)}


def test_out_of_scope_and_not_on_this_list_are_told_apart_in_the_export(make_project, database, tmp_path):
    """Half of the items are of class 0, half of none of 0 to 4: class 5 says so at the first question."""
    project = make_project(database, items=20, classes=6, pinned=5)
    queue = project.queue(AsksAgain(2), seeds=partial(Random(0).getrandbits, 53))
    (who,) = people(project, "ada")
    asked = {}
    while found := queue.next(who):
        for q in found:
            asked.setdefault(q.item_id, []).append(q.shortlist)
            truth = 5 if q.item_id % 2 else 0
            queue.answer(who, q.id, 0, truth if truth in q.shortlist else None, 1.0)
    assert all((5 in lists[0]) and all(5 not in shown for shown in lists[1:]) for lists in asked.values())
    assert all(len(lists) == 1 for item, lists in asked.items() if item % 2)
    export_file(project, tmp_path / "labels.csv")
    labels = StochasticLabels.read(tmp_path / "labels.csv")
    first = labels.shown[:, 5]
    assert labels.inclusion[labels.classes == 5].tolist() == [1.0] * first.sum()
    assert (labels.answer[~first] != 5).all()
    assert {5, NONE} <= set(labels.answer[first].tolist()) <= {5, 0, NONE}

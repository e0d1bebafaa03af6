"""Which items are still worth a question where people err: asked too often, sure enough or known already, none is."""

import numpy as np

from shortlist.labels import NONE
from shortlist.policies.choose import Policy
from shortlist.policies.loop import Loop
from shortlist.policies.noise import Mistakes, rectangle
from shortlist.policies.settings import LoopSettings

K = 6


def asked(loop, item, shortlist, answer):
    lists, sizes = rectangle([shortlist], K)
    loop.record(np.array([item]), lists, sizes, np.array([answer]))


def test_items_asked_about_often_enough_or_known_are_closed_and_the_unsure_are_not():
    settings = LoopSettings(
        policy=Policy(max_size=3), mistakes=Mistakes(0.2, 0.1, typed=0.1), most_questions=2, representatives=0, sure=0.9
    )
    loop = Loop(np.random.default_rng(0).normal(size=(8, 4)), K, settings)
    assert loop.open_items().tolist() == list(range(8))
    loop.state.know(np.array([6]), np.array([2]))
    for item, questions in {
        0: [([0, 1], NONE)],  # four classes are left
        1: [([0, 1], NONE), ([2, 3], NONE)],  # two are left, and it was asked about twice
        2: [([0, 1], 1), ([1, 2], 1)],  # as good as sure, and asked about twice
        3: [([0, 1, 2, 3, 4, 5], 4)],
    }.items():
        for shortlist, answer in questions:
            asked(loop, item, shortlist, answer)
    sure = loop.beliefs(np.arange(8)).max(axis=1) >= 0.9
    assert not sure[1]
    assert loop.open_items().tolist() == [i for i in (0, 3, 4, 5, 7) if i > 3 or not sure[i]]
    assert 0 in loop.open_items()

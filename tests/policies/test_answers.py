"""Answers kept sparse say what a table of all items and classes would say."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.labels import NONE
from shortlist.policies.answers import LEAST, Answers, AnswerTable, likelihood_of
from shortlist.policies.noise import Log, Mistakes, likelihood
from shortlist.policies.state import LabelState

RATES = st.sampled_from([Mistakes(), Mistakes(0.1, 0.05, 0.02, 0.03), Mistakes(0.3, 0.0)])


def draw_log(rng: np.random.Generator, items: int, K: int) -> Log:
    """Questions on all items, some typed, some on nothing, some on every class."""
    lists = np.full((items, K), K, np.int32)
    sizes = rng.integers(0, K + 1, items)
    answer, typed = np.full(items, NONE), np.full(items, NONE)
    for i, size in enumerate(sizes):
        lists[i, :size] = rng.permutation(K)[:size]
        if size and rng.random() < 0.4:
            answer[i] = lists[i, rng.integers(size)]
        if rng.random() < 0.3:
            typed[i] = rng.integers(K)
    return Log(np.arange(items), lists, sizes, answer, typed)


class DenseState:
    """The state as it was: a table of all items and classes."""

    def __init__(self, items: int, K: int, mistakes: Mistakes) -> None:
        self.table, self.broken = np.ones((items, K), np.float32), np.zeros(items, bool)
        self.mistakes, self.K = mistakes, K

    def record(self, log: Log) -> None:
        each = likelihood(self.mistakes, log, self.K)
        for row, item in enumerate(log.items):
            before = self.table[item]
            if log.typed[row] != NONE:
                self.broken[item] = False
                if not self.mistakes:
                    before = np.ones(self.K)
            merged = before * each[row]
            if merged.max() <= 0:
                self.broken[item], merged = True, np.ones(self.K)
            merged = merged / merged.max()
            self.table[item] = np.maximum(merged, LEAST) if self.mistakes else merged


@given(st.integers(0, 2**32 - 1), RATES)
@settings(max_examples=60, deadline=None)
def test_many_questions_leave_what_a_dense_table_would_hold(seed, mistakes):
    rng = np.random.default_rng(seed)
    N, K = 7, 4
    state, naive, asked = LabelState(N, K, mistakes), DenseState(N, K, mistakes), np.zeros(N, bool)
    for _ in range(5):
        log = draw_log(rng, N, K)
        kept = rng.random(N) < 0.6
        asked[log.items[kept]] = True
        part = Log(log.items[kept], log.lists[kept], log.sizes[kept], log.answer[kept], log.typed[kept])
        state.record(part.items, part.lists, part.sizes, part.answer, part.typed)
        naive.record(part)
        everything = np.arange(N)
        np.testing.assert_array_equal(state.answer_likelihood[everything], naive.table)
        np.testing.assert_array_equal(state.broken, naive.broken)
        np.testing.assert_array_equal(state.certain, ((naive.table > 0).sum(axis=1) == 1) | naive.broken)
        rows = rng.permutation(N)[:3]
        taken, classes, weights = state.answer_likelihood.take(rows), rng.integers(0, K, 3), rng.random(K)
        np.testing.assert_array_equal(taken.at(classes), naive.table[rows, classes])
        np.testing.assert_allclose(taken.weighted(weights), naive.table[rows] @ weights, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(taken[slice(1, 3)].table(), naive.table[rows[1:3]])
        # answers that come to the same for every class are something known, though the table does not show it
        assert (naive.table[rows] == 1).all() or not taken.blank
        assert taken.blank or asked[rows].any()


@given(st.integers(0, 2**32 - 1), RATES)
@settings(max_examples=40, deadline=None)
def test_the_likelihood_of_single_answers_is_the_dense_one(seed, mistakes):
    log = draw_log(np.random.default_rng(seed), 6, 5)
    found = likelihood_of(mistakes, log, 5)
    expected = likelihood(mistakes, log, 5)
    np.testing.assert_allclose(found.table(), expected, rtol=1e-6)
    table = np.random.default_rng(seed).choice([0, 1, 0.3], (4, 5)).astype(np.float32)
    np.testing.assert_array_equal(Answers.from_table(table).table(), table)


def test_what_was_replaced_does_not_pile_up():
    table, K = AnswerTable(50, 9), 9
    rng = np.random.default_rng(0)
    for _ in range(400):
        rows = rng.permutation(50)[:20]
        table.put(rows, Answers.known(rng.integers(0, K, 20), K))
    assert len(table._classes) < 400, "room for twice what is there, and no more"
    assert (table[np.arange(50)].sum(axis=1) == 1).all()

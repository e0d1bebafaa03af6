import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels, join
from shortlist.policies.noise import Log, Mistakes, likelihood
from shortlist.policies.state import LabelState


def _ask(state: LabelState, item: int, shortlist: list[int], answer: int) -> None:
    lists = np.array([shortlist], np.int32)
    state.record(np.array([item]), lists, np.array([len(shortlist)]), np.array([answer]))


def _none(shown: np.ndarray) -> Log:
    """One list, answered None."""
    return Log(np.array([0]), shown, np.array([shown.shape[1]]), np.array([NONE]))


def _all(state: LabelState) -> np.ndarray:
    return state.answer_likelihood[np.arange(state.num_items)]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_merged_answers_are_the_candidates_that_joined_labels_have(seed):
    rng = np.random.default_rng(seed)
    K, n = 5, 4
    state, truth = LabelState(n, K), rng.integers(0, K, n)
    lists, answers, items = [], [], []
    for _ in range(12):
        item = int(rng.integers(n))
        possible = np.nonzero(state.candidates(np.array([item]))[0])[0]
        if state.certain[item]:
            continue
        shortlist = rng.permutation(possible)[: rng.integers(1, len(possible))].tolist()
        answer = int(truth[item]) if truth[item] in shortlist else NONE
        _ask(state, item, shortlist, answer)
        lists.append(shortlist)
        answers.append(answer)
        items.append(str(item))
        assert state.answer_likelihood[np.array([item])][0, truth[item]] == 1  # the truth is never ruled out
    labels = StochasticLabels.from_lists(lists, answers, K, items=items)
    rows, merged = join(labels, [str(i) for i in range(n)])
    np.testing.assert_array_equal(state.answer_likelihood[rows] > 0, merged.candidates)
    assert state.reads == labels.reads
    assert state.questions == len(labels) == len(state.log())
    assert state.asked.sum() == len(labels)


def test_seconds_reads_and_log_of_lists_of_different_length():
    state = LabelState(2, 4)
    _ask(state, 0, [3, 1], 1)
    _ask(state, 1, [2], NONE)
    assert (state.reads, state.questions) == (3, 2)
    assert state.seconds == pytest.approx(1.5 + 1.25)
    log = state.log()
    assert log.lists.tolist() == [[3, 1], [2, 4]]
    assert state.counts.tolist() == [0, 1, 0, 0]
    assert state.certain.tolist() == [True, False]


def test_a_contradiction_breaks_the_item_and_not_the_loop():
    state = LabelState(1, 3)
    _ask(state, 0, [0, 1], NONE)
    _ask(state, 0, [2], NONE)
    assert state.broken.tolist() == [True]
    assert len(state.informative) == 0
    assert np.isfinite(_all(state)).all()


def test_under_mistakes_refused_classes_are_only_less_likely_and_rates_can_change_later():
    rates = Mistakes(0.05, 0.02)
    state = LabelState(1, 3, rates)
    _ask(state, 0, [0, 1], NONE)
    _ask(state, 0, [2, 0], NONE)
    assert state.candidates(np.array([0])).all()
    assert not state.certain.any()
    naive = np.ones(3)
    for shortlist in ([0, 1], [2, 0]):
        shown = np.array([shortlist], np.int32)
        naive *= likelihood(rates, _none(shown), 3)[0]
    np.testing.assert_allclose(_all(state)[0], naive / naive.max(), rtol=1e-6)
    state.remodel(Mistakes(0.4, 0.02))
    naive = np.array([0.4**2, 0.4 * 0.98, 0.4 * 0.98])
    np.testing.assert_allclose(_all(state)[0], naive / naive.max(), rtol=1e-6)


def test_bad_states():
    with pytest.raises(InputError, match="2 classes"):
        LabelState(3, 1)


def _type(state: LabelState, item: int, shortlist: list[int], typed: int) -> None:
    answer = typed if typed in shortlist else NONE
    lists, sizes = np.array([shortlist], np.int32), np.array([len(shortlist)])
    state.record(np.array([item]), lists, sizes, np.array([answer]), np.array([typed]))


def test_a_typed_class_settles_the_item_even_if_it_was_refused_before():
    state = LabelState(3, 5)
    _type(state, 0, [1, 2], 4)
    _ask(state, 1, [3, 4], NONE)
    _type(state, 1, [0, 1], 3)  # refused a moment ago: that was the mistake
    _ask(state, 2, [0, 1, 2, 3, 4], NONE)  # says nothing: every class was refused
    _type(state, 2, [0], 2)
    assert _all(state).tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
    assert (state.certain & ~state.broken).all()
    assert state.answer.tolist() == [4, 3, 2]
    assert state.counts.tolist() == [0, 0, 1, 1, 1]
    assert state.reads == 2 + 2 + 2 + 5 + 1 + 3 * 3, "three matches are read for each class typed"
    read = [1 + 0.25 * 2, 1 + 0.25 * 5]
    typed = [1 + 0.25 * (2 + 3) + 2.75, 1 + 0.25 * (2 + 3) + 2.75, 1 + 0.25 * (1 + 3) + 2.75]
    assert state.seconds == pytest.approx(sum(read + typed))
    assert state.log().all_typed.tolist() == [4, NONE, 3, NONE, 2]
    again = _all(state)
    state.remodel(Mistakes())
    np.testing.assert_array_equal(_all(state), again)


def test_under_mistakes_a_typed_class_is_as_sure_as_those_who_type():
    rates = Mistakes(0.1, 0.05, typed=0.2)
    state = LabelState(1, 5, rates)
    _ask(state, 0, [3, 4], NONE)
    _type(state, 0, [0, 1], 3)
    none = likelihood(rates, _none(np.array([[3, 4]], np.int32)), 5)[0]
    expected = none * np.array([0.05, 0.05, 0.05, 0.8, 0.05])
    np.testing.assert_allclose(_all(state)[0], expected / expected.max(), rtol=1e-5)

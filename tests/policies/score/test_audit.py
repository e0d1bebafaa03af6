from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.labels import NONE
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.loop import Loop
from shortlist.policies.noise import Mistakes, simulate_answers
from shortlist.policies.score.audit import EVERY, Audit, draw_sample, usual_size
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import run_loop
from shortlist.policies.state import LabelState

QUICK = LoopSettings(policy=Policy("adaptive", max_size=3), retrain_every=100, l2=0.03)


def _clouds(seed: int) -> LoopData:
    """400 items of 8 classes; the accuracy is known from 5,000 others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 8, 5400)
    x = (rng.standard_normal((8, 12))[y] + rng.standard_normal((len(y), 12))).astype(np.float32)
    return LoopData("clouds", x[:400], y[:400], x[400:], y[400:], tuple("abcdefgh"))


def test_the_usual_sample_is_a_tenth_and_at_most_300():
    assert [usual_size(n) for n in (9, 1500, 3000, 100_000)] == [0, 150, 300, 300]


def test_a_sample_is_uniform_and_stays_so_when_names_come():
    drawn = np.concatenate([draw_sample(range(50), seed, 10) for seed in range(400)])
    counts = np.bincount(drawn, minlength=50)
    assert counts.sum() == 4000
    assert np.abs(counts - 80).max() < 4.5 * np.sqrt(80 * 0.8)  # each is in with probability 1 / 5
    for seed in range(20):
        few, more = draw_sample(range(50), seed, 10), draw_sample(range(80), seed, 10)
        stayed = [name for name in more if name < 50]
        assert stayed == few[: len(stayed)].tolist()
    assert draw_sample([str(n) for n in range(95)], 0).shape == (9,)
    assert draw_sample(range(5), 0).tolist() == []


@given(st.integers(0, 40), st.integers(0, 12), st.integers(0, 8), st.integers(0, 300))
def test_one_question_in_ten_is_about_the_sample(others, sample, asked, questions):
    state = LabelState(others + sample + 1, 3)
    rows = others + np.arange(sample)
    if sample:
        state.asked[rows[0]] = asked  # still open
    state.questions = questions + asked
    order, open_rows = np.arange(others), np.arange(others + sample)
    everything = Audit(rows).among(order, open_rows, state, all_of_it=True)
    some = Audit(rows).among(order, open_rows, state)
    assert sorted(everything.tolist()) == open_rows.tolist()
    for merged in (everything, some):
        assert merged[merged < others].tolist() == order.tolist()
    if others:
        # as many as are due when these questions are asked, one after another
        due, count = 0, asked if sample else 0
        for place in range(len(some)):
            if some[place] >= others:
                assert count * EVERY <= state.questions + place
                due, count = due + 1, count + 1
            else:
                assert due == sample or count * EVERY > state.questions + place


def test_undecided_items_come_first_and_those_known_to_be_wrong_last():
    state = LabelState(4, 3)
    audit = Audit(np.array([3, 1, 0, 2]), [(0, np.array([2, 0, 0, 2]))])
    lists = np.array([[2, 1], [1, 2]], np.int32)
    state.record(np.array([3, 0]), lists, np.full(2, 2), np.full(2, NONE))  # 2 is refused for item 3, 0 not for item 0
    assert audit.among(np.empty(0, np.int64), np.arange(4), state).tolist() == [0, 1, 2, 3]
    assert audit.among(np.empty(0, np.int64), np.array([1, 3]), state).tolist() == [1, 3]


def test_no_answer_about_the_sample_changes_the_model(blobs):
    """The same answers on all other items, other ones on the sample: the same model, and the same next lists."""
    sample = np.arange(40, 80)
    loops = [Loop(blobs.x, 12, QUICK, seed=0, sample=sample) for _ in range(2)]
    rng = np.random.default_rng(0)
    for _ in range(6):
        rows, questions = loops[0].ask(60)
        others, _ = loops[1].ask(60)
        np.testing.assert_array_equal(rows[~np.isin(rows, sample)], others[~np.isin(others, sample)])
        mine = np.isin(rows, sample)
        right = simulate_answers(rng, questions.lists, questions.sizes, blobs.y[rows], 12, Mistakes())
        for loop, of_sample in zip(loops, (right, np.full(len(rows), NONE)), strict=True):
            loop.record(rows, questions.lists, questions.sizes, np.where(mine, of_sample, right))
            loop.retrain()
            loop.audit.past[-1] = (0, np.zeros(40, np.int64))  # which of the sample comes next may differ
        np.testing.assert_array_equal(loops[0].model.weight, loops[1].model.weight)
        assert loops[0].pool == loops[1].pool
        assert loops[0].share == loops[1].share
    assert loops[0].state.asked[sample].any()


def test_an_item_is_decided_as_soon_as_the_model_s_class_is_picked_or_refused():
    state = LabelState(4, 5)
    audit = Audit(np.arange(4), [(0, np.array([1, 1, 1, 1]))])
    lists = np.array([[1, 2], [1, 2], [2, 3], [2, 3]], np.int32)
    state.record(np.arange(4), lists, np.full(4, 2), np.array([1, NONE, NONE, 3]))
    score = audit.score(state, np.zeros((4, 5), np.float32), 0.95)
    assert (score.items, score.undecided) == (4, 1)  # the third may be 0, 1 or 4
    assert score.low < 0.25
    assert score.high > 0.5
    audit.past.append((0, np.array([1, 0, 2, 3])))  # of another model the second item is undecided, too
    score = audit.score(state, np.zeros((4, 5), np.float32), 0.95)
    assert score.undecided == 1
    assert score.accuracy == pytest.approx(2 / 3, abs=0.1)


def test_items_count_by_their_place_in_the_sample_alone():
    state = LabelState(30, 3)
    audit = Audit(np.arange(30), [(0, np.zeros(30, np.int64))])
    logits = np.zeros((30, 3), np.float32)
    assert audit.score(state, logits, 0.95) is None
    state.asked[[0, 1, 2, 25]] = 1  # somebody was asked about an item far down before its turn
    assert audit.score(state, logits, 0.95).items == 3
    state.asked[4:20] = 1  # the fourth was skipped: it counts as undecided, and holds up nobody
    score = audit.score(state, logits, 0.95)
    assert (score.items, score.undecided) == (20, 20)


@pytest.mark.slow
@pytest.mark.parametrize("mistakes", [Mistakes(), Mistakes(0.05, 0.02)])
def test_in_the_end_the_sample_is_resolved_and_the_interval_holds_the_truth(mistakes):
    settings = replace(QUICK, mistakes=mistakes, policy=replace(QUICK.policy, deduce=not mistakes))
    held, undecided = [], 0
    for seed in range(5):
        curve = run_loop(_clouds(seed), settings, way="a", seed=seed, mistakes=mistakes, score=40)
        last = curve.scores[-1]
        assert last.items == last.size == 40
        undecided += last.undecided
        assert last.corrected == bool(mistakes)
        assert curve.points[-1].resolved > 0.97
        held.append(last.low <= curve.points[-1].accuracy <= last.high)
        assert len(curve.scores) == len(curve.points) == len(curve.a_point)
    assert sum(held) >= 4
    assert undecided <= (0.1 * 5 * 40 if mistakes else 0)  # 5 to 9 were seen, by the rounding of a processor's products
    assert {"score_low", "score_high"} <= curve.rows()[-1].keys()


def test_without_a_sample_nothing_is_scored(blobs):
    curve = run_loop(blobs, QUICK, way="a", seed=0, budget=300)
    assert curve.scores == ()
    loop = Loop(blobs.x, 12, QUICK, seed=0)
    assert loop.score() is None
    assert loop.questions_for(1) is None


def test_a_model_that_takes_the_truth_for_impossible_is_wrong():
    """Its probability of every class that is left is 0 in single precision: that is no reason for a score of NaN."""
    state, audit = LabelState(2, 3), Audit(np.array([0, 1]))
    shown = np.array([[0, 1], [0, 1]], np.int32)
    state.record(audit.rows, shown, np.array([2, 2]), np.array([0, NONE]))  # the first is 0, the second must be 2
    audit.past.append((2, np.array([0, 1])))
    logits = np.array([[300, 0, 0], [0, 300, -300]], np.float32)
    score = audit.score(state, logits, sure=0.95)
    assert (score.accuracy, score.undecided) == (0.5, 0)
    assert score.low < 0.5 < score.high

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.every_draw import outcomes
from shortlist.errors import InputError
from shortlist.policies.choose import Policy, choose, choose_one
from shortlist.policies.sizes import RULES, SizeRule, bits
from shortlist.policies.time_model import TimeModel, fit_time, looked_at

POLICIES = [
    Policy("uniform", size=2),
    Policy("top", size=2, epsilon=0.3),
    Policy("adaptive", hit=0.6, max_size=4, epsilon=0.25),
    Policy("adaptive", hit=0.95, max_size=3, floor=0.2),
    Policy("information", max_size=4, epsilon=0.1),
    Policy("information", max_size=3, floor=0.5),
    Policy("top", size=1, floor=0.9),
]
BELIEFS = [[0.5, 0.25, 0.15, 0.06, 0.04], [0.2] * 5, [0.9, 0.1, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
POSSIBLE = [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 0, 1, 0, 1]]


def inclusion_of(questions, possible):
    """(B, K) the inclusion probability of every class, shown or not."""
    preferred = (questions.best[:, :, None] == np.arange(possible.shape[1])).any(axis=1)
    uniform = questions.epsilon * questions.sizes / np.maximum(possible.sum(axis=1), 1)
    return np.where(possible, (1 - questions.epsilon[:, None]) * preferred + uniform[:, None], 0.0)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{p.kind}-{p.epsilon}-{p.floor}")
@pytest.mark.parametrize("p", BELIEFS, ids=str)
@pytest.mark.parametrize("possible", POSSIBLE, ids=str)
def test_inclusion_probabilities_are_exact_by_enumeration(policy, p, possible):
    drawn = outcomes(policy, p, possible)
    assert sum(weight for weight, _, _ in drawn) == pytest.approx(1)
    exact = np.zeros(5)
    for weight, shortlist, _ in drawn:
        assert len(set(shortlist)) == len(shortlist)
        assert all(possible[j] for j in shortlist)
        exact[list(shortlist)] += weight
    for _, shortlist, stored in drawn:
        np.testing.assert_allclose(stored, exact[list(shortlist)], atol=1e-12)
    rng = np.random.default_rng(0)
    mask = np.array([possible], bool)
    chosen = choose(policy, np.array([p]), mask, rng)
    np.testing.assert_allclose(inclusion_of(chosen, mask)[0], exact, atol=1e-12)
    # the floor holds for every class still possible
    assert exact[np.array(possible, bool)].min() >= policy.floor - 1e-12


@given(
    st.integers(2, 12),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["top", "adaptive", "information"]),
    st.floats(0, 1),
    st.floats(0, 1),
)
@settings(max_examples=150)
def test_floor_and_total_hold_for_any_beliefs(K, seed, kind, floor, epsilon):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(K, 0.3), size=6)
    possible = rng.random((6, K)) < 0.7
    policy = Policy(kind, size=3, max_size=4, floor=floor, epsilon=epsilon)
    questions = choose(policy, p, possible, rng)
    inclusion = inclusion_of(questions, possible)
    assert (inclusion[~possible] == 0).all()
    assert (inclusion <= 1 + 1e-12).all()
    # inclusion probabilities of a list of fixed size add up to that size
    np.testing.assert_allclose(inclusion.sum(axis=1), questions.sizes, atol=1e-9)
    assert np.where(possible, inclusion, 1).min() >= floor - 1e-9


def test_top_and_adaptive_against_a_naive_loop():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(9, 0.4), size=40)
    possible = rng.random((40, 9)) < 0.8
    possible[:, 0] = True
    adaptive = choose(Policy("adaptive", hit=0.7, max_size=4), p, possible, rng)
    top = choose(Policy("top", size=3), p, possible, rng)
    for i in range(40):
        ranked = sorted(np.nonzero(possible[i])[0], key=lambda j: -p[i, j])
        left = max(len(ranked) - 1, 1)
        assert top.row(i)[0] == ranked[: min(3, left)]
        total, size = p[i, ranked].sum(), 0
        while size < min(4, left) and sum(p[i, ranked[:size]]) / total < 0.7:
            size += 1
        assert adaptive.row(i)[0] == ranked[:size]


def test_information_policy_beats_every_other_list_per_second():
    time = TimeModel(1.0, 0.25)
    for seed in range(6):
        p = np.random.default_rng(seed).dirichlet(np.full(6, 0.5))
        rates = {}
        for size in range(1, 6):
            for shortlist in itertools.permutations(range(6), size):
                shown = p[list(shortlist)]
                cells = np.append(shown, max(0, 1 - shown.sum()))
                entropy = -(cells[cells > 0] * np.log2(cells[cells > 0])).sum()
                looked = (shown * np.arange(1, size + 1)).sum() + (1 - shown.sum()) * size
                rates[shortlist] = entropy / (1.0 + 0.25 * looked)
        policy = Policy("information", max_size=5, time=time)
        chosen = tuple(choose_one(policy, p, np.array([], int), seed=0)[0])
        assert rates[chosen] == pytest.approx(max(rates.values()), rel=1e-9)


def test_a_new_policy_is_one_function_and_one_line_in_the_registry(monkeypatch):
    def half_of_what_is_allowed(ranked, limits):
        return np.full(len(ranked), (ranked.shape[1] + 1) // 2)

    with pytest.raises(InputError, match="unknown policy 'half'"):
        Policy("half")
    monkeypatch.setitem(RULES, "half", SizeRule(half_of_what_is_allowed))
    policy = Policy("half", max_size=4, epsilon=0.25)
    p = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    assert choose_one(policy, p, np.array([0]), seed=1) == ([1, 2], [0.75 + 0.25 * 2 / 4] * 2)
    exact = sum(weight for weight, shortlist, _ in outcomes(policy, p.tolist(), [1] * 5) if 0 in shortlist)
    assert exact == pytest.approx(0.75 + 0.25 * 2 / 5)
    monkeypatch.setitem(RULES, "half", SizeRule(lambda ranked, limits: np.full(len(ranked), 9)))
    assert choose_one(Policy("half", max_size=2), p, np.array([0]), seed=1)[0] == [1, 2]  # never above max_size
    with pytest.raises(InputError, match="known: adaptive, half, information, top, uniform"):
        Policy("halve it")


def test_bits_of_the_answer():
    assert bits(np.array([[0.5, 0.25, 0.25]]))[0].tolist() == pytest.approx([1.0, 1.5, 1.5])


def test_a_full_list_is_not_shown_when_none_would_name_the_last_class():
    p = np.array([0.4, 0.3, 0.3])
    assert len(choose_one(Policy("top", size=3), p, np.array([], int), 0)[0]) == 2
    assert len(choose_one(Policy("top", size=3, deduce=False), p, np.array([], int), 0)[0]) == 3


def test_a_model_that_excludes_all_possible_classes_is_ignored():
    shortlist, inclusion = choose_one(Policy("adaptive", max_size=2), np.array([1.0, 0, 0, 0]), np.array([0]), 0)
    assert shortlist == [1, 2]
    assert inclusion == [1.0, 1.0]


def test_nothing_is_asked_when_every_class_was_refused():
    assert choose_one(Policy(), np.array([0.5, 0.5]), np.array([0, 1]), 0) == ([], [])


def test_a_seed_gives_its_list_again_and_uniform_lists_vary():
    p = np.full(20, 1 / 20)
    lists = [choose_one(Policy("uniform", size=3), p, np.array([4]), seed)[0] for seed in range(20)]
    assert lists[7] == choose_one(Policy("uniform", size=3), p, np.array([4]), 7)[0]
    assert len({tuple(row) for row in lists}) > 15
    assert not any(4 in row for row in lists)


@pytest.mark.parametrize(
    "bad", [{"kind": "tpo"}, {"size": 0}, {"hit": 0.0}, {"epsilon": 1.5}, {"floor": -0.1}, {"max_size": 0}]
)
def test_bad_policies_are_named(bad):
    with pytest.raises(InputError) as caught:
        Policy(**bad)
    assert "\n" not in str(caught.value)


def test_looking_stops_at_the_right_name():
    lists = np.array([[3, 1, 5], [2, 0, 4]], np.int32)  # K = 5 fills up
    assert looked_at(lists, np.array([2, 3]), np.array([1, -1])).tolist() == [2, 3]
    expected = TimeModel(1, 0.25).expected(np.array([[0.5, 0.5]]))
    assert expected[0].tolist() == pytest.approx([1.25, 1 + 0.25 * 1.5])


def test_time_model_is_found_again_in_a_log():
    rng = np.random.default_rng(0)
    lists = [[str(k) for k in range(rng.integers(2, 9))] for _ in range(400)]
    answers = [row[rng.integers(len(row))] if rng.random() < 0.7 else "" for row in lists]
    looked = [row.index(a) + 1 if a else len(row) for row, a in zip(lists, answers, strict=True)]
    seconds = [1.4 + 0.3 * k + rng.normal(0, 0.05) for k in looked]
    seconds[:8] = [900.0] * 8  # coffee
    fitted = fit_time(lists, answers, seconds)
    assert fitted.base == pytest.approx(1.4, abs=0.05)
    assert fitted.per_class == pytest.approx(0.3, abs=0.02)
    with pytest.raises(InputError, match="at least 10"):
        fit_time(lists[:3], answers[:3], [1.0, 2.0, 3.0])


def test_the_time_to_type_is_found_again_in_a_log_with_enough_of_it():
    rng = np.random.default_rng(1)
    lists = [[str(k) for k in range(rng.integers(2, 9))] for _ in range(400)]
    typed = rng.random(400) < 0.3
    answers = [
        row[rng.integers(len(row))] if rng.random() < 0.7 and not t else "" for row, t in zip(lists, typed, strict=True)
    ]
    looked = np.array([row.index(a) + 1 if a else len(row) for row, a in zip(lists, answers, strict=True)])
    seconds = 1.4 + 0.3 * looked + typed * (4.0 + 0.3 * 3) + rng.normal(0, 0.05, 400)
    fitted = fit_time(lists, answers, seconds.tolist(), typed=typed.tolist())
    assert (fitted.base, fitted.per_class) == pytest.approx((1.4, 0.3), abs=0.03), "typed answers take no part"
    assert fitted.typing == pytest.approx(4.0, abs=0.1)
    few = np.cumsum(typed) * typed < 10
    kept = [i for i in range(400) if not typed[i] or few[i]]
    part = fit_time(*([column[i] for i in kept] for column in (lists, answers, seconds)), typed=typed[kept].tolist())
    assert part.typing == TimeModel().typing, "nine say too little"
    assert fitted.typed(5) == pytest.approx(1.4 + 0.3 * 8 + 4, abs=0.2)


def test_the_core_needs_neither_torch_nor_scipy():
    code = (
        "import sys, numpy as np\n"
        "from shortlist import policies\n"
        "import shortlist.policies.simulation\n"
        "policies.choose_one(policies.Policy(epsilon=.1), np.ones(9) / 9, np.array([1]), 3)\n"
        "assert not {'torch', 'scipy', 'sklearn', 'matplotlib', 'pyarrow'} & set(sys.modules), 'heavy import'\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""

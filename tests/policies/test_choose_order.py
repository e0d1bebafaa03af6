"""In which order classes are shown, and what is asked where the model leaves nothing to the classes still possible."""

import numpy as np
import pytest

from shortlist.policies.choose import Policy, choose
from shortlist.policies.sizes import RULES

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("policy", [Policy("uniform", size=3), Policy("top", size=3, epsilon=1.0)], ids=str)
def test_drawn_classes_too_are_shown_the_likeliest_first(policy):
    """Of equals the lower number; or the order would say which lists were drawn."""
    rng = np.random.default_rng(0)
    p = rng.integers(1, 5, (200, 8)) / 20
    possible = rng.random((200, 8)) < 0.6
    questions = choose(policy, p, possible, rng)
    lists = questions.lists
    for row, shown, size in zip(p, lists.tolist(), questions.sizes, strict=True):
        classes = [k for k in shown if k < 8]
        assert len(classes) == size
        assert classes == sorted(classes, key=lambda k: (-row[k], k))
        assert shown == classes + [8] * (3 - len(classes))
    assert len(set(map(tuple, lists.tolist()))) > 50


def test_long_lists_are_drawn_by_the_smallest_of_all_keys():
    """A partition one place off draws other lists of hundreds of classes, and not all alike; of few it does not."""
    K, size = 600, 300
    possible = np.ones((1000, K), bool)
    lists = choose(Policy("uniform", size=size), np.full((1000, K), 1 / K), possible, np.random.default_rng(5)).lists
    rng = np.random.default_rng(5)
    rng.random(1000)  # the coins, of which a uniform policy needs none
    smallest = np.argsort(rng.random((1000, K)), axis=1)[:, :size]
    assert (lists == np.sort(smallest, axis=1)).all()


def test_long_lists_hold_the_likeliest_classes():
    p = np.random.default_rng(6).dirichlet(np.ones(600), 1000)
    questions = choose(Policy("top", size=300), p, np.ones((1000, 600), bool), RNG)
    assert (questions.lists == np.argsort(-p, axis=1)[:, :300]).all()


@pytest.mark.parametrize("kind", sorted(RULES))
def test_where_the_model_leaves_nothing_to_the_candidates_all_of_them_are_alike(kind):
    policy = Policy(kind, size=2, hit=0.5, max_size=4)
    possible = np.array([[False, True, True, True, True, False]])
    wrong, level = np.array([[0.7, 0, 0, 0, 0, 0.3]]), np.full((1, 6), 1 / 6)
    questions, alike = (choose(policy, p, possible, np.random.default_rng(3)) for p in (wrong, level))
    assert questions.lists.tolist() == alike.lists.tolist()
    assert questions.probabilities.tolist() == alike.probabilities.tolist()


def test_uniform_lists_keep_their_size_where_they_hold_all_that_is_possible():
    """Nothing is deduced: under the paper's mechanism None is an answer to them as to any other list."""
    possible = np.array([[True, False, True, True]])
    for kind, size in (("uniform", 3), ("top", 2)):
        questions = choose(Policy(kind, size=3), np.full((1, 4), 0.25), possible, np.random.default_rng(0))
        assert questions.sizes.tolist() == [size], kind


@pytest.mark.parametrize(("floor", "m", "size"), [(0.1, 30, 3), (0.1, 31, 4), (0.07, 100, 7)])
def test_a_floor_makes_lists_no_longer_than_it_needs(floor, m, size):
    """0.1 * 30 is a little more than 3 to a computer."""
    questions = choose(Policy("top", size=1, floor=floor), np.full((1, m), 1 / m), np.ones((1, m), bool), RNG)
    assert questions.sizes.tolist() == [size]
    assert questions.epsilon[0] * size / m >= floor - 1e-12  # the chance of a class that is not preferred


def test_no_items_have_no_lists():
    questions = choose(Policy(epsilon=0.5), np.empty((0, 4)), np.empty((0, 4), bool), RNG)
    assert len(questions) == 0
    assert len(questions.probabilities) == 0


@pytest.mark.parametrize("kind", ["top", "uniform"])
def test_a_stated_size_may_be_above_the_longest_list_of_the_others(kind):
    questions = choose(Policy(kind, size=12), np.full((3, 20), 0.05), np.ones((3, 20), bool), RNG)
    assert questions.sizes.tolist() == [12, 12, 12]
    others = choose(Policy("adaptive", size=12, hit=1.0), np.full((3, 20), 0.05), np.ones((3, 20), bool), RNG)
    assert others.sizes.tolist() == [8, 8, 8]


def test_a_probability_that_is_reached_but_for_rounding_is_reached():
    """Eight times 0.1 is a little less than 0.8 to a computer."""
    policy = Policy("adaptive", hit=0.8, max_size=10)
    assert choose(policy, np.full((1, 10), 0.1), np.ones((1, 10), bool), RNG).sizes.tolist() == [8]

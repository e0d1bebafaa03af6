import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from shortlist.errors import InputError
from shortlist.policies.items import ORDERS, check_order, class_turns, expected_rank, representatives


def ranked(name, posterior, rng):
    order = ORDERS[name]
    return order.rank(np.zeros(len(posterior)) if order.score is None else order.score(posterior), rng)


def test_orders():
    posterior = np.array([[0.9, 0.05, 0.05], [0.4, 0.3, 0.3], [0.6, 0.4, 0.0]])
    rng = np.random.default_rng(0)
    assert ranked("uncertainty", posterior, rng).tolist() == [1, 2, 0]
    assert ranked("savings", posterior, rng).tolist() == [0, 2, 1]
    np.testing.assert_allclose(expected_rank(posterior), [1.15, 1.9, 1.4])
    for name in ORDERS:
        assert sorted(ranked(name, posterior, rng).tolist()) == [0, 1, 2]
    assert ranked("mixed", posterior, rng)[0] == 1
    with pytest.raises(InputError, match="did you mean 'random'"):
        check_order("randm")


def test_the_mixed_order_takes_every_second_item_at_random():
    """Without its random half, all would be asked by uncertainty: what is common would never be looked at."""
    sure = np.linspace(0.5, 0.99, 100)
    posterior = np.column_stack([sure, 1 - sure])
    orders = [ranked("mixed", posterior, np.random.default_rng(seed)) for seed in range(40)]
    first = np.array([order[:10] for order in orders])
    # the hardest come in turns, 0, 1, 2, ..., less those that the draw took before
    assert all(set(range(5)) <= set(row.tolist()) for row in first)
    others = np.concatenate([[i for i in row if i >= 10] for row in first])
    assert len(others) > 40 * 4 * 0.8, "about half of the first ten are drawn"
    assert others.mean() == pytest.approx(55, abs=6), "uniformly from all items"
    assert all(sorted(order.tolist()) == list(range(100)) for order in orders)


def test_representatives_come_from_every_cluster():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(8), 30)
    x = (np.eye(8)[cluster] * 5 + rng.standard_normal((240, 8)) * 0.2).astype(np.float32)
    found = [set(cluster[representatives(x, 16, np.random.default_rng(seed))]) for seed in range(5)]
    assert min(len(part) for part in found) >= 7
    sparse = scipy.sparse.csr_matrix(x)
    rows = representatives(x, 16, np.random.default_rng(0))
    assert rows.tolist() == representatives(sparse, 16, np.random.default_rng(0)).tolist()
    assert representatives(x[:3], 9, rng).tolist() == [0, 1, 2]


@given(st.lists(st.integers(0, 4), max_size=30), st.lists(st.integers(0, 6), min_size=5, max_size=5))
def test_classes_take_turns_as_a_plain_loop_would_have_it(likeliest, counts):
    expected, taken = [], list(counts)
    for class_ in likeliest:
        expected.append(taken[class_])
        taken[class_] += 1
    assert class_turns(np.array(likeliest, np.int64), np.array(counts)).tolist() == expected

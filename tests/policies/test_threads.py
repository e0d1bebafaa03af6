import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from shortlist.data import load
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import LoopData, loop_data
from shortlist.policies.features.words import make_features
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import full_labels, run_loop
from shortlist.policies.threads import LARGE, few_threads


def _threads() -> int:
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


@pytest.fixture
def two_threads():
    """As on a machine with two cores; skips where the BLAS library is unknown or has one thread only."""
    import scipy.linalg  # noqa: F401  a BLAS of its own: loaded before the limits are set

    with threadpool_limits(2, user_api="blas"):
        if not any(library["user_api"] == "blas" for library in threadpool_info()) or _threads() != 2:
            pytest.skip("the number of threads of this BLAS library cannot be set to two")
        yield


def test_one_thread_unless_the_product_is_large(two_threads):
    with few_threads():
        assert _threads() == 1
    assert _threads() == 2
    with few_threads(LARGE):
        assert _threads() == 2
    with few_threads(LARGE - 1):
        assert _threads() == 1
    with pytest.raises(ValueError, match="inside"), few_threads():
        raise ValueError("inside")
    assert _threads() == 2


def test_a_simulation_of_usual_size_multiplies_with_one_thread(two_threads):
    data = loop_data(load("digits"), size=50)
    seen: list[int] = []
    settings = LoopSettings(policy=Policy(max_size=3), retrain_every=300)
    run_loop(data, settings, way="a", seed=0, budget=1500, tick=lambda reads: seen.append(_threads()))
    assert seen
    assert set(seen) == {1}
    assert _threads() == 2
    told: list[int] = []
    full_labels(data, settings, seed=0, shares=(0.1, 1.0), tick=lambda point: told.append(point.reads))
    assert told == [round(0.1 * len(data.y)) * 10, len(data.y) * 10]


def test_the_run_is_the_same_whatever_the_number_of_threads(two_threads):
    """Sums in another order would soon ask other items: a figure could not be had again on another machine."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 600)
    x = (np.eye(20)[y] @ rng.standard_normal((20, 100)) + 2 * rng.standard_normal((600, 100))).astype(np.float32)
    data = LoopData("blobs", x[:500], y[:500], x[500:], y[500:], tuple(f"c{k}" for k in range(20)))
    settings = LoopSettings(policy=Policy(max_size=3), retrain_every=200)
    runs = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            runs.append(run_loop(data, settings, way="a", seed=0, budget=1200))
    assert runs[0] == runs[1]
    texts = [" ".join(rng.choice([f"word{k}" for k in range(300)], 8)) for _ in range(200)]
    made = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            made.append(make_features("text", texts, texts[:5], size=50))
    np.testing.assert_array_equal(made[0][0], made[1][0])
    np.testing.assert_array_equal(made[0][1], made[1][1])

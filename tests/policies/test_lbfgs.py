import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from shortlist.policies.lbfgs import Memory, Search, minimise

SPREAD = np.logspace(-2, 3, 12)


def _rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


def _quadratic(x):
    return float(0.5 * SPREAD @ np.square(x - 1)), SPREAD * (x - 1)


def _logistic(x):
    """Convex, flat far out: the first step is far too short."""
    slopes = np.where(np.arange(12) % 2, 1.0, -1.0) * np.sqrt(SPREAD)
    margin = slopes * x
    return float(np.logaddexp(0, -margin).sum() + 1e-3 * x @ x), -slopes / (1 + np.exp(margin)) + 2e-3 * x


def _bumpy(x):
    """Not convex: steps must be shortened, and some directions have no curvature to learn from."""
    return float((np.square(x) / 10 + np.cos(3 * x)).sum()), x / 5 - 3 * np.sin(3 * x)


@pytest.mark.parametrize("objective", [_rosenbrock, _quadratic, _logistic, _bumpy])
@pytest.mark.parametrize("seed", range(5))
def test_it_takes_the_steps_of_scipys_l_bfgs_b(objective, seed):
    start = 2 * np.random.default_rng(seed).standard_normal(12)
    for iterations in (1, 2, 3, 5, 8):  # after many more, rounding shows
        options = {"maxiter": iterations, "maxcor": 8, "gtol": 1e-9, "ftol": 1e-12}
        theirs = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        ours = minimise(objective, start, max_iterations=iterations, gradient_tolerance=1e-9, tolerance=1e-12, memory=8)
        assert ours.iterations == theirs.nit
        assert ours.evaluations == theirs.nfev
        np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-5, atol=1e-5)
        assert ours.value == pytest.approx(theirs.fun, rel=1e-6, abs=1e-9)


def test_it_ends_at_the_minimum_and_says_how_it_got_there():
    calls = []

    def counted(x):
        calls.append(x.copy())
        return _rosenbrock(x)

    start = np.zeros(12)
    found = minimise(counted, start, max_iterations=500, gradient_tolerance=1e-6, tolerance=0, memory=8)
    np.testing.assert_allclose(found.x, 1, atol=1e-5)
    assert found.evaluations == len(calls) < 200
    assert not start.any()  # the start is left alone
    assert found.value == rosen(found.x)


@pytest.mark.parametrize(
    ("objective", "tolerance"),
    [
        (lambda x: (3.0, np.zeros(2)), 0.0),  # nothing to gain
        (lambda x: (3.0, np.ones(2)), 0.0),  # the gradient is wrong: the value never falls
        (lambda x: (float("nan"), np.ones(2)), 0.0),
        (lambda x: (float(-x.sum()), -np.ones(2)), 1e-7),  # falls for ever
    ],
)
def test_it_ends_where_there_is_no_minimum(objective, tolerance):
    found = minimise(objective, np.zeros(2), max_iterations=50, gradient_tolerance=1e-9, tolerance=tolerance, memory=8)
    assert found.iterations <= 50
    assert found.evaluations <= 1000
    assert np.isfinite(found.x).all()


def test_a_step_meets_the_conditions_asked_for():
    """From first steps that are far too short and far too long."""
    for first in (1e-6, 1e-2, 0.3, 1.0, 40.0):
        search = Search(0.0, -1.0, first)
        while not search.tell(search.step**2 - search.step, 2 * search.step - 1):
            assert search.trials < 20
        assert search.step**2 - search.step <= -1e-3 * search.step
        assert abs(2 * search.step - 1) <= 0.9


def test_the_direction_is_that_of_the_inverse_hessian_where_all_steps_are_kept():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    hessian = root @ root.T + np.eye(4)
    memory = Memory(4, 4)
    # conjugate steps: their pairs hold the whole Hessian
    steps = np.linalg.eigh(hessian)[1].T
    for step in steps:
        memory.add(step, hessian @ step, float(step @ hessian @ step))
    gradient = rng.standard_normal(4)
    np.testing.assert_allclose(memory.direction(gradient), -np.linalg.solve(hessian, gradient), rtol=1e-9)
    memory.add(steps[0], hessian @ steps[0], float(steps[0] @ hessian @ steps[0]))
    assert len(memory) == 4  # the oldest made room
    memory.clear()
    np.testing.assert_array_equal(memory.direction(gradient), -gradient)

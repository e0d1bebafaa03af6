import numpy as np
import pytest
import scipy.sparse
import torch

from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.policies import linear
from shortlist.policies.answers import Answers
from shortlist.policies.beliefs import background, softmax, stray, stray_share, update
from shortlist.policies.calibration import fit_temperature
from shortlist.policies.linear import Linear, fit
from shortlist.risks import likelihood_risk


def _problem(n=60, d=5, K=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)).astype(np.float32)
    y = (x @ rng.standard_normal((d, K))).argmax(axis=1)
    return x, y


def test_loss_and_gradient_are_those_of_the_likelihood_risk(monkeypatch):
    x, y = _problem()
    labels = StochasticLabels.draw(y, num_classes=4, size=2, seed=1)
    rng = np.random.default_rng(2)
    model = Linear(rng.standard_normal((5, 4)).astype(np.float32), rng.standard_normal(4).astype(np.float32))
    weight = torch.tensor(model.weight, dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(model.bias, dtype=torch.float64, requires_grad=True)
    logits = torch.tensor(x, dtype=torch.float64) @ weight + bias
    risk = likelihood_risk(logits, torch.tensor(labels.shown), torch.tensor(labels.answer))
    risk.backward()
    for cells in (linear.CELLS, 4 * 7):  # in one chunk, and in chunks of seven items
        monkeypatch.setattr(linear, "CELLS", cells)
        loss, gradient = linear._loss(x, x.T, Answers.from_table(labels.candidates.astype(np.float32)), model)
        assert loss == pytest.approx(risk.item(), rel=1e-5)
        np.testing.assert_allclose(gradient[:-1], weight.grad, atol=2e-6)
        np.testing.assert_allclose(gradient[-1], bias.grad, atol=2e-6)


def test_modelled_mistakes_have_the_gradient_of_the_mixture():
    x, _ = _problem(n=12)
    rng = np.random.default_rng(5)
    w = rng.random((12, 4)).astype(np.float32)
    model = Linear(rng.standard_normal((5, 4)).astype(np.float32), np.zeros(4, np.float32))
    weight = torch.tensor(model.weight, dtype=torch.float64, requires_grad=True)
    p = torch.softmax(torch.tensor(x, dtype=torch.float64) @ weight, -1)
    (-torch.log((p * torch.tensor(w)).sum(-1)).mean()).backward()
    _, gradient = linear._loss(x, x.T, Answers.from_table(w), model)
    np.testing.assert_allclose(gradient[:-1], weight.grad, atol=2e-6)


def test_fit_learns_from_shortlists_dense_and_sparse_alike():
    x, y = _problem(n=600)
    candidates = StochasticLabels.draw(y, num_classes=4, size=2, seed=1).candidates.astype(np.float32)
    model = fit(x, candidates, l2=1e-4)
    assert (model.predict(x) == y).mean() > 0.93
    sparse = fit(scipy.sparse.csr_matrix(x), candidates, l2=1e-4)
    assert (sparse.predict(scipy.sparse.csr_matrix(x)) == model.predict(x)).mean() > 0.99
    np.testing.assert_allclose(
        fit(x, candidates, l2=1e-4, start=model, max_iterations=3).weight, model.weight, atol=0.3
    )
    with pytest.raises(InputError, match="600 items"):
        fit(x, candidates[:5], l2=1e-4)


def test_a_model_that_is_sure_of_the_wrong_class_still_has_a_gradient():
    x = np.ones((1, 1), np.float32)
    model = Linear(np.array([[500.0, -500.0]], np.float32), np.zeros(2, np.float32))
    loss, gradient = linear._loss(x, x.T, Answers.from_table(np.array([[0, 1]], np.float32)), model)
    assert np.isfinite(loss)
    assert gradient[0].tolist() == pytest.approx([1, -1])


@pytest.mark.parametrize("scale", [1, 200])
def test_large_logits_and_lists_that_held_nearly_everything_are_as_exact_as_any(scale):
    """Held against double precision: rows that are shifted, and rests that are small beside what was shown."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((40, 5)).astype(np.float32)
    weight = (scale * rng.standard_normal((5, 4))).astype(np.float32)
    model = Linear(weight, np.array([0, 3 * scale, -scale, 14], np.float32))  # most is on classes 1 and 3
    shown = np.tile([0, 1, 0, 1], (40, 1)).astype(np.bool_)
    shown[::3] = rng.random((len(shown[::3]), 4)) < 0.5
    shown[shown.all(axis=1)] = [1, 0, 0, 0]
    exact = x.astype(np.float64) @ weight.astype(np.float64) + model.bias
    with np.errstate(divide="ignore"):
        ruled = np.where(shown, -np.inf, exact)
    chance = np.logaddexp.reduce(ruled, axis=1) - np.logaddexp.reduce(exact, axis=1)
    p = np.exp(exact - np.logaddexp.reduce(exact, axis=1)[:, None])
    likely = np.exp(ruled - np.logaddexp.reduce(ruled, axis=1)[:, None])
    loss, gradient = linear._loss(x, x.T, Answers.from_table((~shown).astype(np.float32)), model)
    assert loss == pytest.approx(-chance.mean(), rel=1e-4)
    np.testing.assert_allclose(gradient[:-1], x.T.astype(np.float64) @ (p - likely) / 40, atol=2e-4)


@pytest.mark.parametrize("size", [0.01, 1.0])
def test_where_the_problem_is_large_the_first_step_is_as_long_as_it_should_be(monkeypatch, size):
    """Held against the best step down the slope of all items, found by trying."""
    x, y = _problem(n=800, d=8, K=6)
    x *= size
    candidates = StochasticLabels.draw(y, num_classes=6, size=3, seed=1).candidates.astype(np.float32)
    answers, rng = Answers.from_table(candidates), np.random.default_rng(0)
    table = np.vstack([rng.standard_normal((8, 6)) / size, np.zeros((1, 6))]).astype(np.float32)

    def look(table):
        return linear._loss(x, x.T, answers, Linear(table[:-1], table[-1]))

    slope = look(table)[1]
    down = slope / np.linalg.norm(slope)
    lengths = np.exp(np.linspace(np.log(0.01), np.log(1000), 60))
    best = lengths[np.argmin([look(table - np.float32(length) * down)[0] for length in lengths])]
    assert 0.2 < linear._first_step(x, answers, table) / best < 1.2
    monkeypatch.setattr(linear, "LARGE", 1)
    start = Linear(table[:-1], table[-1])
    ends = [fit(x, candidates, l2=1e-3, start=begin, max_iterations=500, tolerance=1e-7) for begin in (None, start)]
    found, again = (look(np.vstack([model.weight, model.bias]))[0] for model in ends)
    assert found == pytest.approx(again, rel=1e-3)  # the same end


def test_temperature_is_found_again():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((4000, 6)).astype(np.float32) * 2
    p = softmax(logits)
    y = (p.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    answers = np.eye(6)[y]
    none = rng.random(4000) < 0.3  # a third are None after a list of two classes
    shown = (np.arange(6) < 2)[None] & none[:, None]
    answers[none & (y >= 2)] = (~shown)[none & (y >= 2)]
    before = np.ones((4000, 6), np.float32)
    assert fit_temperature(logits * 2.5, before, answers) == pytest.approx(2.5, rel=0.1)
    assert fit_temperature(logits / 2, before, answers) == pytest.approx(0.5, rel=0.1)
    assert fit_temperature(logits[:0], before[:0], answers[:0]) == 1.0


def test_stray_items_are_told_by_none_answers_the_model_did_not_expect():
    # 90 items resolved, 10 answered None three times where the model was 90 % sure of a hit
    log_model, log_background = np.full(10, 3 * np.log(0.1)), np.full(10, np.log(0.8))
    share = stray_share(log_model, log_background, resolved=90)
    assert share == pytest.approx(0.1, abs=0.01)
    assert stray(log_model, log_background, share).min() > 0.95
    assert stray_share(np.full(10, np.log(0.8)), np.full(10, np.log(0.8)), resolved=990) < 1e-3
    assert stray_share(np.empty(0), np.empty(0), 0) == 0.0
    assert background(np.array([0, 3])).argmax() == 0


def test_update_falls_back_on_the_answers_where_the_model_excludes_them():
    posterior = update(np.array([[1.0, 0.0, 0.0]], np.float32), np.array([[0.0, 1.0, 1.0]], np.float32))
    assert posterior[0].tolist() == [0.0, 0.5, 0.5]


def test_a_model_that_is_sure_of_the_wrong_thing_learns_better():
    """Early on, with one answer or two, weights may run far off; the next answers must bring them back."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    x = (np.eye(3)[y] + 0.1 * rng.standard_normal((60, 3))).astype(np.float32)
    sure = Linear(np.zeros((3, 3), np.float32), np.array([350.0, 0.0, -350.0], np.float32))
    found = fit(x, np.eye(3)[y], l2=1e-3, start=sure, max_iterations=30)
    assert (found.predict(x) == y).all()


def test_loss_and_gradient_agree_far_out():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8, 2)).astype(np.float32)
    weights = (rng.random((8, 4)) < 0.4).astype(np.float64)
    weights[:, 0] = 0.01
    weights /= weights.max(axis=1, keepdims=True)
    table = 60 * rng.standard_normal((3, 4))

    def exact(flat):
        logits = x.astype(np.float64) @ flat[:-1] + flat[-1]
        own = np.logaddexp.reduce(logits + np.log(np.maximum(weights, 1e-300)), axis=1)
        return float(np.mean(np.logaddexp.reduce(logits, axis=1) - own))

    loss, gradient = linear._loss(
        x, x.T, Answers.from_table(weights), Linear(*(part.astype(np.float32) for part in (table[:-1], table[-1])))
    )
    assert loss > 20
    assert loss == pytest.approx(exact(table), rel=1e-5)
    for place in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[place] = 1e-4
        slope = (exact(table + step) - exact(table - step)) / 2e-4
        assert gradient[place] == pytest.approx(slope, abs=1e-3)


def test_classes_of_which_nothing_is_known_stay_equal():
    """But for rounding: some processors add up the columns of a product in other orders than its last ones."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((50, 40)).astype(np.float32)
    weights = np.ones((50, 77), np.float32)
    weights[:, :8] = 0  # None after the same list
    weights[:6] = np.eye(77, dtype=np.float32)[:6]
    model = fit(x, weights, l2=0.1 / 50, max_iterations=30)
    assert np.ptp(model.bias[8:]) < 1e-5
    assert np.ptp(model.weight[:, 8:], axis=1).max() < 1e-5
    assert model.bias[8] > model.bias[:8].max() + 0.1

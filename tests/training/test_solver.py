"""L-BFGS on all items: the optimum that scikit-learn finds, in whatever pieces, from wherever it is taken up."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from torch import nn

from shortlist.data import Dataset, Split
from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.methods import METHODS, Method
from shortlist.risks import log_candidates
from shortlist.training import RunConfig, fit, prepare
from shortlist.training import loop as training_loop
from shortlist.training.evaluation import logits_of, predict_logits
from shortlist.training.solver import solver

K, DECAY = 4, 0.01
CONFIG = RunConfig(model="linear", optimiser="lbfgs", epochs=80, weight_decay=DECAY)


def _data(sparse: bool = True, n: int = 120, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    x = (np.abs(rng.standard_normal((n, 12))) * (rng.random((n, 12)) < 0.4)).astype(np.float32)
    x[np.arange(n), y] += 1.0
    return Dataset("d", Split(csr_matrix(x) if sparse else x, y), None, tuple("abcd"), "features")


def _objective(prepared) -> float:
    """The mean likelihood plus penalty, from its definition, in a loop over the items."""
    run = prepared.run
    layer = run.model[1][1]
    weight, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    x = prepared.given.toarray().astype(float)
    total = 0.0
    for row, feature in enumerate(x):
        logits = weight @ feature + bias
        p = np.exp(logits - logits.max())
        p /= p.sum()
        shown, answer = prepared.labels.shortlist(row), prepared.labels.answer[row]
        total -= np.log(p[answer] if answer >= 0 else 1 - p[shown].sum())
    return total / len(x) + 0.5 * DECAY * ((weight**2).sum() + (bias**2).sum())


def test_it_is_at_the_minimum_that_scikit_learn_finds():
    data = _data()
    prepared = prepare(data, CONFIG)
    fit(prepared)
    x = np.hstack([data.train.x.toarray(), np.ones((120, 1))])  # the penalty is on the biases as well
    rival = LogisticRegression(C=1 / (DECAY * 120), fit_intercept=False, tol=1e-8, max_iter=2000).fit(x, data.train.y)
    layer = prepared.run.model[1][1]
    found = np.hstack([layer.weight.detach().numpy(), layer.bias.detach().numpy()[:, None]])
    np.testing.assert_allclose(found, rival.coef_, atol=0.02)
    assert bool(prepared.run._ended)


@pytest.mark.parametrize("size", [None, 2])
def test_no_small_move_is_better(size):
    data = _data()
    prepared = prepare(data, replace(CONFIG, size=size))
    fit(prepared)
    best = _objective(prepared)
    layer = prepared.run.model[1][1]
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        move = 0.05 * torch.randn(layer.weight.shape, generator=generator)
        with torch.no_grad():
            layer.weight += move
            assert _objective(prepared) > best
            layer.weight -= move


def _rare(n: int = 400, features: int = 200) -> Dataset:
    """As of words: the k-th feature is in a share 1 / k of the items."""
    rng = np.random.default_rng(0)
    x = (rng.random((n, features)) < 1 / np.arange(1, features + 1)).astype(np.float32)
    y = (x @ rng.standard_normal((features, K))).argmax(axis=1)
    return Dataset("d", Split(csr_matrix(x), y), None, tuple("abcd"), "features")


def test_rare_features_are_as_quickly_learned_as_frequent_ones(monkeypatch):
    config = replace(CONFIG, epochs=12, weight_decay=1e-4)
    lengths = prepare(_rare(), config).run._lengths[:, 0]
    share = np.append(_rare().train.x.toarray().mean(axis=0), 1)  # every item has the bias
    np.testing.assert_allclose(lengths, (share * 3 / 16 + 1e-4) ** -0.5, rtol=1e-4)
    scaled = fit(prepare(_rare(), config))[-1].risk
    monkeypatch.setattr(solver, "lengths", lambda *_: np.ones((1, 1), np.float32))
    alike = [row.risk for row in fit(prepare(_rare(), replace(config, epochs=18)))]
    assert scaled < alike[-1], "further in 12 steps than in 18 of one length"


@pytest.mark.filterwarnings("error")
def test_a_feature_that_no_item_has_may_go_without_a_penalty():
    """A word of held-out texts alone: its step was infinite, and everything NaN."""
    data = _data()
    wider = csr_matrix(np.hstack([data.train.x.toarray(), np.zeros((120, 1), np.float32)]))
    data = Dataset("d", Split(wider, data.train.y), None, data.class_names, "features")
    history = fit(prepare(data, replace(CONFIG, weight_decay=0.0, epochs=5)))
    assert history[-1].risk < history[0].risk < np.log(K)


def test_with_some_none_all_features_are_alike():
    assert prepare(_rare(), replace(CONFIG, size=2)).run._lengths.tolist() == [[1]]


@pytest.mark.parametrize("method", solver.SOLVED)
def test_pieces_and_weights_change_nothing(monkeypatch, method):
    data = _data()
    labels = StochasticLabels.draw(data.train.y, num_classes=K, size=3, seed=1)
    twice = np.concatenate([np.arange(120), np.arange(60)])
    doubled = Dataset("d", data.train.take(twice), None, data.class_names, "features")
    weight = np.where(np.arange(120) < 60, 2.0, 1.0)
    found = []
    for cells, these, answers, counts in (
        (1 << 22, data, labels, weight),
        (200, data, labels, weight),
        (1 << 22, doubled, labels.subset(twice), None),
    ):
        monkeypatch.setattr(solver, "CELLS", cells)
        prepared = prepare(these, replace(CONFIG, method=method), labels=answers, weight=counts)
        fit(prepared)
        found.append(prepared.run.model[1][1].weight.detach().numpy())
    np.testing.assert_allclose(found[1], found[0], atol=5e-3)
    np.testing.assert_allclose(found[2], found[0], atol=5e-3)


def _spread(self, logits, batch):
    """A term of one's own over the batch: all classes should be found equally often."""
    share = torch.softmax(logits, -1).mean(-2)
    return batch.mean(-log_candidates(logits, batch.candidates)) + torch.xlogy(share, share).sum(-1)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("sl", {"form": "total"}),
        ("sl", {"form": "paper"}),
        ("sl", {"form": "equal"}),
        ("sl_unbiased", {}),
        ("spread", {}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_no_mean_over_items_is_not_taken_in_pieces(monkeypatch, method, options, weighted):
    monkeypatch.setitem(
        METHODS, "spread", type("Spread", (Method,), {"name": "spread", "title": "", "objective": _spread})
    )
    weight = np.random.default_rng(3).random(120) if weighted else None
    config = replace(CONFIG, method=method, method_options=options, size=2, epochs=5)
    found = []
    for cells in (1 << 22, 200):
        monkeypatch.setattr(solver, "CELLS", cells)
        found.append([row.risk for row in fit(prepare(_data(), config, weight=weight))])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_whole_numbers_in_a_sparse_matrix_are_squared_without_overflow():
    x = csr_matrix(np.random.default_rng(0).integers(0, 100, (120, 6)))
    steps = []
    for kind in (np.int8, np.float32):
        data = Dataset("d", Split(x.astype(kind), np.arange(120) % K), None, tuple("abcd"), "features")
        steps.append(prepare(data, CONFIG).run._lengths.tolist())
    assert steps[0] == steps[1]


def test_a_linear_model_without_a_bias_is_left_to_the_other_optimisers():
    """It broke in both: with features on the host logits are made of the layer's tensors."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, K, bias=False))
    with pytest.raises(InputError, match="for the model linear in float32 only"):
        prepare(_data(), CONFIG, model=model)
    prepared = prepare(_data(), replace(CONFIG, optimiser="adam", epochs=1), model=model)
    assert predict_logits(prepared.run.model, prepared.run.inputs).shape == (120, K)


def test_dense_features_are_normalised_first():
    data = _data(sparse=False)
    prepared = prepare(data, CONFIG)
    history = fit(prepared)
    assert history[-1].risk < history[0].risk
    right = (logits_of(prepared.run.model, data.train.x, "cpu").argmax(1).numpy() == data.train.y).mean()
    assert right > 0.75


def test_what_rises_with_the_progress_is_solved_at_its_end(monkeypatch):
    """Of a method of one's own; it found no progress at all."""

    def rising(self, logits, batch):
        return batch.mean(-batch.progress * log_candidates(logits, batch.candidates))

    monkeypatch.setitem(
        METHODS, "rising", type("Rising", (Method,), {"name": "rising", "title": "", "objective": rising})
    )
    rising_run, plain = (fit(prepare(_data(), replace(CONFIG, size=2, method=name))) for name in ("rising", "cc"))
    assert [row.risk for row in rising_run] == [row.risk for row in plain]


def test_it_goes_on_bit_for_bit(monkeypatch, tmp_path):
    monkeypatch.setattr(training_loop, "CHECKPOINT_SECONDS", 0.0)
    data, config = _data(), replace(CONFIG, size=2, epochs=9)
    straight = prepare(data, config)
    wanted = fit(straight)

    class StopError(Exception):
        pass

    def stop(scores):
        if scores.epoch == 5:
            raise StopError

    with pytest.raises(StopError):
        fit(prepare(data, config), checkpoint=tmp_path / "c", on_epoch=stop)
    again = prepare(data, config)
    history = fit(again, checkpoint=tmp_path / "c", resume=True)
    assert [row.risk for row in history] == [row.risk for row in wanted]
    assert len(history) == 9
    for ours, theirs in zip(again.run.model.parameters(), straight.run.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_what_it_cannot_do_is_refused():
    for changes, words in (
        ({"model": "mlp"}, "for the model linear in float32 only, got 'mlp'"),
        ({"method": "proden", "size": 2}, "method 'proden' changes as it is trained"),
        ({"ema": 0.9}, "no averaged weights"),
    ):
        with pytest.raises(InputError, match=words):
            prepare(_data(), replace(CONFIG, **changes))


def test_sparse_logits_are_those_of_dense_inputs():
    data = _data()
    prepared = prepare(data, replace(CONFIG, epochs=5))
    fit(prepared)
    model = prepared.run.model
    wanted = model(torch.from_numpy(data.train.x.toarray()))
    rows = torch.tensor([5, 3, 77])
    np.testing.assert_allclose(predict_logits(model, prepared.run.inputs).detach(), wanted.detach(), atol=1e-5)
    np.testing.assert_allclose(
        predict_logits(model, prepared.run.inputs, rows).detach(), wanted[rows].detach(), atol=1e-5
    )

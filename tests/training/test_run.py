"""One run: a naive replay gives the same weights and confidences; the seed decides everything."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import generators
from shortlist import methods, models
from shortlist.data import load
from shortlist.errors import InputError
from shortlist.internal.streams import generator, stream_seed
from shortlist.training.answers import draw_labels
from shortlist.training.config import Engine, RunConfig
from shortlist.training.inputs import Inputs
from shortlist.training.job.defaults import defaults_for
from shortlist.training.loop import fit
from shortlist.training.prepared import _run, prepare
from shortlist.training.run import Run
from shortlist.training.task import build_task

from .conftest import CPU, blobs


def replay(data, config, epochs):
    """The same training with torch.optim, Python loops over items and a dict of confidences."""
    labels = draw_labels(data, config.size, config.seed)
    method = methods.get(config.method)
    network = models.build(config.model, data.in_shape, 4, seed=stream_seed(config.seed, "weights"))
    x = data.train.x.astype(np.float64)
    x = torch.from_numpy((x - x.mean(0)) / x.std(0)).float()
    rows = method.rows(labels, config.protocol)
    inside = [[labels.candidates[i, k] for k in range(4)] for i in range(len(labels))]
    table = {i: [1 / 4 if config.method == "lw" else inside[i][k] / sum(inside[i]) for k in range(4)] for i in rows}
    optimiser = torch.optim.SGD(network.parameters(), lr=config.lr, momentum=0.9, weight_decay=config.weight_decay)
    for epoch in range(epochs):
        order = torch.randperm(len(rows), generator=generator(config.seed, "shuffle", epoch)).tolist()
        for start in range(0, len(rows) - config.batch_size + 1, config.batch_size):
            batch = [rows[j] for j in order[start : start + config.batch_size]]
            logits = network(x[batch])
            risk = sum(item_risk(config.method, logits[b], table[i], inside[i]) for b, i in enumerate(batch))
            optimiser.zero_grad()
            (risk / len(batch)).backward()
            optimiser.step()
            with torch.no_grad():
                fresh = logits if config.method == "proden" else network(x[batch])
                for b, i in enumerate(batch):
                    table[i] = confidences(config.method, fresh[b], inside[i])
    return network, torch.tensor([table[i] for i in rows])


def item_risk(method, z, w, inside):
    if method == "lw":
        terms = [torch.sigmoid(-z[k]) if inside[k] else torch.sigmoid(z[k]) for k in range(4)]
        return sum(w[k] * terms[k] for k in range(4))
    p = torch.softmax(z, -1)
    return -sum(w[k] * torch.log(p[k]) for k in range(4) if inside[k])


def confidences(method, z, inside):
    p = torch.softmax(z.double(), -1)
    within = sum(p[k] for k in range(4) if inside[k])
    out = [float(p[k] / within) if inside[k] else 0.0 for k in range(4)]
    if method == "lw":
        outside = sum(p[k] for k in range(4) if not inside[k])
        out = [value if inside[k] else float(p[k] / outside) for k, value in enumerate(out)]
    return out


@pytest.mark.parametrize("method", ["rc", "proden", "lw"])
def test_confidences_and_weights_by_naive_replay(method):
    data = blobs(count=50)
    config = RunConfig(method=method, size=2, model="mlp", model_options={"hidden": [8]}, batch_size=8, lr=0.05)
    config = replace(config, schedule="constant", epochs=2, model_options={})
    run = prepare(data, config, engine=CPU).run
    for _ in range(2):
        run.train_epoch()
    network, table = replay(data, config, epochs=2)
    torch.testing.assert_close(run.feed.table, table.float(), rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(run.model[1].parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", sorted(methods.METHODS))
def test_every_method_learns(method):
    data = blobs(count=400, seed=1, test=200)
    config = RunConfig(method=method, size=2, model="mlp", epochs=12, batch_size=32, optimiser="adam", lr=0.01)
    assert fit(prepare(data, config, engine=CPU))[-1].test_accuracy > 0.85


class Dropping(nn.Module):
    """A model that draws random numbers in every step."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.Dropout(0.5), nn.BatchNorm1d(32), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x)


def trained(seed, model=None, method="rc", epochs=3):
    torch.manual_seed(7)  # one initial state; the run's own seed decides the rest
    config = RunConfig(method=method, size=2, seed=seed, epochs=epochs, batch_size=16)
    run = prepare(blobs(), config, engine=CPU, model=model() if model else None).run
    for _ in range(epochs):
        run.train_epoch()
    return run.state_dict()


def test_the_model_is_the_average_of_the_network():
    """By a plain loop over the steps: weights and running statistics, and training itself is not changed."""
    settings = {"size": 2, "seed": 3, "epochs": 2, "batch_size": 16}
    torch.manual_seed(7)
    run = prepare(blobs(), RunConfig(**settings, ema=0.5), engine=CPU, model=Dropping()).run
    expected = {name: tensor.clone() for name, tensor in run.network.state_dict().items()}
    step = run._step

    def counted():
        t = run.steps_done
        step()
        for name, tensor in run.network.state_dict().items():
            decay = min(0.5, (1 + t) / (10 + t))
            expected[name] = decay * expected[name] + (1 - decay) * tensor

    run._step = counted
    for _ in range(2):
        run.train_epoch()
        for name, tensor in run.model.state_dict().items():
            if tensor.is_floating_point():
                torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-6)
    torch.manual_seed(7)
    plain = prepare(blobs(), RunConfig(**settings), engine=CPU, model=Dropping()).run
    for _ in range(2):
        plain.train_epoch()
    assert torch.equal(plain.flat.value, run.flat.value)
    assert not same(plain.model.state_dict(), run.model.state_dict())


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("model", [None, Dropping])
def test_the_seed_decides_everything(model):
    assert same(trained(3, model), trained(3, model))
    assert not same(trained(3, model), trained(4, model))


class Drawing(nn.Linear):
    """A layer that draws as dropout does, and keeps what it drew."""

    def forward(self, x):
        self.drawn = [*getattr(self, "drawn", []), torch.rand(4)]
        return super().forward(x)


def test_layers_draw_by_the_seed_and_the_epoch():
    """Dropout that drops the same units in every epoch would be no dropout, and a resumed run must drop them again."""
    data, layer = blobs(), Drawing(6, 4)
    run = prepare(data, RunConfig(size=2, seed=3, epochs=3, batch_size=96), engine=CPU, model=layer).run
    for _ in range(3):
        run.train_epoch()
    expected = [torch.rand(4, generator=generator(3, "layers", epoch)) for epoch in range(3)]
    assert torch.equal(torch.stack(layer.drawn), torch.stack(expected))


def test_the_users_generators_are_left_alone():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 (the point is that it is left alone)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    run = prepare(blobs(), RunConfig(size=2, epochs=1, batch_size=16), engine=CPU, model=Dropping()).run
    after_model = generators.states()
    run.train_epoch()
    assert generators.states() == after_model
    prepare(blobs(), RunConfig(size=2, epochs=1), engine=CPU)
    assert generators.states() == after_model
    assert (before == np.random.get_state()[1]).all()  # noqa: NPY002


def test_streams_of_different_purposes_differ():
    seeds = {stream_seed(0, "shuffle", epoch) for epoch in range(50)} | {
        stream_seed(seed, purpose) for seed in range(5) for purpose in ("weights", "shortlists", "holdout")
    }
    assert len(seeds) == 65


def test_a_batch_larger_than_the_data_is_the_data():
    run = prepare(blobs(count=10), RunConfig(size=2, batch_size=256, epochs=1), engine=CPU).run
    assert (run.batch_size, run.steps) == (10, 1)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"optimiser": "sdg"}, "did you mean 'sgd'"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"protocol": "pape"}, "did you mean 'paper'"),
        ({"epochs": 0}, "epochs: expected at least 1"),
        ({"lr": float("nan")}, "lr: expected a number"),
        ({"holdout": 1.0}, "holdout: expected a number from 0 to below 1"),
        ({"epochs": 2.5}, "epochs: expected a whole number, got 2.5"),
        ({"batch_size": "64"}, "batch_size: expected a whole number, got '64'"),
        ({"size": "3"}, "size: expected a whole number, got '3'"),
        ({"seed": 1.5}, "seed: expected a whole number, got 1.5"),
        ({"lr": "fast"}, "lr: expected a number, got 'fast'"),
        ({"ema": None}, "ema: expected a number, got None"),
    ],
)
def test_wrong_settings(settings, line):
    with pytest.raises(InputError, match=line):
        RunConfig(**settings)


def test_a_device_that_is_not_there():
    for device in ("cuda:99", "tpu", None):
        with pytest.raises(InputError, match="cannot be used"):
            Engine(device=device).resolve(1)


def test_settings_survive_json():
    import json

    config = RunConfig(method="sl", method_options={"form": "paper"}, size=3, lr=0.1)
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    numpys = RunConfig("sl", {"form": "paper"}, size=np.int64(3), lr=np.float64(0.1), epochs=np.int32(30))
    assert json.dumps(numpys.to_dict()) == json.dumps(config.to_dict())


def test_test_items_of_another_shape_are_refused():
    data = replace(blobs(), test=blobs(shape=(5,)).test)
    with pytest.raises(InputError, match=r"blobs: test items of shape \(5,\), expected \(6,\)"):
        prepare(data, RunConfig(size=2), engine=CPU)


@pytest.mark.parametrize("weight", [np.ones(3), np.ones((96, 1)), 1.0])
def test_weights_are_one_per_label(weight):
    with pytest.raises(InputError, match="weight: expected 96 numbers, one per label"):
        prepare(blobs(), RunConfig(size=2), weight=weight, engine=CPU)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (np.arange(1, 97), "rows: row 95 is 96, expected 0..95"),
        (np.arange(96) - 1, "rows: row 0 is -1, expected 0..95"),
        (np.arange(96.0), "rows: expected integers, got float64"),
        (np.arange(96) < 50, "rows: expected integers, got bool"),
        (np.arange(96)[:, None], "96 labels for 96 items"),
        (range(95), "96 labels for 95 items"),
    ],
)
def test_rows_are_places_of_items(rows, line):
    labels = draw_labels(blobs(), 2, 0)
    with pytest.raises(InputError, match=line):
        prepare(blobs(), RunConfig(), labels=labels, rows=rows, engine=CPU)


def test_batch_norm_and_a_single_item(digits_of):
    config = RunConfig(size=5, model="lenet", epochs=1)
    assert len(fit(prepare(digits_of(12), replace(config, batch_size=2), engine=CPU))) == 1
    for count, batch_size in ((12, 1), (1, 256)):
        with pytest.raises(InputError, match=rf"cannot train on a single item per batch, 2 at least \({count} in all"):
            prepare(digits_of(count), replace(config, batch_size=batch_size), engine=CPU)
    assert defaults_for(digits_of(12), 12)["batch_size"] == 2
    assert prepare(digits_of(12), replace(config, model="mlp", batch_size=1), engine=CPU).run.batch_size == 1


@pytest.fixture
def digits_of():
    digits = load("digits")
    return lambda count: replace(digits, train=digits.train.take(range(count)))


def test_double_precision_does_not_go_to_the_kernels(monkeypatch):
    monkeypatch.setattr("shortlist.training.prepared.KernelRun", lambda task, inputs, engine: "single")
    data, engine = blobs(shape=(1, 8, 8)), Engine("cpu", amp=False, compile=False, cuda_graph=False, kernels=True)
    task, inputs = build_task(data, RunConfig(size=2, model="lenet")), Inputs(data.train.x, "cpu")
    assert _run(task, inputs, engine, None) == "single"
    task.model.double()
    assert isinstance(_run(task, inputs, engine, None), Run)

"""A fleet's scores beside naive ones, with sets of different sizes and steps that do not divide them."""

from dataclasses import replace

import pytest
import torch

import shortlist.training.fleet.scoring as fleet_scores
from shortlist.data import Dataset, load
from shortlist.training.config import Engine, RunConfig
from shortlist.training.evaluation import calibration_error
from shortlist.training.fleet.fleet import Fleet
from shortlist.training.fleet.modules import ModuleFleet
from shortlist.training.fleet.packs import build_tasks, fleet_of

CPU = Engine(device="cpu").resolve(1)
BASE = RunConfig(model="mlp", size=2, epochs=2, batch_size=32, lr=0.02, holdout=0.1)
CONFIGS = [
    replace(BASE, classes=(0, 1, 2)),
    replace(BASE, classes=(7, 8, 9), seed=1, ema=0.9, holdout=0.2, lr=0.5),
    replace(BASE, classes=(2, 1, 4), seed=2, holdout=0.0, epochs=1),
    replace(BASE, classes=(0, 1, 2), seed=3, method="sl", keep="best", lr=0.1, epochs=2),
]


@pytest.fixture(scope="module")
def digits() -> Dataset:
    whole = load("digits")
    assert whole.test is not None
    return replace(whole, train=whole.train.take(range(700)), test=whole.test.take(range(160)))


@pytest.fixture(params=[1, 7, 500])
def fleet(request: pytest.FixtureRequest, digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(fleet_scores, "EVALUATION_BATCH", request.param)
    return fleet_of(build_tasks(digits, CONFIGS), CPU)


def naive_accuracies(fleet: Fleet) -> list[float]:
    """Item by item."""
    assert isinstance(fleet.net, ModuleFleet)
    found = []
    for task, model in zip(fleet.tasks, fleet.net.models, strict=True):
        test = task.dataset.test
        assert test is not None
        assert test.y is not None
        model.eval()
        right = [int(model(torch.from_numpy(test.x[i : i + 1])).argmax()) == test.y[i] for i in range(len(test))]
        found.append(sum(right) / len(test))
    return found


def our_accuracies(fleet: Fleet) -> list[float]:
    assert fleet.test is not None
    return fleet_scores.accuracies(fleet.net, fleet.tasks, fleet.sets, *fleet.test)


def test_accuracies(fleet: Fleet) -> None:
    """Of networks as they start, as they become, and of their averages."""
    assert len({len(task.dataset.test or ()) for task in fleet.tasks}) > 1
    assert our_accuracies(fleet) == naive_accuracies(fleet)
    fleet._load(fleet._draw(0))
    fleet._train_epoch()
    after = our_accuracies(fleet)
    assert after == naive_accuracies(fleet)
    with fleet.net.averaged():
        assert our_accuracies(fleet) == naive_accuracies(fleet)
        assert our_accuracies(fleet) != after
    assert our_accuracies(fleet) == after


def test_calibration_errors(fleet: Fleet) -> None:
    """Of the models that the results hold, each by a model of its own."""
    tasks = list(fleet.tasks)
    for task, result in zip(tasks, fleet.train(), strict=True):
        assert result.state is not None
        assert task.dataset.test is not None
        task.model.load_state_dict(result.state)
        logits = task.model.cpu().eval()(torch.from_numpy(task.dataset.test.x))
        p = task.method.class_probabilities(logits, task.smoothing)
        want = calibration_error(p.detach().double().numpy(), task.dataset.test.y)
        assert result.calibration_error == pytest.approx(want, abs=1e-6)


def test_held_logits(fleet: Fleet) -> None:
    assert isinstance(fleet.net, ModuleFleet)
    logits = fleet.held.logits(fleet.net)
    for run, (task, model) in enumerate(zip(fleet.tasks, fleet.net.models, strict=True)):
        x = torch.from_numpy(task.dataset.train.x)[task.held_rows]
        want = model.eval()(x)
        torch.testing.assert_close(logits[run, : len(x)], want.detach())


def test_runs_that_end_are_scored_no_more(fleet: Fleet) -> None:
    fleet.train()
    assert [len(result.history) for result in fleet.results] == [2, 2, 1, 2]
    assert all(row.test_accuracy is not None for result in fleet.results for row in result.history)

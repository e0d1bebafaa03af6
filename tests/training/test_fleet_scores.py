"""A fleet's scores beside naive ones, with sets of different sizes and steps that do not divide them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import shortlist.training.fleet_scores as fleet_scores
from shortlist.data import load
from shortlist.data.dataset import Dataset
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet import Fleet
from shortlist.training.fleet_modules import ModuleFleet
from shortlist.training.fleet_pack import fleet_of, plan_all
from shortlist.training.graph import WARM_UP

CPU = Engine(device="cpu").resolve(1)
BASE = RunConfig(model="mlp", size=2, epochs=2, batch_size=32, lr=0.02, holdout=0.1)
CONFIGS = [
    replace(BASE, classes=(0, 1, 2)),
    replace(BASE, classes=(7, 8, 9), seed=1, ema=0.9, holdout=0.2, lr=0.5),
    replace(BASE, classes=(2, 1, 4), seed=2, holdout=0.0, epochs=1),
    replace(BASE, classes=(0, 1, 2), seed=3),
]


@pytest.fixture(scope="module")
def digits() -> Dataset:
    whole = load("digits")
    assert whole.test is not None
    return replace(whole, train=whole.train.take(range(700)), test=whole.test.take(range(160)))


@pytest.fixture(params=[1, 7, 500])
def fleet(request: pytest.FixtureRequest, digits: Dataset, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(fleet_scores, "EVALUATION_BATCH", request.param)
    return fleet_of(plan_all(digits, CONFIGS), CPU)


def replayed(step: Callable[[], None], state: Sequence[Tensor], device: torch.device) -> Callable[[], None]:
    """As `graph.captured`, whose steps leave things as they were."""
    saved = [tensor.clone() for tensor in state]
    for _ in range(WARM_UP + 1):
        step()
    for tensor, value in zip(state, saved, strict=True):
        tensor.copy_(value)
    return step


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


@pytest.mark.parametrize("graph", [False, True])
def test_accuracies(fleet: Fleet, graph: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of networks as they start, as they become, and of their averages: the same steps read the same memory."""
    monkeypatch.setattr(fleet_scores, "captured", replayed)
    scores = fleet._accuracies
    assert scores is not None
    scores.said.graph = graph
    assert len(set(scores.counts)) > 1
    assert scores() == naive_accuracies(fleet)
    fleet._load(*fleet._orders(0))
    fleet._train_epoch()
    after = scores()
    assert after == naive_accuracies(fleet)
    with fleet.net.averaged():
        assert scores() == naive_accuracies(fleet)
        assert scores() != after
    assert scores() == after
    assert (scores.said._replay is not None) == graph


def test_held_logits(fleet: Fleet) -> None:
    assert isinstance(fleet.net, ModuleFleet)
    assert fleet._held is not None
    logits = fleet._held()
    for run, (task, model) in enumerate(zip(fleet.tasks, fleet.net.models, strict=True)):
        x = torch.from_numpy(task.dataset.train.x)[task.held_rows]
        want = model.eval()(x)
        torch.testing.assert_close(logits[run, : len(x)], want.detach())


def test_runs_that_end_leave_no_graph_behind(fleet: Fleet) -> None:
    before = fleet._accuracies
    fleet.train()
    assert fleet._accuracies is not None
    assert fleet._accuracies is not before
    assert len(fleet._accuracies.counts) == 3
    assert [len(result.history) for result in fleet.results] == [2, 2, 1, 2]


def test_what_stays_on_the_host_is_not_captured(fleet: Fleet) -> None:
    class Streamed:
        resident = False

    rows = torch.zeros(1, 3, dtype=torch.int64)
    for inputs, graph in ((Streamed(), False), (torch.zeros(3), True), (None, True)):
        assert fleet_scores.Passes(fleet.net, rows, inputs, rows, torch.Tensor.long, True).graph == graph

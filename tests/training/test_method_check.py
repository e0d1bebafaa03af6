"""What is wrong with a method of one's own is one line before anything is trained."""

import sys
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from shortlist import ShortlistClassifier, methods
from shortlist.data import load
from shortlist.errors import InputError
from shortlist.methods import METHODS, Method
from shortlist.risks import log_candidates
from shortlist.training.config import RunConfig
from shortlist.training.fleet.packs import build_tasks, fleet_of
from shortlist.training.method_check import check_method
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs


def right(method, logits, batch):
    return batch.mean(-log_candidates(logits, batch.candidates))


WRONG = {
    "a number an item": (
        {"objective": lambda self, logits, batch: logits.mean(-1)},
        r"one number .* gave shape \(2,\)",
    ),
    "no tensor": ({"objective": lambda self, logits, batch: 0.5}, "one number .* gave float"),
    "nothing": ({"objective": lambda self, logits, batch: None}, "one number .* gave NoneType"),
    "detached": ({"objective": lambda self, logits, batch: logits.detach().sum()}, "does not depend on the logits"),
    "broken": ({"objective": lambda self, logits, batch: 1 / 0}, "failed: ZeroDivisionError: division by zero"),
    "refresh": ({"objective": right, "refresh": "late"}, "unknown refresh of method 'mine' 'late'"),
    "confidences": (
        {"objective": right, "refresh": "after", "confidence": lambda self, logits, batch: logits.sum(-1)},
        r"confidences of shape \(2, 4\), got shape \(2,\)",
    ),
    "a mask of items": (
        {"objective": right, "rows": lambda self, labels, protocol: labels.answered},
        "rows must give places of items, integers from 0 to 95, got bool from",
    ),
    "items that are not there": (
        {"objective": right, "rows": lambda self, labels, protocol: np.arange(len(labels)) + 1},
        "rows must give places of items, integers from 0 to 95, got int64 from 1 to 96",
    ),
    "a start for all": (
        {"objective": right, "refresh": "after", "start": lambda self, batch: torch.ones(4)},
        r"start must give a tensor of shape \(.*, 4\), got shape \(4,\)",
    ),
    "no start": (
        {"objective": right, "refresh": "after", "start": lambda self, batch: batch.shown.numpy()},
        "start must give a tensor of shape .*, got ndarray",
    ),
    "a probability an item": (
        {"objective": right, "probabilities": lambda self, logits: logits.amax(-1)},
        r"probabilities of shape \(2, 4\), got shape \(2,\)",
    ),
    "scores": (
        {"objective": right, "probabilities": lambda self, logits: torch.sigmoid(logits)},
        "probabilities that sum to 1 for each item, got 2",
    ),
}


@pytest.fixture
def register(monkeypatch):
    def add(parts):
        monkeypatch.setitem(METHODS, "mine", type("Mine", (Method,), {"name": "mine", "title": "mine", **parts}))

    return add


@pytest.mark.parametrize("case", WRONG)
def test_refused_in_one_line(case, register):
    parts, line = WRONG[case]
    register(parts)
    data = blobs()
    for train in (
        lambda: prepare(data, RunConfig("mine", size=2), engine=CPU),
        lambda: ShortlistClassifier("mine").fit(data.train.x, data.train.y),
        lambda: ShortlistClassifier("mine", classes=range(4)).partial_fit(data.train.x, data.train.y),
    ):
        with pytest.raises(InputError, match=line) as caught:
            train()
        assert "\n" not in str(caught.value)


OWN_FILE = """
from dataclasses import dataclass
from shortlist.methods import Method

@dataclass(frozen=True)
class Shapes(Method):
    name = "shapes"
    title = "adds what cannot be added"
    def objective(self, logits, batch):
        return added(logits).mean()

def added(logits):
    return logits + logits.new_ones(7)  # fails inside torch
"""


def test_a_failure_is_told_with_its_place_in_the_users_own_file(tmp_path, monkeypatch):
    (tmp_path / "with_shapes.py").write_text(OWN_FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "with_shapes", raising=False)
    with pytest.raises(InputError, match=r"^method 'shapes' failed: RuntimeError: .*") as error:
        prepare(blobs(), RunConfig(method="with_shapes:Shapes", size=2, model="linear"), engine=CPU)
    assert str(error.value).endswith(" (with_shapes.py, line 13, in added)")
    sys.modules.pop("with_shapes")


def test_what_is_wrong_with_views_is_told_where_there_are_two(register):
    for parts, line in (
        ({"objective_of_views": lambda self, views, batch: views[0].mean(-1)}, r"one number .* gave shape \(2,\)"),
        ({"objective_of_views": lambda self, views, batch: views[2].sum()}, "failed: IndexError"),
        (
            {"refresh": "forward", "confidence_of_views": lambda self, views, batch: torch.cat(list(views))},
            r"confidences of shape \(2, 10\), got shape \(4, 10\)",
        ),
    ):
        register({"objective": right, **parts})
        with pytest.raises(InputError, match=line):
            prepare(load("digits"), RunConfig("mine", model="lenet", size=3, augment=True, strong=True), engine=CPU)


@pytest.mark.parametrize("runs", [None, 2])
def test_probabilities_of_another_precision_are_as_good(register, runs):
    feed = prepare(blobs(), RunConfig(size=2), engine=CPU).run.feed
    for share, line in ((1.0, None), (0.5, "sum to 1 for each item, got 0.5")):
        parts = {"probabilities": lambda self, logits, share=share: share * torch.softmax(logits.double(), -1)}
        register({"objective": lambda self, logits, batch: logits.logsumexp(-1).mean(-1), **parts})
        with pytest.raises(InputError, match=line) if line else nullcontext():
            check_method(METHODS["mine"](), feed, runs=runs)


def test_a_method_that_asks_for_a_teacher_finds_one(register):
    def taught(self, logits, batch):
        return batch.mean((logits - batch.teacher).square().sum(-1))

    for decay in (0.0, 0.9):
        register({"objective": taught, "teacher": decay})
        prepare(load("digits"), RunConfig("mine", model="lenet", size=3), engine=CPU)


def test_a_network_that_teaches_itself_also_teaches_confidences(register):
    """As averaged weights do: a decay of 0 is no other case for the method."""
    seen = []

    def believed(self, logits, batch):
        seen.append((logits, batch.teacher))
        return torch.softmax(batch.teacher, -1)

    for refresh in ("forward", "after"):
        register({"objective": right, "teacher": 0.0, "refresh": refresh, "confidence": believed})
        run = prepare(blobs(), RunConfig("mine", size=2), engine=CPU).run
        seen.clear()
        run.train_epoch()
        assert all(torch.equal(logits, taught) for logits, taught in seen)
        assert seen


def test_what_a_method_draws_at_the_start_follows_the_seed(register):
    register({"objective": right, "refresh": "forward", "start": lambda self, batch: torch.rand(batch.shown.shape)})
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again, other = (
        prepare(blobs(), RunConfig("mine", size=2, seed=seed), engine=CPU).run.feed.table for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("decay", [-0.1, 1, 1.5, "0.9", lambda self: 0.9])
def test_a_teacher_is_a_decay(register, decay):
    """Not a method either, where `@property` was forgotten."""
    register({"objective": right, "teacher": decay})
    with pytest.raises(InputError, match="method 'mine': its teacher is a decay, expected None or a number from 0"):
        prepare(blobs(), RunConfig("mine", size=2), engine=CPU)


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        (
            {"objective": lambda self, z, batch: -log_candidates(z, batch.candidates).mean()},
            r"its objective gave shape \(\)",
        ),
        ({"objective": lambda self, z, batch: z.mean() * float(batch.progress)}, "failed with a dimension of runs"),
        (
            {"objective": right, "refresh": "after", "confidence": lambda self, z, batch: z.view(-1, 4)},
            "confidences of",
        ),
    ],
)
def test_a_fleet_tells_what_is_wrong_with_its_methods(register, parts, line):
    """The single loop of a CPU never shows it a second run."""
    register(parts)
    configs = [RunConfig("mine", size=2, epochs=1, seed=seed) for seed in range(2)]
    prepare(blobs(), configs[0], engine=CPU).run.train_epoch()
    with pytest.raises(InputError, match=line) as caught:
        fleet_of(build_tasks(blobs(), configs), CPU)
    assert "\n" not in str(caught.value)


def test_the_trial_changes_nothing(register):
    """Neither the confidences nor anybody's random numbers."""
    register({"objective": right})
    data = blobs()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    for name in ("mine", *METHODS):
        run = prepare(data, RunConfig(name, size=2), engine=CPU).run
        fresh = methods.get(name).feed(prepare(data, RunConfig(size=2), engine=CPU).labels)
        assert (run.feed.table is None) == (fresh.table is None)
        if fresh.table is not None:
            assert torch.equal(run.feed.table, fresh.table)
    assert torch.equal(torch.get_rng_state(), before)

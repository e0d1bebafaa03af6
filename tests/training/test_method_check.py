"""What is wrong with a method of one's own is one line before anything is trained."""

import pytest
import torch

from shortlist import ShortlistClassifier, methods
from shortlist.data import load
from shortlist.errors import InputError
from shortlist.methods import METHODS, Method
from shortlist.risks import log_candidates
from shortlist.training.config import RunConfig
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


def test_a_method_that_asks_for_a_teacher_finds_one(register):
    def taught(self, logits, batch):
        return batch.mean((logits - batch.teacher).square().sum(-1))

    for decay in (0.0, 0.9):
        register({"objective": taught, "teacher": decay})
        prepare(load("digits"), RunConfig("mine", model="lenet", size=3), engine=CPU)


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

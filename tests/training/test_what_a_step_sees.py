"""What a step hands to the network and the method: progress, moved images; and what a run does not take back."""

import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from torch import nn

from shortlist.data import Dataset, Split
from shortlist.errors import InputError
from shortlist.methods.likelihood import Likelihood
from shortlist.training.config import RunConfig
from shortlist.training.loop import Interrupted, fit
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs


@dataclass(frozen=True)
class Listening(Likelihood):
    """The likelihood, which notes how far the training is at each step."""

    heard: ClassVar[list[float]] = []

    def objective(self, logits, batch):
        self.heard.append(float(batch.progress))
        return super().objective(logits, batch)


def test_progress_rises_by_the_same_share_in_every_step_of_all_epochs():
    config = RunConfig(method=f"{__name__}:Listening", size=2, epochs=3, batch_size=24)
    run = prepare(blobs(), config, engine=CPU).run
    Listening.heard.clear()  # a method is tried out before it is used
    risks = [run.train_epoch() for _ in range(3)]
    assert pytest.approx([step / 12 for step in range(12)]) == Listening.heard
    assert not any(risk.requires_grad for risk in risks)  # or each epoch would hold on to the graphs of its steps


class Watching(nn.Module):
    """A model of images that notes where the brightest pixel was."""

    def __init__(self):
        super().__init__()
        self.layer, self.places = nn.Linear(1, 2), set()

    def forward(self, x):
        brightest = x.flatten(1).argmax(1)
        self.places |= {divmod(int(place), x.shape[-1]) for place in brightest}
        return self.layer(x.mean((1, 2, 3))[:, None])


@pytest.mark.parametrize(("side", "most"), [(28, 4), (14, 2)])
def test_crops_move_images_of_one_channel_by_up_to_four_pixels(side, most):
    x = np.zeros((600, 1, side, side), np.uint8)
    x[:, 0, side // 2, side // 2] = 255
    data = Dataset("dots", Split(x, np.arange(600) % 2), None, ("a", "b"), "image", False)
    model = Watching()
    run = prepare(data, RunConfig(size=1, augment=True, batch_size=100), engine=CPU, model=model).run
    model.places.clear()
    run.train_epoch()
    reach = range(side // 2 - most, side // 2 + most + 1)
    assert model.places == {(row, column) for row in reach for column in reach}


class Comparing(nn.Module):
    """A model of images that notes where the brightest pixels were, in training and as a teacher."""

    seen: ClassVar[dict[bool, list[int]]] = {}

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 3)

    def forward(self, x):
        self.seen.setdefault(self.training, []).extend(x.flatten(1).argmax(1).tolist())
        return self.layer(x.mean((1, 2, 3))[:, None])


@pytest.mark.parametrize("options", [{}, {"apart": True}])
def test_the_teacher_sees_the_same_crops_unless_it_is_to_have_its_own(options):
    x = np.zeros((60, 1, 28, 28), np.uint8)
    x[:, 0, 14, 14] = 255
    data = Dataset("dots", Split(x, np.arange(60) % 3), None, ("a", "b", "c"), "image", False)
    config = RunConfig("teacher", options, size=1, augment=True, batch_size=20)
    run = prepare(data, config, engine=CPU, model=Comparing()).run
    Comparing.seen.clear()
    run.train_epoch()
    own, teachers = Comparing.seen[True], Comparing.seen[False]
    assert len(own) == len(teachers) == 60
    assert (own == teachers) is (options == {})
    assert len(set(teachers)) > 20


class Pressing(nn.Linear):
    """A layer in whose first step of training somebody presses Ctrl-C."""

    pressed = False

    def forward(self, x):
        if self.training and not self.pressed:
            self.pressed = True
            signal.raise_signal(signal.SIGINT)
        return super().forward(x)


def test_ctrl_c_in_an_epoch_whose_risk_is_not_finite_is_no_failed_run():
    """A study would go on to the next one."""
    config = RunConfig(method="sl", size=2, epochs=2, batch_size=16, lr=1e30)
    with pytest.raises(Interrupted):
        fit(prepare(blobs(), config, engine=CPU, model=Pressing(6, 4)))


@pytest.mark.parametrize("change", ["missing", "shape"])
def test_a_state_that_does_not_fit_is_refused(change):
    run = prepare(blobs(), RunConfig(size=2, batch_size=16), engine=CPU).run
    state = run.state_dict()
    run.load_state_dict(state, epoch=1)
    if change == "missing":
        del state["parameters"]
    else:
        state["parameters"] = state["parameters"][:1]  # it would be taken for all
    with pytest.raises(InputError, match="the checkpoint does not fit this run: parameters is missing or has another"):
        run.load_state_dict(state, epoch=1)

"""A single run on the fleets' kernels: a fleet of one inside the single loop."""

import copy
from dataclasses import replace

import torch
from torch import Tensor

from shortlist.training.config import Engine
from shortlist.training.fleet.networks import kernel_net
from shortlist.training.fleet.objectives import compiled_slopes, risks_and_slopes
from shortlist.training.inputs import Inputs
from shortlist.training.method_check import check_method
from shortlist.training.run import Run
from shortlist.training.task import Task
from shortlist.training.views import confidence_of, in_fleet, two_views

VELOCITIES = {"big": "big_velocity", "small": "small_velocity", "value": "velocity"}
"""The names of the fleets' parameters, and of their velocities."""


class KernelRun(Run):
    """`Run` whose forward, backward and update are those of `LeNetFleet` or `ResNetFleet`.

    The module gets the new weights after every epoch, so scores, checkpoints and what is saved work as in `Run`.
    """

    def __init__(self, task: Task, inputs: Inputs, engine: Engine) -> None:
        super().__init__(task.config, task.model, task.method, task.feed, inputs, engine, flips=task.dataset.flips)
        check_method(task.method, task.feed, views=2 if task.config.strong else 1, runs=1)
        self.net = kernel_net([task], torch.tensor([task.config.weight_decay]), engine)
        self._active = torch.ones(1, device=self.device)
        self._teach = self.net.teachers(slice(0, 1)) if task.method.teacher else None
        self._slopes = compiled_slopes() if engine.compile else risks_and_slopes

    def _update_model(self) -> None:
        """Copy the weights from the kernels' layout to `model`."""
        counted = {n: b for n, b in self.model.named_buffers() if n.endswith("num_batches_tracked")}
        passes = self.steps * (2 if self.method.refresh == "after" else 1)
        with self.net.averaged():
            state = self.net.state_dict(0)
        self.model.load_state_dict({**state, **{n: b + passes for n, b in counted.items()}})

    def _step(self, x: Tensor | None = None) -> None:
        drawn = self._drawn
        assert drawn is not None
        start = (self._step_number % self.steps) * self.batch_size
        index = drawn.order[start + self._span]
        items = self.feed.rows[index].unsqueeze(0)
        moves, teacher_moves, changes = (
            None if of is None else of[index].unsqueeze(0) for of in (drawn.moves, drawn.teacher_moves, drawn.changes)
        )
        taught = None if self._teach is None else self._teach(items, moves if teacher_moves is None else teacher_moves)
        own = self._own(drawn)
        own = None if own is None else own.view(1)
        seen = replace(in_fleet(self.feed.batch(index)), teacher=taught, progress=self._progress().view(1))
        batch = replace(seen, own=own)
        if moves is not None and changes is not None:
            twice = torch.cat([items, items], 1)
            views = two_views(moves, changes)
            logits = self.net.forward(twice, self._active, train=True, moves=views, own=own).detach()
        else:
            logits = self.net.forward(items, self._active, train=True, moves=moves).detach()
        risks, slopes = self._slopes(self.method, logits, batch)
        self.net.backward(slopes)
        self.net.update(self.rates[self._step_number.view(1)])
        self._risk.add_(risks[0])
        self._step_number.add_(1)
        if self.method.refresh == "after":
            logits = self.net.forward(items, self._active, train=True, moves=moves).detach()
        if self.method.refresh != "never":
            self.feed.renew(index, confidence_of(self.method, logits, batch)[0])

    def optimiser_state(self) -> dict[str, Tensor]:
        """The velocity in the order of the module's parameters; the kernels keep it in their own layout."""
        moving = copy.copy(self.net)
        for name, velocity in VELOCITIES.items():
            if hasattr(moving, name):
                setattr(moving, name, getattr(moving, velocity))
        state = moving.state_dict(0)
        names = [name for name, parameter in self.network.named_parameters() if parameter.requires_grad]
        for name, view in zip(names, self.flat.views(self.optimiser.state()["velocity"]), strict=True):
            view.copy_(state[name])
        return self.optimiser.state()

    def _tensors(self) -> dict[str, Tensor]:
        if not hasattr(self, "net"):  # while the base class sets itself up
            return super()._tensors()
        return {
            **{f"net.{i}": tensor for i, tensor in enumerate(self.net.state())},
            **{f"feed.{name}": tensor for name, tensor in self.feed.state_dict().items()},
            "step": self._step_number,
            "risk": self._risk,
        }

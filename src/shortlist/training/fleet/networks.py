"""The networks that a fleet trains: on our own kernels if these suit the model, else its modules side by side."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from shortlist.data import Split
from shortlist.training.config import Engine
from shortlist.training.fleet.class_sets import Sets, first_layer
from shortlist.training.fleet.lenet.layout import with_halo
from shortlist.training.fleet.lenet.lenet import LeNetFleet
from shortlist.training.fleet.modules import ModuleFleet
from shortlist.training.fleet.resnet.resnet import ResNetFleet
from shortlist.training.inputs import Inputs, Normalise
from shortlist.training.task import Task


def suits_kernels(task: Task, engine: Engine) -> bool:
    """Whether our kernels can train a run: on CUDA, by SGD, with images of a size that their layout divides evenly."""
    config, shape = task.config, task.dataset.in_shape
    if not engine.kernels or config.optimiser != "sgd" or len(shape) != 3 or config.model_options:
        return False
    even = shape[1] % 4 == 0 and shape[2] % 4 == 0
    if config.model == "lenet":
        return shape[0] == 1 and even
    return config.model == "resnet32" and shape[0] == 3 and shape[1] == shape[2] and even


def net_of(tasks: Sequence[Task], sets: Sets, decay: Tensor, engine: Engine) -> "LeNetNet | ResNetNet | ModuleNet":
    """The networks of these tasks, with weight decays (R,)."""
    if not suits_kernels(tasks[0], engine):
        return ModuleNet(tasks, sets, decay, engine)
    return kernel_net(tasks, decay, engine)


def kernel_net(tasks: Sequence[Task], decay: Tensor, engine: Engine) -> "LeNetNet | ResNetNet":
    """The networks of tasks for which `suits_kernels` holds."""
    return (LeNetNet if tasks[0].config.model == "lenet" else ResNetNet)(tasks, decay, engine)


def _ema(tasks: Sequence[Task]) -> Tensor:
    return torch.tensor([task.config.ema for task in tasks])


def _teacher(tasks: Sequence[Task]) -> Tensor:
    return torch.tensor([task.method.teacher or 0.0 for task in tasks])


def _inner_states(tasks: Sequence[Task]) -> list[dict[str, Tensor]]:
    """The state dicts of the networks without their first layers."""
    return [cast(nn.Sequential, task.model)[1].state_dict() for task in tasks]


class ModuleNet(ModuleFleet):
    """`ModuleFleet` from tasks: the modules of any model."""

    def __init__(self, tasks: Sequence[Task], sets: Sets, decay: Tensor, engine: Engine) -> None:
        self.sets, config = sets, tasks[0].config
        super().__init__(
            [task.model for task in tasks],
            Inputs(sets.train_inputs(), engine.device),
            config.optimiser,
            decay,
            config.momentum,
            amp=bool(engine.amp),
            compile=bool(engine.compile),
            ema=_ema(tasks),
            teacher=_teacher(tasks),
        )

    def test_inputs(self) -> Inputs:
        """The test inputs as `forward` takes them."""
        return Inputs(self.sets.test_inputs(), self.device)


class LeNetNet(LeNetFleet):
    """`LeNetFleet` from tasks, with state dicts that include the layer that normalises."""

    def __init__(self, tasks: Sequence[Task], decay: Tensor, engine: Engine) -> None:
        self.layers = [first_layer(task).to(engine.device) for task in tasks]
        self.sets = Sets(tasks)
        dtype = torch.bfloat16 if engine.amp else torch.float32
        images = self.sets.normalised(lambda task: task.dataset.train.x, engine.device)
        black = torch.cat([layer(torch.zeros(1, device=engine.device)).flatten() for layer in self.layers])
        momentum = tasks[0].config.momentum
        states, ema, teacher = _inner_states(tasks), _ema(tasks), _teacher(tasks)
        super().__init__(states, images, decay, momentum, dtype, ema=ema, black=black, teacher=teacher)

    def test_inputs(self) -> Tensor:
        """The test images as `forward` takes them."""
        return with_halo(self.sets.normalised(lambda task: cast(Split, task.dataset.test).x, self.device), self.dtype)

    def keep(self, runs: Tensor) -> None:
        """Keep only these runs."""
        super().keep(runs)
        self.layers = [self.layers[run] for run in runs.tolist()]

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """As the single loop would save it."""
        return _whole(self.layers[run], super().state_dict(run))


class ResNetNet(ResNetFleet):
    """`ResNetFleet` from tasks, with state dicts that include the layer that normalises."""

    def __init__(self, tasks: Sequence[Task], decay: Tensor, engine: Engine) -> None:
        self.layers = [first_layer(task).to(engine.device) for task in tasks]
        self.sets = Sets(tasks)
        images = torch.from_numpy(self.sets.train_inputs()).to(engine.device)
        mean = torch.stack([layer.mean.flatten() for layer in self.layers])
        deviation = torch.stack([layer.deviation.flatten() for layer in self.layers])
        momentum = tasks[0].config.momentum
        dtype = torch.bfloat16 if engine.amp else torch.float32
        states, ema, teacher = _inner_states(tasks), _ema(tasks), _teacher(tasks)
        super().__init__(states, images, mean, deviation, decay, momentum, dtype, ema=ema, teacher=teacher)

    def test_inputs(self) -> Tensor:
        """The test images as `forward` takes them."""
        return torch.from_numpy(self.sets.test_inputs()).to(self.device)

    def keep(self, runs: Tensor) -> None:
        """Keep only these runs."""
        super().keep(runs)
        self.layers = [self.layers[run] for run in runs.tolist()]

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """As the single loop would save it."""
        return _whole(self.layers[run], super().state_dict(run))


def _whole(normalise: Normalise, inner: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict as the single loop saves it."""
    outer = {f"0.{name}": tensor.cpu() for name, tensor in normalise.state_dict().items()}
    return {**outer, **{f"1.{name}": tensor for name, tensor in inner.items()}}

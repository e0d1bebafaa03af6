"""Which runs go together, on which networks, and how many at a time fit on the device."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from shortlist.data.dataset import Dataset
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet import Fleet, FleetNet, FleetResult
from shortlist.training.fleet_layout import with_halo
from shortlist.training.fleet_lenet import LeNetFleet
from shortlist.training.fleet_modules import STREAMS, ModuleFleet
from shortlist.training.fleet_resnet import ResNetFleet
from shortlist.training.inputs import Inputs, Normalise
from shortlist.training.prepare import Task, plan

RUN_BYTES = {"lenet": 120 << 20, "resnet32": 1600 << 20}
"""Device memory of one run at batch 256 on the paper's images, with room to spare (results/fleet_speed.json)."""
MEMORY_SHARE = 0.8
"""The share of the device's free memory that a pack may be planned for."""


def packs(configs: Sequence[RunConfig]) -> list[list[int]]:
    """Runs that can move together: one model, batch size, optimiser and set of classes; neighbours share a method."""
    together: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, c in enumerate(configs):
        shared = (c.classes, c.model, repr(c.model_options), c.batch_size, c.optimiser, c.momentum, c.augment)
        together[shared].append(i)
    for runs in together.values():
        runs.sort(key=lambda i: (configs[i].method, repr(configs[i].method_options), configs[i].protocol, i))
    return list(together.values())


def train_pack(
    dataset: Dataset,
    configs: Sequence[RunConfig],
    pack: Sequence[int],
    engine: Engine,
    score_every: int,
    on_epoch: Callable[[int, int], None] | None,
) -> dict[int, FleetResult]:
    """Train the runs of a pack, as many at a time as fit; where memory runs out all the same, half as many."""
    results: dict[int, FleetResult] = {}
    waiting = list(pack)
    limit = _limit(configs[pack[0]], engine)
    while waiting:
        now = waiting[:limit]
        try:
            tasks = plan_all(dataset, [configs[i] for i in now])
            done = fleet_of(tasks, engine).train(score_every, on_epoch)
        except torch.OutOfMemoryError:
            if limit == 1:
                raise
            limit = max(1, len(now) // 2)
            torch.cuda.empty_cache()
            continue
        results.update(zip(now, done, strict=True))
        waiting = waiting[len(now) :]
    return results


def plan_all(dataset: Dataset, configs: Sequence[RunConfig]) -> list[Task]:
    """`plan` for runs on one set of classes, which share the restricted data and its normalisation."""
    data = dataset if configs[0].classes is None else dataset.only_classes(configs[0].classes)
    tasks: list[Task] = []
    normalise: Normalise | None = None
    for config in configs:
        task = plan(data, replace(config, classes=None), normalise=normalise)
        normalise = cast(Normalise, cast(nn.Sequential, task.model)[0])
        tasks.append(replace(task, config=config))
    return tasks


def fleet_of(tasks: Sequence[Task], engine: Engine) -> Fleet:
    """A fleet on the networks that suit its model."""
    first, test = tasks[0], tasks[0].dataset.test
    decay = torch.tensor([task.config.weight_decay for task in tasks])
    net: FleetNet
    inputs_of: Callable[[Any], Any]
    if suits_kernels(first, engine):
        special = kernel_net(tasks, decay, engine)
        net, inputs_of = special, special.inputs_of
    else:
        net = ModuleFleet(
            [task.model for task in tasks],
            Inputs(first.dataset.train.x, engine.device),
            first.config.optimiser,
            decay,
            first.config.momentum,
            amp=bool(engine.amp),
            compile=bool(engine.compile),
            ema=_ema(tasks),
        )
        inputs_of = partial(Inputs, device=engine.device)
    test_set = None
    if test is not None and test.y is not None:
        test_set = (inputs_of(test.x), torch.from_numpy(test.y).to(engine.device))
    return Fleet(tasks, net, test_set, graph=bool(engine.graph), compile=bool(engine.compile))


def suits_kernels(task: Task, engine: Engine) -> bool:
    """Whether a run may take a special path: on CUDA, SGD, and images that the kernels' layout divides evenly."""
    config, shape = task.config, task.dataset.in_shape
    if not engine.kernels or config.optimiser != "sgd" or len(shape) != 3 or config.model_options:
        return False
    even = shape[1] % 4 == 0 and shape[2] % 4 == 0
    if config.model == "lenet":  # its first layer's statistics are those of images that do not move
        return shape[0] == 1 and even and not config.augment
    return config.model == "resnet32" and shape[0] == 3 and shape[1] == shape[2] and even


def kernel_net(tasks: Sequence[Task], decay: Tensor, engine: Engine) -> "LeNetNet | ResNetNet":
    """The networks of tasks that `suits_kernels`."""
    return (LeNetNet if tasks[0].config.model == "lenet" else ResNetNet)(tasks, decay, engine)


def _ema(tasks: Sequence[Task]) -> Tensor:
    return torch.tensor([task.config.ema for task in tasks])


def _split(tasks: Sequence[Task]) -> tuple[Normalise, list[dict[str, Tensor]]]:
    """The normalising layer that all tasks share, and the states of the networks behind it."""
    layers = [cast(nn.Sequential, task.model) for task in tasks]
    return cast(Normalise, layers[0][0]), [layer[1].state_dict() for layer in layers]


def _joined(normalise: Normalise, inner: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict as the single loop would save it."""
    outer = {f"0.{name}": tensor.cpu() for name, tensor in normalise.state_dict().items()}
    return {**outer, **{f"1.{name}": tensor for name, tensor in inner.items()}}


class LeNetNet(LeNetFleet):
    """`LeNetFleet` between tasks and state dicts whose first layer normalises."""

    def __init__(self, tasks: Sequence[Task], decay: Tensor, engine: Engine) -> None:
        normalise, states = _split(tasks)
        self.normalise = normalise.to(engine.device)
        dtype = torch.bfloat16 if engine.amp else torch.float32
        images = self.normalise(torch.from_numpy(tasks[0].dataset.train.x).to(engine.device))
        super().__init__(states, images, decay, tasks[0].config.momentum, dtype, ema=_ema(tasks))

    def inputs_of(self, x: object) -> Tensor:
        """Other images as `forward` takes them."""
        return with_halo(self.normalise(torch.as_tensor(x).to(self.device)), self.dtype)

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """As the single loop would save it."""
        return _joined(self.normalise, super().state_dict(run))


class ResNetNet(ResNetFleet):
    """`ResNetFleet` between tasks and state dicts whose first layer normalises."""

    def __init__(self, tasks: Sequence[Task], decay: Tensor, engine: Engine) -> None:
        normalise, states = _split(tasks)
        self.normalise = normalise.to(engine.device)
        images = torch.from_numpy(tasks[0].dataset.train.x).to(engine.device)
        mean, deviation = self.normalise.mean, self.normalise.deviation
        dtype = torch.bfloat16 if engine.amp else torch.float32
        super().__init__(states, images, mean, deviation, decay, tasks[0].config.momentum, dtype, ema=_ema(tasks))

    def inputs_of(self, x: object) -> Tensor:
        """Other images as `forward` takes them."""
        return torch.as_tensor(x).to(self.device)

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """As the single loop would save it."""
        return _joined(self.normalise, super().state_dict(run))


def _limit(config: RunConfig, engine: Engine) -> int:
    if not engine.kernels or config.model not in RUN_BYTES or config.optimiser != "sgd":
        return STREAMS
    free, _ = torch.cuda.mem_get_info()
    return max(1, int(MEMORY_SHARE * free / (max(1.0, config.batch_size / 256) * RUN_BYTES[config.model])))

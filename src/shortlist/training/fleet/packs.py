"""Which runs go together, on which networks, and how many at a time fit on the device."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from shortlist import methods
from shortlist.data import Dataset, Split
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet.class_sets import Sets, first_layer
from shortlist.training.fleet.fleet import Fleet, FleetResult
from shortlist.training.fleet.lenet.layout import with_halo
from shortlist.training.fleet.lenet.lenet import LeNetFleet
from shortlist.training.fleet.modules import STREAMS, ModuleFleet
from shortlist.training.fleet.network import FleetNet
from shortlist.training.fleet.resnet.resnet import ResNetFleet
from shortlist.training.inputs import Inputs, Normalise
from shortlist.training.prepared import Task, plan

RUN_BYTES = {"lenet": 120 << 20, "resnet32": 1600 << 20}
"""Device memory of one run at batch 256 on the paper's images, with room to spare (results/fleet_speed.json)."""
MEMORY_SHARE = 0.8
"""The share of the device's free memory that a pack may be planned for."""


def pack_key(config: RunConfig) -> tuple[object, ...]:
    """What runs on one dataset must share to move together."""
    classes = None if config.classes is None else len(config.classes)
    return classes, config.model, repr(config.model_options), config.batch_size, config.optimiser, config.momentum


def packs(configs: Sequence[RunConfig]) -> list[list[int]]:
    """Runs that can move together, by their place; neighbours share a method."""
    together: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, config in enumerate(configs):
        together[pack_key(config)].append(i)
    for runs in together.values():
        runs.sort(key=lambda i: _neighbourhood(configs[i]))
    return list(together.values())


def _neighbourhood(config: RunConfig) -> tuple[object, ...]:
    """Sorts runs of one method side by side, and those of the methods that ask for a second forward pass."""
    options = repr(config.method_options)
    again = methods.get(config.method, **config.method_options).refresh == "after"
    return again, config.method, options, config.protocol


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
    """`plan` for many runs; those on the same classes share the restricted data and its normalisation."""
    firsts: dict[tuple[int, ...] | None, Task] = {}
    tasks: list[Task] = []
    for config in configs:
        first = firsts.get(config.classes)
        if first is not None:
            task = plan(first.dataset, replace(config, classes=None), normalise=first_layer(first))
        else:
            task = plan(dataset, config)
        tasks.append(replace(task, config=config))
        firsts.setdefault(config.classes, task)
    return tasks


def fleet_of(tasks: Sequence[Task], engine: Engine) -> Fleet:
    """A fleet on the networks that suit its model."""
    first, sets = tasks[0], Sets(tasks)
    decay = torch.tensor([task.config.weight_decay for task in tasks])
    test_y = sets.test_y()
    test_inputs: Any = None
    net: FleetNet
    if suits_kernels(first, engine):
        special = kernel_net(tasks, decay, engine)
        net, test_inputs = special, None if test_y is None else special.test_inputs()
    else:
        net = ModuleFleet(
            [task.model for task in tasks],
            Inputs(sets.train_inputs(), engine.device),
            first.config.optimiser,
            decay,
            first.config.momentum,
            amp=bool(engine.amp),
            compile=bool(engine.compile),
            ema=_ema(tasks),
        )
        test_inputs = None if test_y is None else Inputs(sets.test_inputs(), engine.device)
    test = None if test_y is None else (test_inputs, test_y.to(engine.device))
    return Fleet(tasks, net, test, sets=sets, graph=bool(engine.graph), compile=bool(engine.compile))


def suits_kernels(task: Task, engine: Engine) -> bool:
    """Whether a run may take a special path: on CUDA, SGD, and images that the kernels' layout divides evenly."""
    config, shape = task.config, task.dataset.in_shape
    if not engine.kernels or config.optimiser != "sgd" or len(shape) != 3 or config.model_options:
        return False
    even = shape[1] % 4 == 0 and shape[2] % 4 == 0
    if config.model == "lenet":
        return shape[0] == 1 and even
    return config.model == "resnet32" and shape[0] == 3 and shape[1] == shape[2] and even


def kernel_net(tasks: Sequence[Task], decay: Tensor, engine: Engine) -> "LeNetNet | ResNetNet":
    """The networks of tasks that `suits_kernels`."""
    return (LeNetNet if tasks[0].config.model == "lenet" else ResNetNet)(tasks, decay, engine)


def _ema(tasks: Sequence[Task]) -> Tensor:
    return torch.tensor([task.config.ema for task in tasks])


def _inner_states(tasks: Sequence[Task]) -> list[dict[str, Tensor]]:
    """The states of the networks behind the first layers."""
    return [cast(nn.Sequential, task.model)[1].state_dict() for task in tasks]


class LeNetNet(LeNetFleet):
    """`LeNetFleet` between tasks and state dicts whose first layer normalises."""

    def __init__(self, tasks: Sequence[Task], decay: Tensor, engine: Engine) -> None:
        self.layers = [first_layer(task).to(engine.device) for task in tasks]
        self.sets = Sets(tasks)
        dtype = torch.bfloat16 if engine.amp else torch.float32
        images = self.sets.normalised(lambda task: task.dataset.train.x, engine.device)
        black = torch.cat([layer(torch.zeros(1, device=engine.device)).flatten() for layer in self.layers])
        momentum = tasks[0].config.momentum
        super().__init__(_inner_states(tasks), images, decay, momentum, dtype, ema=_ema(tasks), black=black)

    def test_inputs(self) -> Tensor:
        """The test images as `forward` takes them."""
        return with_halo(self.sets.normalised(lambda task: cast(Split, task.dataset.test).x, self.device), self.dtype)

    def keep(self, runs: Tensor) -> None:
        """Go on with these runs only."""
        super().keep(runs)
        self.layers = [self.layers[run] for run in runs.tolist()]

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """As the single loop would save it."""
        return _whole(self.layers[run], super().state_dict(run))


class ResNetNet(ResNetFleet):
    """`ResNetFleet` between tasks and state dicts whose first layer normalises."""

    def __init__(self, tasks: Sequence[Task], decay: Tensor, engine: Engine) -> None:
        self.layers = [first_layer(task).to(engine.device) for task in tasks]
        self.sets = Sets(tasks)
        images = torch.from_numpy(self.sets.train_inputs()).to(engine.device)
        mean = torch.stack([layer.mean.flatten() for layer in self.layers])
        deviation = torch.stack([layer.deviation.flatten() for layer in self.layers])
        momentum = tasks[0].config.momentum
        dtype = torch.bfloat16 if engine.amp else torch.float32
        super().__init__(_inner_states(tasks), images, mean, deviation, decay, momentum, dtype, ema=_ema(tasks))

    def test_inputs(self) -> Tensor:
        """The test images as `forward` takes them."""
        return torch.from_numpy(self.sets.test_inputs()).to(self.device)

    def keep(self, runs: Tensor) -> None:
        """Go on with these runs only."""
        super().keep(runs)
        self.layers = [self.layers[run] for run in runs.tolist()]

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """As the single loop would save it."""
        return _whole(self.layers[run], super().state_dict(run))


def _whole(normalise: Normalise, inner: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict as the single loop would save it."""
    outer = {f"0.{name}": tensor.cpu() for name, tensor in normalise.state_dict().items()}
    return {**outer, **{f"1.{name}": tensor for name, tensor in inner.items()}}


def _limit(config: RunConfig, engine: Engine) -> int:
    if not engine.kernels or config.model not in RUN_BYTES or config.optimiser != "sgd":
        return STREAMS
    free, _ = torch.cuda.mem_get_info()
    return max(1, int(MEMORY_SHARE * free / (max(1.0, config.batch_size / 256) * RUN_BYTES[config.model])))

"""Which runs go together, on which networks, and how many at a time fit on the device."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from shortlist.data.dataset import Dataset
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet import Fleet, FleetNet, FleetResult
from shortlist.training.fleet_layout import with_halo
from shortlist.training.fleet_lenet import LeNetFleet
from shortlist.training.fleet_modules import STREAMS, ModuleFleet
from shortlist.training.inputs import Inputs, Normalise
from shortlist.training.prepare import Task, plan

LENET_BYTES = 120 << 20
"""Device memory of one LeNet run at batch 256 on 28x28 images, with room to spare (results/fleet_speed.json)."""
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
    limit = _limit(configs[pack[0]])
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
    first = tasks[0]
    test = first.dataset.test if first.dataset.test is not None and first.dataset.test.y is not None else None
    y = None if test is None else torch.from_numpy(test.y).to(engine.device)
    decay = torch.tensor([task.config.weight_decay for task in tasks])
    net: FleetNet
    held: object = None
    if suits_lenet(first, engine):
        network = LeNetNet(tasks, decay, engine)
        net, held = network, None if test is None else network.images_of(test.x)
    else:
        inputs = Inputs(first.dataset.train.x, engine.device)
        config = first.config
        net = ModuleFleet(
            [task.model for task in tasks],
            inputs,
            config.optimiser,
            decay,
            config.momentum,
            amp=bool(engine.amp),
            compile=bool(engine.compile),
        )
        held = None if test is None else Inputs(test.x, engine.device)
    test_set = None if y is None else (held, y)
    return Fleet(tasks, net, test_set, graph=bool(engine.graph), compile=bool(engine.compile))


def suits_lenet(task: Task, engine: Engine) -> bool:
    """Whether a run may take the special path: the paper's LeNet, one channel, SGD, no augmentation, on CUDA."""
    c, shape = task.config, task.dataset.in_shape
    if not (c.model == "lenet" and c.optimiser == "sgd" and not c.augment and engine.device.startswith("cuda")):
        return False
    return shape[0] == 1 and shape[1] % 4 == 0 and shape[2] % 4 == 0


class LeNetNet(LeNetFleet):
    """`LeNetFleet` between tasks and state dicts whose first layer normalises."""

    def __init__(self, tasks: Sequence[Task], decay: Tensor, engine: Engine) -> None:
        self.normalise = cast(Normalise, cast(nn.Sequential, tasks[0].model)[0]).to(engine.device)
        dtype = torch.bfloat16 if engine.amp else torch.float32
        states = [cast(nn.Sequential, task.model)[1].state_dict() for task in tasks]
        images = self.normalise(torch.from_numpy(tasks[0].dataset.train.x).to(engine.device))
        super().__init__(states, images, decay, tasks[0].config.momentum, dtype)

    def images_of(self, x: object) -> Tensor:
        """Other images as `forward` takes them."""
        return with_halo(self.normalise(torch.as_tensor(x).to(self.device)), self.dtype)

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """As the single loop would save it."""
        inner = {f"1.{name}": tensor for name, tensor in super().state_dict(run).items()}
        return {**{f"0.{name}": t.cpu() for name, t in self.normalise.state_dict().items()}, **inner}


def _limit(config: RunConfig) -> int:
    if config.model != "lenet":
        return STREAMS
    free, _ = torch.cuda.mem_get_info()
    share = max(1, config.batch_size // 256) * LENET_BYTES
    return max(1, int(MEMORY_SHARE * free / share))

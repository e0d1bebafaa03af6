"""Which runs go together, and how many at a time fit on the device."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from shortlist import methods
from shortlist.data import Dataset
from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet.class_sets import Sets, first_layer
from shortlist.training.fleet.fleet import Fleet, FleetResult
from shortlist.training.fleet.modules import STREAMS
from shortlist.training.fleet.networks import net_of
from shortlist.training.fleet.objectives import groups_of
from shortlist.training.method_check import check_method
from shortlist.training.task import Task, build_task

RUN_BYTES = {"lenet": 120 << 20, "resnet32": 1600 << 20}
"""Device memory of one run at batch 256 on the paper's images, generously (results/fleet_speed.json)."""
MEMORY_SHARE = 0.8
"""The share of the device's free memory that a pack may be planned for."""


def pack_key(config: RunConfig) -> tuple[object, ...]:
    """What runs on one dataset must have in common to step together."""
    classes = None if config.classes is None else len(config.classes)
    model = config.model, repr(config.model_options)
    return classes, *model, config.batch_size, config.strong, config.mix, config.optimiser, config.momentum


def packs(configs: Sequence[RunConfig]) -> list[list[int]]:
    """Groups of runs that can step together, as places in `configs`; runs of one method are neighbours."""
    together: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, config in enumerate(configs):
        together[pack_key(config)].append(i)
    for runs in together.values():
        runs.sort(key=lambda i: _neighbourhood(configs[i]))
    return list(together.values())


def _neighbourhood(config: RunConfig) -> tuple[object, ...]:
    """Sorts runs of one method next to each other, and likewise all that need a second pass or a teacher."""
    options = repr(config.method_options)
    method = methods.get(config.method, **config.method_options)
    return method.refresh == "after", bool(method.teacher), config.method, options, config.protocol


def train_pack(
    dataset: Dataset,
    configs: Sequence[RunConfig],
    pack: Sequence[int],
    engine: Engine,
    score_every: int,
    on_epoch: Callable[[int, int], None] | None,
) -> dict[int, FleetResult]:
    """Train the runs of a pack, as many at a time as fit; if memory runs out all the same, half as many.

    A run with fewer items than a batch has smaller batches, so it waits for others like it.
    """
    results: dict[int, FleetResult] = {}
    waiting = list(pack)
    limit = _limit(configs[pack[0]], engine)
    while waiting:
        now = waiting[:limit]
        try:
            built = dict(zip(now, build_tasks(dataset, [configs[i] for i in now]), strict=True))
            tasks = {i: task for i, task in built.items() if task.batch_size == built[now[0]].batch_size}
            done = fleet_of(list(tasks.values()), engine).train(score_every, on_epoch)
        except torch.OutOfMemoryError:
            if limit == 1:
                raise
            limit = max(1, len(now) // 2)
            torch.cuda.empty_cache()
            continue
        results.update(zip(tasks, done, strict=True))
        waiting = [i for i in waiting if i not in results]
    return results


def build_tasks(dataset: Dataset, configs: Sequence[RunConfig]) -> list[Task]:
    """`build_task` for many runs; those on the same classes share the data of these classes and its normalisation."""
    firsts: dict[tuple[int, ...] | None, Task] = {}
    tasks: list[Task] = []
    for config in configs:
        first = firsts.get(config.classes)
        if first is not None:
            task = build_task(first.dataset, replace(config, classes=None), normalise=first_layer(first))
        else:
            task = build_task(dataset, config)
        tasks.append(replace(task, config=config))
        firsts.setdefault(config.classes, task)
    return tasks


def fleet_of(tasks: Sequence[Task], engine: Engine) -> Fleet:
    """The fleet of these tasks, its methods checked."""
    views, sets = 2 if tasks[0].config.strong else 1, Sets(tasks)
    for runs, method in groups_of([task.method for task in tasks]):
        check_method(method, tasks[runs.start].feed, views=views, runs=2)
    net = net_of(tasks, sets, torch.tensor([task.config.weight_decay for task in tasks]), engine)
    y = sets.test_y()
    test = None if y is None else (net.test_inputs(), y.to(engine.device))
    return Fleet(tasks, net, test, sets=sets, cuda_graph=bool(engine.cuda_graph), compile=bool(engine.compile))


def _limit(config: RunConfig, engine: Engine) -> int:
    if not engine.kernels or config.model not in RUN_BYTES or config.optimiser != "sgd":
        return STREAMS
    free, _ = torch.cuda.mem_get_info()
    batch = (2 if config.strong else 1) * config.batch_size
    return max(1, int(MEMORY_SHARE * free / (max(1.0, batch / 256) * RUN_BYTES[config.model])))

"""What labelling would cost, told by a few hundred items of one's own whose class is known.

The loop is played on parts of them, each with features of its own, as if there were no other items. What an item costs
beyond the least possible falls with a power of their number (parts of BANKING77: 0.66); the power is fitted and carried
on to as many items as there are to label.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shortlist.data import UNLABELLED, Dataset
from shortlist.errors import InputError
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.names import names_expert
from shortlist.policies.plan import ItemCost
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import Start, run_loop
from shortlist.policies.time_model import TimeModel

LEAST, MOST = 100, 1000
"""Labelled items to project from: fewer say nothing, more take long."""
SHARES, SEEDS = (0.25, 0.5, 1.0), 3
LONGEST = 8


def project_cost(
    dataset: Dataset, items: int, time: TimeModel, *, names: bool = True, tick: Callable[[], None] = lambda: None
) -> ItemCost | None:
    """What an item would cost if there were `items` like those of the dataset; None where too few have a class.

    Args:
        dataset: items of which some hundred have a class.
        items: to label in all.
        time: what a question takes.
        names: texts: the class names choose the first lists, as in `label` and in the app.
        tick: called after each of the SEEDS x SHARES loops.
    """
    y = dataset.train.y
    labelled = np.empty(0, np.int64) if y is None else np.nonzero(y != UNLABELLED)[0]
    if len(labelled) < LEAST:
        return None
    counts, costs = [], []
    for share in SHARES:
        runs = []
        for seed in range(SEEDS):
            drawn = np.random.Generator(np.random.PCG64([seed, 5])).permutation(labelled)[:MOST]
            part = np.sort(drawn[: round(share * len(drawn))])
            runs.append(_play(replace(dataset, train=dataset.train.take(part), test=None), time, names, seed))
            tick()
        counts.append(np.mean([count for count, _ in runs]))
        costs.append(np.mean([cost for _, cost in runs], axis=0))
    least = np.array([1.0, 1.0, time.base + time.per_class])
    excess = np.log(np.maximum(np.array(costs) - least, 1e-3))
    powers = np.clip(-np.polyfit(np.log(counts), excess, 1)[0], 0, 1)
    # carried on from the largest part, which is known best
    ratio = max(items / counts[-1], 1.0)
    questions, reads, seconds = least + (costs[-1] - least) * ratio**-powers
    return ItemCost(float(questions), float(reads), float(seconds), f"from {min(len(labelled), MOST)} of your items")


def _play(dataset: Dataset, time: TimeModel, names: bool, seed: int) -> tuple[int, tuple[float, float, float]]:
    """How many items were labelled, and questions, reads and seconds per item until all were."""
    data = loop_data(dataset, seed=seed)
    if data.num_classes < 2:
        raise InputError(f"{dataset.name}: its labels are all the same, expected at least 2 classes")
    experts = (names_expert(data.texts, data.class_names, data.x),) if names and data.texts else ()
    policy = Policy("adaptive", max_size=min(LONGEST, data.num_classes - 1), time=time)
    settings = LoopSettings(policy=policy, time=time)
    end = run_loop(data, settings, way="adaptive", seed=seed, start=Start(experts)).points[-1]
    count = len(data.y)
    return count, (end.questions / count, end.reads / count, end.seconds / count)

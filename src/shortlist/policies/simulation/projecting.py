"""What labelling would cost, projected from a few hundred of the user's items whose class is known.

The loop is simulated on these n items alone, with features made from them. What an item costs beyond the least possible
falls with a power of the number of items:

    cost(N items) = least + (cost(n items) - least) (N / n)^-POWER

The power is much the same for all data; how much an item costs in the first place is not.
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
"""The fewest and the most labelled items to project from: fewer say nothing, more take long."""
SEEDS = 3
POWER = 0.6
"""From parts of BANKING77 with names to all of it 0.57 to 0.64 (questions, reads and seconds, from 320, 800 and 1,600
items), of Letter 0.52 to 0.62; digits got cheaper still, 0.85. See results/plan_items.json."""
LONGEST = 8


def project_cost(
    dataset: Dataset, items: int, time: TimeModel, *, tick: Callable[[], None] = lambda: None
) -> ItemCost | None:
    """What an item would cost if there were `items` like those of the dataset; None if fewer than `LEAST` have a class.

    As in `label` and in the app, the names of the classes choose the first lists if the items are texts.

    Args:
        dataset: the items, a few hundred of them with a class.
        items: the number of items to label in all.
        time: how long a question takes.
        tick: called after each of the SEEDS loops.
    """
    y = dataset.train.y
    labelled = np.empty(0, np.int64) if y is None else np.nonzero(y != UNLABELLED)[0]
    if len(labelled) < LEAST:
        return None
    most = min(MOST, max(items, LEAST))
    counts, costs = [], []
    for seed in range(SEEDS):
        drawn = np.sort(np.random.Generator(np.random.PCG64([seed, 5])).permutation(labelled)[:most])
        count, cost = _play(replace(dataset, train=dataset.train.take(drawn), test=None), time, seed)
        counts.append(count)
        costs.append(cost)
        tick()
    least = np.array([1.0, 1.0, time.base + time.per_class])
    fewer = max(items * SEEDS / sum(counts), 1.0) ** -POWER
    questions, reads, seconds = least + (np.mean(costs, axis=0) - least) * fewer
    return ItemCost(float(questions), float(reads), float(seconds), f"from {min(len(labelled), most)} of your items")


def _play(dataset: Dataset, time: TimeModel, seed: int) -> tuple[int, tuple[float, float, float]]:
    """How many items were labelled, and the questions, reads and seconds per item until all were."""
    data = loop_data(dataset, seed=seed)
    if data.num_classes < 2:
        raise InputError(f"{dataset.name}: its labels are all the same, expected at least 2 classes")
    experts = (names_expert(data.texts, data.class_names, data.x),) if data.texts else ()
    policy = Policy("adaptive", max_size=min(LONGEST, max(data.num_classes // 3, 1)), time=time)
    settings = LoopSettings(policy=policy, time=time)
    end = run_loop(data, settings, way="adaptive", seed=seed, start=Start(experts)).points[-1]
    count = len(data.y)
    return count, (end.questions / count, end.reads / count, end.seconds / count)

"""What model-chosen shortlists cost with few items per class: parts of BANKING77, until every item is resolved.

Measured on two x86 cores, 3 seeds (results/plan_items.json): 24.8 names read per item with 400 items, 7.1 with 3,200.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/plan_items.py

`shortlist plan` projects from these figures; a test holds it against them. Writes results/plan_items.json.
"""

import json
import os
import platform
from dataclasses import replace
from pathlib import Path

import numpy as np

from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.simulate import run_loop

RESULT = Path(__file__).parent.parent / "results" / "plan_items.json"
ITEMS, SEEDS = (400, 800, 1600, 3200), 3
FIELDS = ("questions", "reads", "seconds")


def main() -> None:
    dataset = load("banking77")
    settings = LoopSettings(policy=Policy("adaptive", max_size=8), l2=0.1, retrain_every=500)
    rows = []
    for count in ITEMS:
        ends = []
        for seed in range(SEEDS):
            drawn = np.random.default_rng(seed).permutation(len(dataset.train))[:count]
            data = loop_data(replace(dataset, train=dataset.train.take(np.sort(drawn))))
            ends.append(run_loop(data, settings, way="adaptive", seed=seed).points[-1])
        means = {name: float(np.mean([getattr(end, name) for end in ends])) / count for name in FIELDS}
        rows.append({"items": count, **means, "resolved": float(np.mean([end.resolved for end in ends]))})
        print(rows[-1], flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}"
    result = {"data": "banking77", "classes": 77, "seeds": SEEDS, "machine": machine, "an_item": rows}
    atomic_write(RESULT, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

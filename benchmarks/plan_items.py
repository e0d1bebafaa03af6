"""What model-chosen shortlists cost with few items per class: parts of BANKING77, until every item is resolved.

Measured on two x86 cores, 3 seeds (results/plan_items.json): 24.8 names read per item with 400 items, 7.1 with 3,200.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/plan_items.py
    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/plan_items.py --own      # 10 minutes

`shortlist plan` projects from these figures; a test holds it against them. With --own: what `plan --data` makes of 400
labelled items (and of 1,000) of BANKING77, Letter and digits, beside what all items took (`label_economy.py`, and
`label_start.py` for BANKING77, where names choose the first lists). Writes results/plan_items.json.
"""

import json
import os
import platform
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies import TimeModel
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation import project_cost
from shortlist.policies.simulation.simulate import run_loop

RESULT = Path(__file__).parent.parent / "results" / "plan_items.json"
ITEMS, SEEDS = (400, 800, 1600, 3200), 3
FIELDS = ("questions", "reads", "seconds")
OWN = (("digits", 1437, (300,)), ("banking77", 10_003, (400, 1000)), ("letter", 16_000, (400, 1000)))


def reached(name: str) -> tuple[float, float, float]:
    """Questions, reads and seconds per item that all items took."""
    economy = json.loads((RESULT.parent / f"label_economy_{name}.json").read_text())
    full, items = economy["full_labels"], economy["items"]
    way = next(way for way in economy["ways"] if way["way"] == "adaptive")
    if name == "banking77":
        start = json.loads((RESULT.parent / "label_start_banking77.json").read_text())
        way = next(way for way in start["starts"] if way["way"] == "names")
    return way["questions"] / items, way["reads"] * full["reads"] / items, way["seconds"] * full["seconds"] / items


def own() -> None:
    """`plan --data` beside what was reached."""
    rows = []
    for name, items, counts in OWN:
        dataset = load(name)
        for count in counts:
            drawn = np.sort(np.random.default_rng(0).permutation(len(dataset.train))[:count])
            cost = project_cost(replace(dataset, train=dataset.train.take(drawn), test=None), items, TimeModel())
            assert cost is not None
            told = {"questions": cost.questions, "reads": cost.reads, "seconds": cost.seconds}
            rows.append({"data": name, "labelled": count, "items": items, "told": told})
            rows[-1]["reached"] = dict(zip(FIELDS, reached(name), strict=True))
            print(rows[-1], flush=True)
    stored = json.loads(RESULT.read_text())
    atomic_write(RESULT, json.dumps({**stored, "own": rows}, indent=1) + "\n")


def main() -> None:
    if sys.argv[1:] == ["--own"]:
        own()
        return
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
    stored = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    atomic_write(RESULT, json.dumps({**stored, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()

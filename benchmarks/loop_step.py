"""One step of the labelling loop at size: retrain on every item, then choose a shortlist for every item.

Measured on two x86 cores (results/loop_step.json, the last run): 15.9 s, 13.2 of them training, and 0.78 GB at most.

    OMP_NUM_THREADS=2 flock /tmp/shortlist-heavy.lock python benchmarks/loop_step.py

100,000 items, K = 1,000 classes, 400 features, dense float32; half of the items answered, half None after a list of 8.
The training is warm-started from the last step's weights, as in the loop. Adds to results/loop_step.json, where every
run is kept: seconds, also of processor time (the machine may be shared: see load_average), and the peak of resident
memory of the whole process, features and evidence included.
"""

import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np

from shortlist.internal.files import atomic_write
from shortlist.policies.choose import Policy
from shortlist.policies.linear import Linear, chunks
from shortlist.policies.loop import Loop
from shortlist.policies.settings import LoopSettings

RESULTS = Path(__file__).parent.parent / "results"


def make(items: int, classes: int, features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((classes, features), dtype=np.float32)
    y = rng.integers(0, classes, items)
    x = rng.standard_normal((items, features), dtype=np.float32)
    x *= 5
    for part in chunks(items, features):
        x[part] += centres[y[part]]
        x[part] /= np.linalg.norm(x[part], axis=1, keepdims=True)
    return x, y, centres


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--features", type=int, default=400)
    parser.add_argument("--iterations", type=int, default=8)
    options = parser.parse_args()
    x, y, centres = make(options.items, options.classes, options.features)
    settings = LoopSettings(policy=Policy("adaptive"), representatives=0, order="random", iterations=options.iterations)
    loop = Loop(x, options.classes, settings, seed=0)
    # the last step's weights: the right directions, with as much noise again
    rng = np.random.default_rng(1)
    centres += rng.standard_normal(centres.shape, dtype=np.float32)
    loop.model = Linear(np.ascontiguousarray(centres.T), loop.model.bias)
    del centres
    for part in chunks(options.items, options.classes):
        rows = np.arange(part.start, part.stop)
        lists = rng.integers(0, options.classes, (len(rows), 1)).astype(np.int32)
        lists = (lists + np.arange(8, dtype=np.int32) * 7) % options.classes
        answered = rng.random(len(rows)) < 0.5
        lists[answered, 0] = y[rows[answered]]
        lists[:, 1:][lists[:, 1:] == lists[:, :1]] = -1
        answer = np.where((lists == y[rows, None]).any(axis=1), y[rows], -1)
        loop.state.record(rows, lists, (lists >= 0).sum(axis=1), answer)
    before = float((loop.model.predict(x[:5000]) == y[:5000]).mean())
    started, busy = time.perf_counter(), time.process_time()
    loop.retrain()
    trained = time.perf_counter()
    chosen = hits = 0
    for part in chunks(options.items, options.classes):
        rows = np.arange(part.start, part.stop)
        questions = loop.shortlists(rows)
        chosen += len(questions)
        hits += int((questions.lists == y[rows, None]).any(axis=1).sum())
    ended = time.perf_counter()
    result = {
        "items": options.items,
        "classes": options.classes,
        "features": options.features,
        "iterations": options.iterations,
        "accuracy_before": round(before, 4),
        "accuracy_after": round(float((loop.model.predict(x[:5000]) == y[:5000]).mean()), 4),
        "lists_chosen": chosen,
        "list_holds_the_class": round(hits / chosen, 4),
        "train_seconds": round(trained - started, 1),
        "choose_seconds": round(ended - trained, 1),
        "step_seconds": round(ended - started, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
        "load_average": round(os.getloadavg()[0], 1),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}",
        "numpy": np.__version__,
    }
    print(json.dumps(result, indent=1))
    if (options.items, options.classes, options.features) == (100_000, 1_000, 400):
        path = RESULTS / "loop_step.json"
        runs = json.loads(path.read_text())["runs"] if path.exists() else []
        atomic_write(path, json.dumps({"runs": [*runs, result]}, indent=1) + "\n")


if __name__ == "__main__":
    main()

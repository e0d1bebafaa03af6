"""One step of the labelling loop at size: train on what is answered, rank the open items, choose shortlists.

Measured on two cores (results/loop_step.json, the last run of each size): 13.5 s for 100,000 items, 33.7 s for a
million.

    python benchmarks/loop_step.py                                                 # 100,000 items, all answered
    python benchmarks/loop_step.py --items 1_000_000 --answered 200_000            # a million

K = 1,000 classes, 400 features, dense float32; of the answered items half have an answer, half None after a list of 8.
The training is warm-started from the last step's weights, as in the loop. Where all items are answered a list is chosen
for each of them; otherwise all open items are ranked and 500 are given lists, as in a step of `shortlist label`. Adds
to results/loop_step.json, where every run is kept: seconds, also of processor time (the machine may be shared: see
load_average), and the peak of resident memory of the whole process, features and answers included.
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
from shortlist.policies.threads import LARGE, spread

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


def record(loop: Loop, y: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> None:
    """Lists of 8, every second one with the class of its item."""
    K = loop.state.num_classes
    lists = (rng.integers(0, K, (len(rows), 1)) + np.arange(8) * 7).astype(np.int32) % K
    answered = rng.random(len(rows)) < 0.5
    lists[answered, 0] = y[rows[answered]]
    lists[:, 1:][lists[:, 1:] == lists[:, :1]] = K
    answer = np.where((lists == y[rows, None]).any(axis=1), y[rows], -1)
    loop.state.record(rows, lists, (lists < K).sum(axis=1), answer)


def choose_all(loop: Loop, y: np.ndarray) -> tuple[int, int]:
    """A list for every item; how many, and how many hold the class."""

    def hits(part: slice) -> int:
        rows = np.arange(part.start, part.stop)
        return int((loop.shortlists(rows).lists == y[rows, None]).any(axis=1).sum())

    return len(y), sum(spread(hits, chunks(len(y), loop.state.num_classes), LARGE))


def choose_next(loop: Loop, y: np.ndarray) -> tuple[int, int]:
    """Lists for the 500 items most worth asking about."""
    rows, questions = loop.ask(500)
    return len(rows), int((questions.lists == y[rows, None]).any(axis=1).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--features", type=int, default=400)
    parser.add_argument("--answered", type=int, help="of the items; none: all")
    parser.add_argument("--iterations", type=int, default=8, help="of L-BFGS at most; the loop's default is 30")
    options = parser.parse_args()
    answered = options.answered or options.items
    x, y, centres = make(options.items, options.classes, options.features)
    settings = LoopSettings(policy=Policy("adaptive"), representatives=0, iterations=options.iterations)
    loop = Loop(x, options.classes, settings, seed=0)
    # the last step's weights: the right directions, with as much noise again
    rng = np.random.default_rng(1)
    centres += rng.standard_normal(centres.shape, dtype=np.float32)
    loop.model = Linear(np.ascontiguousarray(centres.T), loop.model.bias)
    del centres
    for part in chunks(answered, options.classes):
        record(loop, y, np.arange(part.start, part.stop), rng)
    before = float((loop.model.predict(x[-5000:]) == y[-5000:]).mean())
    started, busy = time.perf_counter(), time.process_time()
    loop.retrain()
    trained = time.perf_counter()
    chosen, hits = choose_all(loop, y) if answered == options.items else choose_next(loop, y)
    ended = time.perf_counter()
    result = {
        "items": options.items,
        "classes": options.classes,
        "features": options.features,
        "answered": answered,
        "iterations": options.iterations,
        "accuracy_before": round(before, 4),
        "accuracy_after": round(float((loop.model.predict(x[-5000:]) == y[-5000:]).mean()), 4),
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
    if options.items >= 100_000 and (options.classes, options.features) == (1_000, 400):
        path = RESULTS / "loop_step.json"
        runs = json.loads(path.read_text())["runs"] if path.exists() else []
        atomic_write(path, json.dumps({"runs": [*runs, result]}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What the labelling loop's own model sees of images: patches (the default) beside random Fourier features of pixels.

Measured on two cores (results/loop_features.json), full labels, patches and pixels: digits 99.4 and 96.9 %, Fashion
88.5 and 82.5, CIFAR10 63.1 and 37.1.

    SHORTLIST_DATA=... python benchmarks/loop_features.py fashion digits cifar10          # accuracies, minutes
    SHORTLIST_DATA=... python benchmarks/loop_features.py fashion --loop                  # and the loop's cost
    SHORTLIST_DATA=... python benchmarks/loop_features.py cifar10 --words patches --items 100_000     # 5 processor min.

10,000 training images (digits: all 1,437; --items: all of them, and again, mirrored) and the whole test set. "full
labels" is the accuracy of the loop's linear model trained on every true class; "network" is what `shortlist train` with
the defaults of 1eba82b reaches on the same items (NETWORK, by `git worktree add /tmp/old 1eba82b` and `shortlist train
FILE.npz`). With --loop the loop is played to its end: the cost of 99 % of the full-label accuracy, and of all items
resolved. Writes results/loop_features.json.
"""

import argparse
import json
import resource
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data import Dataset, load
from shortlist.internal.files import atomic_write
from shortlist.policies import LoopSettings, Policy
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.simulation import Comparison
from shortlist.policies.simulation.simulate import full_labels

OUT = Path(__file__).parent.parent / "results" / "loop_features.json"
ITEMS = 10_000
NETWORK = {"digits": [0.9722, 0.9806, 0.9806], "fashion": [0.8975], "cifar10": [0.7866, 0.7896, 0.7822]}
"""Test accuracies of `shortlist train` at 1eba82b, one per seed from 0 on; CIFAR10's on an H200."""
SIZE = {"digits": 3, "fashion": 3, "cifar10": 3}


def some(name: str, items: int) -> Dataset:
    """The first training images, or all of them several times, and all test images."""
    data = load(name)
    if items <= len(data.train) or items == ITEMS:
        return replace(data, train=data.train.take(range(min(items, len(data.train)))))
    again = data.train.take(np.arange(items) % len(data.train))
    x = np.array(again.x)
    x[len(data.train) :] = x[len(data.train) :, ..., ::-1]  # other patches than before
    return replace(data, train=replace(again, x=x, items=np.arange(items).astype(str)))


def measure(name: str, word: str, loop: bool, items: int) -> dict[str, Any]:
    """One row: seconds of the features, full-label accuracy, and the loop's cost."""
    given = some(name, items)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, processor = time.perf_counter(), time.process_time()
    data = loop_data(given, features=word)
    row: dict[str, Any] = {
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
        "gigabytes_before": round(before / 2**20, 2),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "items": len(data.y) + len(data.y_test),
        "features": data.x.shape[1],
    }
    settings = LoopSettings(policy=Policy("adaptive", max_size=SIZE[name]), retrain_every=1000)
    row["full_labels"] = round(full_labels(data, settings, seed=0, shares=(1.0,)).points[-1].accuracy, 4)
    if loop:
        wanted = Comparison(settings, seeds=1, size=SIZE[name], rivals=False)
        report = wanted.report(data, wanted.run(data))
        row["loop"] = next(way for way in report["ways"] if way["way"] == "adaptive")
        row["settings"] = asdict(settings)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", choices=sorted(SIZE))
    parser.add_argument("--loop", action="store_true", help="play the loop to its end as well")
    parser.add_argument("--words", nargs="+", default=["pixels", "patches"])
    parser.add_argument("--items", type=int, default=ITEMS)
    options = parser.parse_args()
    for name in options.data:
        for word in options.words:
            row = measure(name, word, options.loop, options.items)
            print(name, word, json.dumps({key: value for key, value in row.items() if key != "settings"}), flush=True)
            found = json.loads(OUT.read_text()) if OUT.exists() else {}
            what = name if options.items == ITEMS else f"{name}, {options.items:,} images"
            entry = found.setdefault(what, {"network": NETWORK.get(what)})
            entry[word] = {**entry.get(word, {}), **row}
            atomic_write(OUT, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

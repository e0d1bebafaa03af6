"""The live model at size, without the database: how long a publication takes, then how fast a server chooses from it.

    OMP_NUM_THREADS=1 python benchmarks/live_scale.py                                                  # a million items
    OMP_NUM_THREADS=1 python benchmarks/live_scale.py --items 100_000 --answered 50_000

K = 1,000 classes, 400 features, one thread, as the trainer has it. The trainer's side: training on what is answered,
warm-started, then the publication. The server's side, in a process of its own as small as a server's: taking the
publication in, then 3,000 lists for items in the order wanted. Adds to results/live_scale.json.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from loop_step import make, record
from shortlist.annotate.live.chooser import LiveChooser, write_ids
from shortlist.annotate.live.plan import LivePlan
from shortlist.internal.files import atomic_write
from shortlist.policies import Loop, LoopSettings, Policy, Snapshot
from shortlist.policies.linear import Linear, chunks

RESULT = Path(__file__).parent.parent / "results" / "live_scale.json"
LISTS = 3000


def memory() -> float:
    """Megabytes at most since this program began (getrusage would count those of whoever started it)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024, 1)


def serve(folder: Path) -> None:
    """What the server does with a publication."""
    empty = memory()
    chooser = LiveChooser(folder, LivePlan())
    started = time.perf_counter()
    assert chooser.refresh()
    assert chooser.loaded is not None
    taken_in = time.perf_counter() - started
    spent = []
    for turn, item in enumerate(chooser.loaded.front.head(0, LISTS)):
        started = time.perf_counter()
        assert chooser.choose(item, chooser.loaded.snapshot.num_classes, [], turn) is not None
        spent.append(time.perf_counter() - started)
    p50, p99 = np.percentile(spent, [50, 99]) * 1000
    found = {"taken_in_seconds": taken_in, "choose_ms_p50": p50, "choose_ms_p99": p99}
    rounded = {name: round(float(value), 3) for name, value in found.items()}
    print(json.dumps({**rounded, "server_megabytes_before": empty, "server_megabytes": memory()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--answered", type=int, default=200_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    x, y, centres = make(options.items, options.classes, 400)
    rng = np.random.default_rng(1)
    loop = Loop(x, options.classes, LoopSettings(policy=Policy(), representatives=0, iterations=8))
    loop.model = Linear(np.ascontiguousarray(centres.T), loop.model.bias)
    for part in chunks(options.answered, options.classes):
        record(loop, y, np.arange(part.start, part.stop), rng)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_ids(folder, range(1, options.items + 1))
        features = Snapshot.write_features(x, folder)
        started, busy = time.perf_counter(), time.process_time()
        loop.retrain()
        trained, trained_busy = time.perf_counter(), time.process_time()
        Snapshot.publish(loop, folder, features)
        ended, ended_busy = time.perf_counter(), time.process_time()
        size = sum(path.stat().st_size for path in folder.glob("v*/*")) / 2**20
        command = [sys.executable, __file__, "--serve", name]
        served = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    result = {
        "items": options.items,
        "classes": options.classes,
        "answered": options.answered,
        "train_seconds": round(trained - started, 1),
        "publish_seconds": round(ended - trained, 1),
        "train_cpu_seconds": round(trained_busy - busy, 1),
        "publish_cpu_seconds": round(ended_busy - trained_busy, 1),
        "publication_megabytes": round(size, 1),
        "trainer_megabytes": memory(),
        **served,
        "load_average": round(os.getloadavg()[0], 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}",
    }
    print(json.dumps(result, indent=1))
    runs = json.loads(RESULT.read_text())["runs"] if RESULT.exists() else []
    atomic_write(RESULT, json.dumps({"runs": [*runs, result]}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The live model at size: how long a publication takes, then how fast a server asks and stores answers with it.

Measured on two cores (results/live_scale.json), a million items, 200,000 answered: training 43.5 s, publication 35.2 s,
next question 4.0 ms and its answer 3.1 ms in the median, the server at 144 MB.

    OMP_NUM_THREADS=1 python benchmarks/live_scale.py                                                  # a million items
    OMP_NUM_THREADS=1 python benchmarks/live_scale.py --items 100_000 --answered 50_000

K = 1,000 classes, 400 features, one thread, as the trainer has it. The trainer's side: training on what is answered,
warm-started, then the publication. The server's side, in a process of its own as small as a server's: taking the
publication in, then 3,000 times the next question and its answer, by 20 people in turn, from a SQLite file of all
items. What goes over the wire and the other people's waits are not in it (`annotate_load.py` has these). Adds to
results/live_scale.json.
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
from sqlalchemy import insert

from loop_step import make, record
from shortlist.annotate.db.schema import Item, classes, slots
from shortlist.annotate.live.chooser import LiveChooser, write_ids
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import LIVE, Project, Settings
from shortlist.internal.files import atomic_write
from shortlist.policies import Loop, LoopSettings, Policy, Snapshot
from shortlist.policies.linear import Linear, chunks

RESULT = Path(__file__).parent.parent / "results" / "live_scale.json"
QUESTIONS, PEOPLE, BATCH = 3000, 20, 50_000


def memory() -> float:
    """Megabytes at most since this program began (getrusage would count those of whoever started it)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024, 1)


def fill(folder: Path, items: int, answered: int, num_classes: int) -> None:
    """A project of so many texts, the first ones done; rows are put into the tables directly."""
    with Project.create(folder, Settings("Large", 5)) as project, project.store.write() as connection:
        connection.execute(insert(classes), [{"id": k, "name": f"class {k}"} for k in range(num_classes)])
        for start in range(0, items, BATCH):
            keys = range(start + 1, min(start + BATCH, items) + 1)
            texts = [
                {"id": key, "name": f"item {key}", "kind": "text", "text": f"Words of item {key}."} for key in keys
            ]
            ends = [
                {"state": "done", "pending": 0} if key <= answered else {"state": "open", "pending": 1} for key in keys
            ]
            connection.execute(insert(Item), [text | end for text, end in zip(texts, ends, strict=True)])
            common = {"number": 0, "gold": False, "turn": 0, "annotator_id": None, "lease_until": None}
            states = ["done" if key <= answered else "free" for key in keys]
            rows = [{"id": key, "item_id": key, "rank": key, **common} for key in keys]
            connection.execute(insert(slots), [row | {"state": state} for row, state in zip(rows, states, strict=True)])


def serve(folder: Path) -> None:
    """What the server does with a publication."""
    empty = memory()
    with Project.open(folder) as project:
        chooser = LiveChooser(project.live, LivePlan())
        started = time.perf_counter()
        assert chooser.refresh()
        found = {"taken_in_seconds": [time.perf_counter() - started], "next_ms": [], "answer_ms": []}
        queue = project.queue(chooser)
        people = [People(project).invite(f"person {k}")[0] for k in range(PEOPLE)]
        for turn in range(QUESTIONS):
            who = people[turn % PEOPLE]
            started = time.perf_counter()
            (question,) = queue.next(who)
            asked = time.perf_counter()
            queue.answer(who, question.id, question.attempt, question.shortlist[0] if turn % 2 else None, 1.0)
            found["next_ms"].append(1000 * (asked - started))
            found["answer_ms"].append(1000 * (time.perf_counter() - asked))
    figures = {"taken_in_seconds": found["taken_in_seconds"][0]}
    for name in ("next_ms", "answer_ms"):
        figures |= dict(zip((f"{name}_p50", f"{name}_p99"), np.percentile(found[name], [50, 99]), strict=True))
    rounded = {name: round(float(value), 3) for name, value in figures.items()}
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
        fill(Path(name) / "project", options.items, options.answered, options.classes)
        folder = Path(name) / "project" / LIVE
        folder.mkdir()
        write_ids(folder, range(1, options.items + 1))
        features = Snapshot.write_features(x, folder)
        started, busy = time.perf_counter(), time.process_time()
        loop.retrain()
        trained, trained_busy = time.perf_counter(), time.process_time()
        Snapshot.publish(loop, folder, features)
        ended, ended_busy = time.perf_counter(), time.process_time()
        size = sum(path.stat().st_size for path in folder.glob("v*/*")) / 2**20
        command = [sys.executable, __file__, "--serve", str(folder.parent)]
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

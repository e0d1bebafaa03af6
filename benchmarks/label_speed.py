"""How long `shortlist label` takes, part by part: 3,000 texts of BANKING77 (77 classes), one seed.

Measured on two x86 cores, one thread (results/label_speed.json): 19.4 s of processor time, 5.8 with a budget of 4,000.

    SHORTLIST_DATA=... OMP_NUM_THREADS=2 python benchmarks/label_speed.py [--budget 4000]

As the command does: full labels, lists chosen by a model, random lists once and again on None, on four fifths of the
texts, scored on the last fifth. Adds to results/label_speed.json, where every run is kept: seconds of processor time
(the machine may be shared: see load_average) of the whole process but for the imports, and of each part.
"""

import argparse
import json
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies import LoopSettings, loop
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.simulation import economy, simulate

RESULT = Path(__file__).parent.parent / "results" / "label_speed.json"
ITEMS = 3000


class Parts:
    """Processor seconds by part; a part inside another counts for itself only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside: list[float] = []

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self._inside.append(0.0)
            started = time.process_time()
            try:
                return work(*args, **kwargs)
            finally:
                spent = time.process_time() - started
                self.seconds[part] += spent - self._inside.pop()
                if self._inside:
                    self._inside[-1] += spent

        return run


WATCHED: list[tuple[Any, str, str]] = [
    (simulate, "fit", "fits of full labels"),
    (loop, "fit", "fits in the loops"),
    (loop, "representatives", "typical items"),
    (loop.Loop, "ask", "choosing items and lists"),
    (loop.Loop, "record", "taking answers in"),
    (loop.Loop, "retrain", "calibration"),
    (simulate, "point_of", "scoring"),
    (simulate, "_accuracy", "scoring"),
]
"""Where, which function, and the part of the loop that it stands for."""


def watch(parts: Parts) -> None:
    """Have the parts of the loop counted."""
    for place, name, part in WATCHED:
        setattr(place, name, parts.timed(part, getattr(place, name)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--budget", type=int, help="class names shown at most; none: until all is resolved")
    parser.add_argument("--note", default="", help="kept with the figures")
    options = parser.parse_args()
    whole = load("banking77")
    chosen = np.sort(np.random.Generator(np.random.PCG64(0)).permutation(len(whole.train))[:ITEMS])
    dataset = replace(whole, train=whole.train.take(chosen), test=None)
    parts = Parts()
    watch(parts)
    wall, busy = time.perf_counter(), time.process_time()
    data = parts.timed("features", loop_data)(dataset)
    wanted = economy.Comparison(LoopSettings(), options.budget, seeds=1)
    curves = wanted.run(data)
    trainings = sum(len(curve.points) for curve in curves)
    result = {
        "note": options.note,
        "items": len(data.y),
        "classes": data.num_classes,
        "budget": options.budget,
        "trainings": trainings,
        "cpu_seconds": round(time.process_time() - busy, 1),
        "wall_seconds": round(time.perf_counter() - wall, 1),
        "parts": {part: round(seconds, 2) for part, seconds in parts.seconds.items()},
        "load_average": round(os.getloadavg()[0], 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}",
        "numpy": np.__version__,
    }
    print(json.dumps(result, indent=1))
    runs = json.loads(RESULT.read_text())["runs"] if RESULT.exists() else []
    atomic_write(RESULT, json.dumps({"runs": [*runs, result]}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""How long, and how much memory, drawing stochastic labels takes: a million items, ten of ten thousand classes each.

The claim: under 15 s and under 600 MB, the whole process counted (numpy and the items' true classes included).
Measured: 1.6 s and 278 MB; one run, one process, one thread, AMD EPYC (2 cores), Python 3.11.7, numpy 2.4.6.
    PYTHONPATH=src python benchmarks/label_draw.py
prints the figure of your machine and writes it to results/label_draw.json.
"""

import json
import os
import platform
import resource
import sys
import time
from pathlib import Path

import numpy as np

from shortlist import StochasticLabels, __version__
from shortlist.internal.files import atomic_write

ITEMS, CLASSES, SIZE, SEED = 1_000_000, 10_000, 10, 0
RESULT = Path(__file__).parents[1] / "results" / "label_draw.json"


def peak_mb() -> float:
    """The most memory this process has held so far (the unit is KB on Linux, bytes on macOS)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def cpu() -> str:
    """The processor's name, where the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def main() -> None:
    y = np.arange(ITEMS) % CLASSES
    start = time.perf_counter()
    labels = StochasticLabels.draw(y, num_classes=CLASSES, size=SIZE, seed=SEED)
    seconds = time.perf_counter() - start
    result = {
        "items": ITEMS,
        "classes": CLASSES,
        "size": SIZE,
        "seed": SEED,
        "seconds": round(seconds, 2),
        "peak_mb": round(peak_mb()),
        "kept_mb": round((labels.classes.nbytes + labels.offsets.nbytes + labels.answer.nbytes) / 1e6),
        "none_share": labels.none_share,
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "shortlist": __version__,
    }
    atomic_write(RESULT, json.dumps(result, indent=2) + "\n")
    print(f"{seconds:.2f} s, peak {result['peak_mb']} MB (written to {RESULT})")


if __name__ == "__main__":
    main()

"""How long, and how much memory, reading a file of labels takes: a million items, ten of a hundred classes shown each.

Measured on two cores (results/label_readers.json): Parquet 1.5 s and 601 MB, CSV 2.65 s and 724 MB.

    python benchmarks/label_readers.py                      # a million
    python benchmarks/label_readers.py --items 20_000       # prints only

The labels have names and stated probabilities. Each format is read in a fresh process; its peak of resident memory is
that of the whole process, and `before_mb` what it was before reading. Writes results/label_readers.json at full size.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shortlist import StochasticLabels, __version__
from shortlist.internal.files import atomic_write

ITEMS, CLASSES, SIZE, SEED = 1_000_000, 100, 10, 0
FORMATS = ("parquet", "csv")
RESULT = Path(__file__).parents[1] / "results" / "label_readers.json"


def peak_mb() -> int:
    """The most memory this process has held so far (the unit is KB on Linux, bytes on macOS)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024**2 if sys.platform == "darwin" else 1024))


def write(folder: Path, items: int) -> None:
    """The same labels in each format."""
    y = np.random.default_rng(SEED).integers(0, CLASSES, items)
    names = [f"class number {k}" for k in range(CLASSES)]
    drawn = StochasticLabels.draw(y, num_classes=CLASSES, size=SIZE, seed=SEED, class_names=names)
    for ending in FORMATS:
        drawn.write(folder / f"labels.{ending}")


def read(path: Path) -> dict[str, Any]:
    """What it takes, in this process."""
    before, wall, busy = peak_mb(), time.perf_counter(), time.process_time()
    labels = StochasticLabels.read(path)
    return {
        "items": len(labels),
        "file_mb": round(path.stat().st_size / 1e6),
        "seconds": round(time.perf_counter() - wall, 2),
        "processor_seconds": round(time.process_time() - busy, 2),
        "before_mb": before,
        "peak_mb": peak_mb(),
        "probabilities": labels.inclusion is not None,
    }


def measure(items: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        # in processes of their own: a child's peak would begin at its parent's
        subprocess.run([sys.executable, __file__, "--items", str(items), "--write", folder], check=True)
        found = {}
        for ending in FORMATS:
            command = [sys.executable, __file__, "--read", f"{folder}/labels.{ending}"]
            found[ending] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {
        "classes": CLASSES,
        "size": SIZE,
        "formats": found,
        "load_average": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "shortlist": __version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.items)
    elif options.read:
        print(json.dumps(read(options.read)))
    else:
        result = json.dumps(measure(options.items), indent=2)
        print(result)
        if options.items == ITEMS:
            atomic_write(RESULT, result + "\n")


if __name__ == "__main__":
    main()

"""What the command line reaches on the real datasets, on the CPU, with nothing but its defaults.

Measured with two threads, torch 2.13 (results/real_data.json): MNIST 99.06 % in 34 s, BANKING77 80.6 % from one
question per item, 91.5 % with full labels.

    SHORTLIST_DATA=/path/to/data python benchmarks/real_data.py --out results          # all, about four minutes
    SHORTLIST_DATA=/path/to/data python benchmarks/real_data.py --out results --only mnist

Each claim is one `shortlist train` in a process of its own, two threads, its time measured from start to end
(reading the data, training, scoring and saving included); processor_seconds are those of both cores together, which
others that are busy on the machine do not stretch:

    mnist       --size 3 --method likelihood --model lenet --epochs 1   more than 97.5 % in less than 120 s
    banking77   --size 8 --method likelihood                            at least 75 %, one question per item
    banking77   --method ol                                             full labels: at least 87 %

Figures: <out>/real_data.json, written as it goes; the exit code is 1 where a claim does not hold.
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

import torch

from shortlist.internal.files import atomic_write

SOURCE = Path(__file__).parents[1] / "src"
CLAIMS: dict[str, tuple[list[str], float, float]] = {
    "mnist": (
        ["train", "mnist", "--size", "3", "--method", "likelihood", "--model", "lenet", "--epochs", "1"],
        0.975,
        120.0,
    ),
    "banking77": (["train", "banking77", "--size", "8", "--method", "likelihood"], 0.75, float("inf")),
    "banking77 full": (["train", "banking77", "--method", "ol"], 0.87, float("inf")),
}


def run(words: list[str], out: Path) -> dict[str, Any]:
    """Train and evaluate by the command line; what it printed, and how long the training took."""
    # passive: threads that wait do not spin, which would count as work where others are busy too
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(SOURCE)}
    start = [sys.executable, "-m", "shortlist"]
    began, busy = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*start, *words, "--device", "cpu", "--json", "--out", str(out)],
        env=environment,
        capture_output=True,
        text=True,
    )
    seconds, now = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    trained = json.loads(done.stdout)
    again = subprocess.run(
        [*start, "evaluate", str(out), words[1], "--device", "cpu", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    scores = json.loads(again.stdout)
    if scores["accuracy"] != trained["test_accuracy"]:
        raise SystemExit(f"evaluate says {scores['accuracy']}, train said {trained['test_accuracy']}")
    return {
        "command": " ".join(["shortlist", *words]),
        "test_accuracy": scores["accuracy"],
        "calibration_error": scores["calibration_error"],
        "none_share": trained["none_share"],
        "reads": trained["reads"],
        "seconds": round(seconds, 1),
        "training_seconds": round(trained["seconds"], 1),
        "processor_seconds": round(now.ru_utime + now.ru_stime - busy.ru_utime - busy.ru_stime, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the JSON")
    parser.add_argument("--only", default=",".join(CLAIMS))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "real_data.json"
    found = json.loads(path.read_text())["claims"] if path.exists() else {}
    failed = []
    for name in arguments.only.split(","):
        words, accuracy, seconds = CLAIMS[name]
        with tempfile.TemporaryDirectory() as folder:
            result = run(words, Path(folder) / "run")
        result["holds"] = result["test_accuracy"] >= accuracy and result["seconds"] < seconds
        result["load_average"] = round(os.getloadavg()[0], 1)
        failed += [] if result["holds"] else [name]
        found[name] = result
        print(f"{result['command']}: {result['test_accuracy']:.2%} in {result['seconds']} s", flush=True)
        content = {"torch": torch.__version__, "python": platform.python_version(), "threads": 2, "claims": found}
        atomic_write(path, json.dumps(content, indent=1) + "\n")
    if failed:
        raise SystemExit(f"does not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()

"""What one temperature, fitted to the held-out tenth of the answers, does to a classifier's probabilities.

Measured on two cores of an AMD EPYC (results/calibration.json), BANKING77 with 8 of 77 shown: the calibration error of
the likelihood falls from 4.49 to 2.56 %, that of the teacher from 45.84 to 3.86 %.

    SHORTLIST_DATA=... python benchmarks/calibration.py       # 5 trials, about 25 minutes on a core
    python benchmarks/calibration.py --table                  # prints the committed figures

Settings are those of `shortlist train` on data without a test set: a tenth is held out, scored by the answers alone.
Accuracy is the same before and after. Expected calibration error (15 bins, percent) and log loss are of the test items,
mean ± standard error over the trials; differences are paired. Figures: <out>/calibration.json.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.internal.provenance import provenance
from shortlist.training import Engine, RunConfig, calibration_error, fit, prepare
from shortlist.training.evaluation import predict_logits
from shortlist.training.job.defaults import HOLDOUT, defaults_for
from shortlist.training.loop import probabilities
from shortlist.training.saved.source import with_features

SIZES = {"banking77": 8, "letter": 5, "digits": 3}
TITLES = {"banking77": "BANKING77", "letter": "Letter", "digits": "digits"}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "full labels": ("likelihood", {}),
    "likelihood": ("likelihood", {}),
    "teacher": ("teacher", {}),
    "teacher, confident=0.7": ("teacher", {"confident": 0.7}),
    "PRODEN": ("proden", {}),
}


def run(name: str, line: str, seed: int) -> dict[str, Any]:
    """Calibration error and log loss of a training, with and without the temperature."""
    data, (method, options) = with_features(load(name))[0], METHODS[line]
    size = None if line == "full labels" else SIZES[name]
    usual = defaults_for(data, len(data.train), (), method, known=size is None) | {"holdout": HOLDOUT}
    config = RunConfig(**{**usual, "method": method, "method_options": options, "size": size, "seed": seed})
    prepared = prepare(data, config, engine=Engine(device="cpu"))
    fit(prepared, score_every=10**6)
    assert prepared.test is not None
    assert prepared.test_y is not None
    logits, y = predict_logits(prepared.run.model, prepared.test).double(), prepared.test_y.numpy()
    row: dict[str, Any] = {"data": name, "method": line, "seed": seed}
    row["accuracy"] = float((logits.argmax(1).numpy() == y).mean())
    for when in ("before", "after"):
        if when == "after":
            row["temperature"] = prepared.calibrate()
        p = probabilities(prepared, logits).numpy()
        share = np.maximum(p[np.arange(len(y)), y], np.finfo(np.float32).tiny)
        row[f"ece_{when}"] = calibration_error(p, y)
        row[f"log_loss_{when}"] = float(-np.log(share).mean())
    print(json.dumps(row), flush=True)
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """In Markdown."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["data"], row["method"]].append(row)
    lines = ["| | T | ECE | with T | log loss | change with T |", "|---|---|---|---|---|---|"]
    for (name, line), found in groups.items():
        of = {key: np.array([row[key] for row in found]) for key in found[0] if key not in ("data", "method")}
        cells = [
            f"{TITLES[name]}, {line}",
            f"{of['temperature'].mean():.2f}",
            _mean(100 * of["ece_before"]),
            _mean(100 * of["ece_after"]),
            _mean(of["log_loss_before"], ".3f"),
            _mean(of["log_loss_after"] - of["log_loss_before"], "+.3f"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: Any, form: str = ".2f") -> str:
    """With its standard error."""
    return f"{values.mean():{form}} ± {values.std(ddof=1) / len(values) ** 0.5:{form.removeprefix('+')}}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="the folder of the JSON")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--data", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--table", action="store_true", help="print what is stored")
    args = parser.parse_args()
    if args.table:
        print(table(json.loads((args.out / "calibration.json").read_text())["runs"]))
        return
    torch.set_num_threads(1)
    rows = [run(name, line, seed) for name in args.data for line in METHODS for seed in range(args.trials)]
    print(table(rows))
    atomic_write(args.out / "calibration.json", json.dumps({**provenance("cpu"), "runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

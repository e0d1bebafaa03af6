"""Accuracy through the fleet beside the single loop: `likelihood` on Fashion, 5 of 10 classes shown, 5 seeds.

Measured on an H200 (results/fleet_accuracy.json), mean of the last ten epochs: 92.22 ± 0.29 % through the fleet, the
five runs in 21 s; 92.16 ± 0.20 % by the single loop, in 64 s.

    SHORTLIST_DATA=... python benchmarks/fleet_accuracy.py --out results        # about 2 minutes on an H200

LeNet 20/50/500, batch 256, lr 0.05, weight decay 1e-4, cosine, 40 epochs, no augmentation; last epoch and mean of the
last ten. Same seeds on both sides, so shortlists, initial weights and shuffles are the same; both compute in bf16. The
single runs are plain modules, without the fleets' kernels. What is not in --parts is kept from an earlier call.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.training import Engine, EpochScores, Inputs, RunConfig, fit, mean_of_last, prepare, train_fleet


def summary(histories: list[list[EpochScores]], seconds: float) -> dict[str, object]:
    last = [100 * (history[-1].test_accuracy or 0) for history in histories]
    ten = [100 * (mean_of_last(history) or 0) for history in histories]
    return {
        "last_epoch": [round(a, 2) for a in last],
        "mean_of_last_ten": [round(a, 2) for a in ten],
        "mean": round(float(np.mean(ten)), 3),
        "std": round(float(np.std(ten, ddof=1)), 3),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--parts", default="fleet,single")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--commit", default="unknown")
    args = parser.parse_args()
    data = load("fashion")
    configs = [
        RunConfig(method="likelihood", size=5, model="lenet", epochs=args.epochs, lr=0.05, seed=seed)
        for seed in range(5)
    ]
    path = args.out / "fleet_accuracy.json"
    results: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    results |= {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "config": configs[0].to_dict(),
    }
    for name in args.parts.split(","):
        began = time.perf_counter()
        if name == "fleet":
            histories = [result.history for result in train_fleet(data, configs, engine=Engine(device="cuda"))]
        else:
            inputs, engine = Inputs(data.train.x, "cuda"), Engine(device="cuda", compile=True, kernels=False)
            histories = [fit(prepare(data, config, engine=engine, inputs=inputs)) for config in configs]
        results[name] = {**summary(histories, time.perf_counter() - began), "commit": args.commit}
        print(name, json.dumps(results[name]), flush=True)
        atomic_write(path, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

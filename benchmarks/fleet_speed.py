"""Seconds per epoch and run of a fleet, and images per second, on one GPU.

Measured on an H200 (results/fleet_speed.json, `_third_generation`): 30 LeNets 0.0149 s per epoch and run, 81 times the
plain loop with 8 workers; 24 ResNet-32s 0.157 s, 318,000 images/s, 21 times.

    python benchmarks/fleet_speed.py --out results                       # the usual parts, about 8 minutes on an H200
    python benchmarks/fleet_speed.py --out results --parts lenet,resnet  # of check, peak, reference, single
    python benchmarks/fleet_speed.py --out results --parts views,general # methods with two views, modules; 3 minutes
    python benchmarks/fleet_speed.py --out results --parts profile,profile-views # where a step's time goes; a minute

LeNet 20/50/500 on 60,000 images 28x28x1 and ResNet-32 on 50,000 images 32x32x3 (uint8 noise), batch 256, bf16, half of
the runs `likelihood` and half `sl`, shortlists of 3 to 8 of 10. Epochs are those of `Fleet.train`, the first left
out (it compiles and captures); shuffles are included, evaluation is not. `check` holds the gradients to those of the
plain module. The reference is the plain loop of train_speed.py. Results go to <out>/fleet_speed.json as they come; what
is not in --parts is kept from an earlier call, and each part says which commit it is of. `views` times each method with
crops in a pack of its own, `general` the same runs without our kernels, as any other module is trained: R of them side
by side; both on 12,800 images.
"""

import argparse
import copy
import gc
import json
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shortlist.data import Dataset, Split
from shortlist.internal.files import atomic_write
from shortlist.labels import StochasticLabels
from shortlist.training import Engine, RunConfig, prepare
from shortlist.training.fleet.packs import build_tasks, fleet_of
from train_speed import reference

SHAPES = {"lenet": (60_000, (1, 28, 28)), "resnet32": (50_000, (3, 32, 32))}
FLOPS = {"lenet": 3 * 13.1e6 - 0.8e6, "resnet32": 3 * 138e6}
"""Floating-point operations an image, forward and backward (conv1 of the LeNet has no input gradient)."""
K = 10
FEW = 12_800
"""Images of `views` and `general`: 50 steps an epoch, whose time does not depend on how many there are."""
FLEETS = (("lenet", 30), ("resnet32", 12))
"""Runs side by side where methods are timed and steps profiled."""
VIEWS = (("likelihood", False), *((m, True) for m in ("likelihood", "proden", "rc", "crdpll", "dirk", "teacher")))
"""Methods, each with whether it has two views."""
PARTS = {"check", "peak", "profile", "lenet", "resnet", "views", "profile-views", "general", "reference", "single"}
Save = Callable[[str, Any], None]
"""Stores what a part measured, under a name."""


def noise(model: str, count: int | None = None) -> Dataset:
    full, shape = SHAPES[model]
    count = count or full
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (count, *shape), np.uint8)
    return Dataset(model, Split(x, rng.integers(0, K, count)), None, tuple(map(str, range(K))), "image")


def configs(model: str, count: int, batch_size: int = 256) -> list[RunConfig]:
    base = RunConfig(model=model, epochs=3, batch_size=batch_size, lr=0.01, weight_decay=1e-4, schedule="constant")
    rows = [replace(base, method=("likelihood", "sl")[2 * i // count], size=3 + i % 6, seed=i) for i in range(count)]
    return sorted(rows, key=lambda c: c.method)


def seconds(call: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def measure_fleet(data: Dataset, rows: list[RunConfig], engine: Engine) -> dict[str, Any]:
    """Train a fleet for a few epochs, the first of which compiles and captures."""
    model, count, batch_size = rows[0].model, len(rows), rows[0].batch_size
    gc.collect()  # a pack before this one is a cycle: its memory would be counted as there before, and freed meanwhile
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    began = time.perf_counter()
    fleet = fleet_of(build_tasks(data, rows), engine)
    history = [row.seconds for row in fleet.train()[0].history]
    ready = time.perf_counter() - began - sum(history[1:]) * count
    each = float(np.median(history[1:]))
    images = len(data.train) // batch_size * batch_size
    row = {
        "model": model,
        "runs": count,
        "batch": batch_size,
        "seconds_per_epoch_and_run": each,
        "images_per_second": images / each,
        "tflops": images / each * FLOPS[model] / 1e12,
        "memory_mb_per_run": (torch.cuda.max_memory_allocated() - before) / count / 2**20,
        "ready_seconds": ready,
        "epochs": [round(t, 5) for t in history],
    }
    print(json.dumps(row), flush=True)
    return row


def measure_single(data: Dataset, model: str, batch_size: int) -> dict[str, Any]:
    config = configs(model, 1, batch_size)[0]
    began = time.perf_counter()
    run = prepare(data, config, engine=Engine(device="cuda", compile=True)).run
    run.train_epoch()
    torch.cuda.synchronize()
    ready = time.perf_counter() - began
    each = float(np.median([seconds(run.train_epoch) for _ in range(3)]))
    images = run.steps * run.batch_size
    row = {"model": model, "runs": "single loop", "batch": batch_size, "seconds_per_epoch_and_run": each}
    row |= {"images_per_second": images / each, "tflops": images / each * FLOPS[model] / 1e12, "ready_seconds": ready}
    print(json.dumps(row), flush=True)
    return row


def check() -> dict[str, float]:
    """Relative error of the gradient of all parameters in bf16, against the module in float32: kernels, then autocast.

    That kernels and modules agree in float32 is shown on the CPU (tests/training/fleet/test_kernels.py).
    """
    errors = {}
    for model in SHAPES:
        torch.manual_seed(0)
        data = noise(model, 500)
        config = replace(configs(model, 1)[0], momentum=0.0, weight_decay=0.0)
        tasks = build_tasks(data, [config])
        net = copy.deepcopy(tasks[0].model).cuda().train()
        fleet = fleet_of(tasks, Engine(device="cuda").resolve(1)).net
        index = torch.randperm(500, device="cuda")[:256]
        x = torch.from_numpy(data.train.x).cuda()[index]
        slope = torch.randn(1, 256, K, device="cuda") / 256
        before = fleet.state_dict(0)
        fleet.forward(index.unsqueeze(0), torch.ones(1, device="cuda"), train=True)
        fleet.backward(slope)
        fleet.update(torch.ones(1, device="cuda"))  # lr 1: the parameters' change is the gradient
        after = fleet.state_dict(0)
        found = {"kernels": torch.cat([(before[n] - after[n]).flatten() for n, _ in net.named_parameters()])}
        for name, amp in (("autocast", True), ("float32", False)):
            net.zero_grad()
            with torch.autocast("cuda", torch.bfloat16, enabled=amp):
                logits = net(x)
            (logits.float() * slope[0]).sum().backward()
            found[name] = torch.cat([p.grad.flatten().cpu() for p in net.parameters() if p.grad is not None])
        for name in ("kernels", "autocast"):
            gap = (found[name] - found["float32"]).norm() / found["float32"].norm()
            errors[f"{model} {name}"] = float(gap)
    print(json.dumps({k: float(f"{v:.2g}") for k, v in errors.items()}), flush=True)
    return errors


def peak() -> float:
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        a @ b
    return 2 * 8192**3 * 10 / seconds(lambda: [a @ b for _ in range(10)]) / 1e12


def profile(data: Dataset, runs: int, method: str | None = None) -> list[dict[str, Any]]:
    """Where the time of a step goes, kernel by kernel; with a method, of that one with two views."""
    rows = configs(data.name, runs)
    if method:
        rows = [replace(config, method=method, augment=True, strong=True) for config in rows]
    fleet = fleet_of(build_tasks(data, rows), Engine(device="cuda").resolve(10**9))
    fleet._load(fleet._draw(0))
    for _ in range(3):
        fleet._step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        for _ in range(5):
            fleet._step()
        torch.cuda.synchronize()
    kernels = sorted(found.key_averages(), key=lambda r: -r.self_device_time_total)
    spent = [
        {"us_per_run_step": round(r.self_device_time_total / 5 / runs, 3), "calls": r.count / 5, "kernel": r.key[:90]}
        for r in kernels
    ]
    for row in spent[:22]:
        print(f"{row['us_per_run_step']:8.2f} us/run-step  {row['calls']:6.1f}x  {row['kernel']}", flush=True)
    print(f"{sum(row['us_per_run_step'] for row in spent):8.2f} us/run-step in all", flush=True)
    del fleet
    return spent


def compare(results: dict[str, Any]) -> None:
    """Each row as a multiple of the plain loop and as a share of the peak, where these are known."""
    reference = {row["model"]: row["images_per_second"] for row in results.get("reference", [])}
    for row in [row for model in SHAPES for row in results.get(model, [])]:
        if row["model"] in reference:
            row["times_reference"] = round(row["images_per_second"] / reference[row["model"]], 1)
        if "bf16_peak_tflops" in results:
            row["share_of_peak"] = round(row["tflops"] / results["bf16_peak_tflops"], 3)


def measure_views(few: dict[str, Dataset], engine: Engine, save: Save) -> None:
    """Each method with crops, with one view or two."""
    rows = []
    for (model, count), (method, strong) in product(FLEETS, VIEWS):
        same = [replace(c, method=method, augment=True, strong=strong) for c in configs(model, count)]
        rows.append({"method": method, "views": 1 + strong, **measure_fleet(few[model], same, engine)})
        save("views", rows)


def measure_modules(few: dict[str, Dataset], save: Save) -> None:
    """Runs side by side as plain modules, without our kernels."""
    rows, modules = [], Engine(device="cuda", kernels=False).resolve(10**9)
    for model, count in (("lenet", 1), ("lenet", 6), ("lenet", 16), ("resnet32", 1), ("resnet32", 12)):
        rows.append(measure_fleet(few[model], configs(model, count), modules))
        save("general", rows)


def measure_reference(data: dict[str, Dataset], save: Save) -> None:
    """The plain loop, with worker processes or without, whichever is faster."""
    rows = []
    for model in SHAPES:
        y = data[model].train.y
        assert y is not None
        labels = StochasticLabels.draw(y, num_classes=K, size=3, seed=0)
        loops = [reference(model, data[model], labels, torch.device("cuda"), workers) for workers in (0, 8)]
        best = max(loops, key=lambda measured: measured.images_per_second)
        rows.append({"model": model, "images_per_second": best.images_per_second, "loop": best.loop})
        print(json.dumps(rows[-1]), flush=True)
        save("reference", rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--parts", default="check,peak,lenet,resnet,single,reference")
    parser.add_argument("--fleets", default="1,6,30,120")
    parser.add_argument("--commit", default="unknown")
    args = parser.parse_args()
    parts = args.parts.split(",")
    if unknown := set(parts) - PARTS:
        parser.error(f"no part {unknown.pop()!r}: expected some of {', '.join(sorted(PARTS))}")
    path = args.out / "fleet_speed.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    results |= {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }

    def save(name: str, value: Any) -> None:
        results[name] = value
        results.setdefault("commits", {})[name] = args.commit
        compare(results)
        atomic_write(path, json.dumps(results, indent=1) + "\n")

    engine = Engine(device="cuda").resolve(10**9)
    data, few = {model: noise(model) for model in SHAPES}, {model: noise(model, FEW) for model in SHAPES}
    if "check" in parts:
        save("check", check())
    if "peak" in parts:
        save("bf16_peak_tflops", peak())
        print("peak", results["bf16_peak_tflops"], flush=True)
    if "profile" in parts:
        save("profile", {model: profile(data[model], runs) for model, runs in FLEETS})
    if "lenet" in parts:
        rows = []
        for count in map(int, args.fleets.split(",")):
            rows.append(measure_fleet(data["lenet"], configs("lenet", count), engine))
            save("lenet", rows)
    if "views" in parts:
        measure_views(few, engine, save)
    if "profile-views" in parts:
        save("profile_views", {model: profile(few[model], runs, "teacher") for model, runs in FLEETS})
    if "general" in parts:
        measure_modules(few, save)
    if "reference" in parts:
        measure_reference(data, save)
    if "resnet" in parts:
        rows = []
        for count, batch in ((1, 256), (1, 1024), (12, 256), (60, 256)):
            rows.append(measure_fleet(data["resnet32"], configs("resnet32", count, batch), engine))
            save("resnet32", rows)
    if "single" in parts:
        save("resnet32_single_loop", measure_single(data["resnet32"], "resnet32", 1024))


if __name__ == "__main__":
    main()

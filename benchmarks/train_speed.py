"""Images per second of one run, beside a plain DataLoader + fp32 eager loop, in the same process on the same device.

Measured (results/train_speed_cuda.json, an H200): 242,000 images/s of the LeNet, 4.9 times the loop with 8 workers, and
66,500 of the ResNet-32, 4.3 times. On two cores of an AMD EPYC (train_speed_cpu.json): 2,296 and 347, 1.1 and 1.3
times.

    python benchmarks/train_speed.py --out results            # what is there: the GPU, else the CPU
    python benchmarks/train_speed.py --device cpu --out /tmp/speed

LeNet on 60,000 images 28x28x1 and ResNet-32 on 50,000 images 32x32x3 (uint8 noise: speed does not depend on the
content), batch 256, method `likelihood`, SGD with momentum. The reference is the loop of any tutorial: a map-style
Dataset that turns one uint8 image at a time into normalised floats, a DataLoader, fp32, eager, torch.optim.SGD; it is
measured with and without worker processes, and both multiples are stated. It is spared `loss.item()` in every step.
Ours is measured after a warm-up epoch; what that epoch took (compilation, capture) is stated beside. On the CPU both
see a part of an epoch only (`--batches`), as a whole ResNet-32 epoch takes minutes there.

Hardware, versions and figures are in the JSON that it writes as it goes, <out>/train_speed_<device>.json.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from shortlist import models
from shortlist.data import Dataset as ImageSet
from shortlist.data import Split
from shortlist.internal.files import atomic_write
from shortlist.labels import StochasticLabels
from shortlist.risks import likelihood_risk
from shortlist.training import Engine, RunConfig, prepare

SHAPES = {"lenet": (60_000, (1, 28, 28)), "resnet32": (50_000, (3, 32, 32))}
CPU_BATCHES = {"lenet": 60, "resnet32": 12}
BATCH, K, SIZE = 256, 10, 3
MEAN, DEVIATION = 127.5, 73.9  # of uniform bytes


@dataclass(frozen=True)
class Measured:
    """One line of the table."""

    model: str
    device: str
    loop: str
    images_per_second: float
    images: int
    seconds: float
    warm_up_seconds: float


class OneByOne(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """The reference's dataset: an image, its shortlist and its answer, one index at a time."""

    def __init__(self, x: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]", labels: StochasticLabels) -> None:
        self.x, self.shown, self.answer = x, torch.from_numpy(labels.shown), torch.from_numpy(labels.answer)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor, Tensor]:
        image = torch.from_numpy(self.x[i]).float().sub_(MEAN).div_(DEVIATION)
        return image, self.shown[i], self.answer[i]


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def reference(name: str, data: ImageSet, labels: StochasticLabels, device: torch.device, workers: int) -> Measured:
    """One epoch of the plain loop, its first five batches as a warm-up."""
    assert isinstance(data.train.x, np.ndarray)
    loader = DataLoader(
        OneByOne(data.train.x, labels),
        BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=device.type == "cuda",
    )
    model: nn.Module = models.build(name, data.in_shape, K, seed=0).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    model.train()
    began, start, count = time.perf_counter(), 0.0, -5
    for x, shown, answer in loader:
        x, shown, answer = (part.to(device, non_blocking=True) for part in (x, shown, answer))
        optimiser.zero_grad()
        likelihood_risk(model(x), shown, answer).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        count += 1
        if count == 0:
            synchronise(device)
            start = time.perf_counter()
    synchronise(device)
    seconds = time.perf_counter() - start
    title = f"DataLoader, {workers} workers, fp32 eager"
    return Measured(name, device.type, title, count * BATCH / seconds, count * BATCH, seconds, start - began)


def ours(
    name: str, data: ImageSet, labels: StochasticLabels, device: torch.device, engine: Engine, title: str, box: float
) -> Measured:
    """Whole epochs of one run until `box` seconds are over, after one epoch of warm-up."""
    config = RunConfig(method="likelihood", model=name, epochs=100, batch_size=BATCH, lr=0.01)
    began = time.perf_counter()
    run = prepare(data, config, labels=labels, engine=engine).run
    run.train_epoch()
    synchronise(device)
    start, images = time.perf_counter(), 0
    while time.perf_counter() - start < box and run.epoch < 100:
        risk = run.train_epoch()
        images += run.steps * run.batch_size
        synchronise(device)
    seconds = time.perf_counter() - start
    if not torch.isfinite(risk):
        raise SystemExit(f"{name}: the risk is {risk.item()}")
    return Measured(name, device.type, title, images / seconds, images, seconds, start - began)


def measure(name: str, device: torch.device, arguments: argparse.Namespace) -> Iterator[Measured]:
    count, shape = SHAPES[name]
    batches = arguments.batches or (CPU_BATCHES[name] if device.type == "cpu" else 0)
    count = min(count, batches * BATCH) if batches else count
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, count)
    data = ImageSet(
        "noise", Split(rng.integers(0, 256, (count, *shape), dtype=np.uint8), y), None, tuple("0123456789"), "image"
    )
    labels = StochasticLabels.draw(y, num_classes=K, size=SIZE, seed=0)
    cuda = device.type == "cuda"
    workers = min(8, os.cpu_count() or 1)
    for some in (0, workers):
        yield reference(name, data, labels, device, some)
    if not cuda:
        yield ours(name, data, labels, device, Engine(device="cpu"), "shortlist", arguments.seconds)
        return
    variants = {
        "graph": Engine("cuda", compile=False),
        "default": Engine("cuda"),
        "eager": Engine("cuda", compile=False, cuda_graph=False),
    }
    for variant in arguments.variants.split(","):
        title = "shortlist" if variant == "default" else f"shortlist, {variant} only"
        yield ours(name, data, labels, device, variants[variant], title, arguments.seconds)


def machine(device: torch.device) -> dict[str, object]:
    cpu = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), cpu)
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else cpu,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def summary(rows: list[Measured]) -> dict[str, dict[str, float]]:
    """For each model: the plain reference (no workers), the faster of both, ours, and how many times faster that is."""
    found = {}
    for name in dict.fromkeys(row.model for row in rows):
        plain = [row.images_per_second for row in rows if row.model == name and row.loop.startswith("DataLoader")]
        mine = [row.images_per_second for row in rows if row.model == name and row.loop == "shortlist"]
        if plain and mine:
            found[name] = {
                "plain_reference": plain[0],
                "best_reference": max(plain),
                "shortlist": mine[0],
                "times_plain": mine[0] / plain[0],
                "times_best": mine[0] / max(plain),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the JSON")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", default="lenet,resnet32")
    parser.add_argument("--batches", type=int, default=0, help="batches an epoch (default: all; on the CPU a part)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long ours is measured")
    parser.add_argument("--variants", default="graph,default", help="of graph, default, eager; CUDA only")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"train_speed_{device.type}.json"
    rows: list[Measured] = []
    print(f"{'model':9} {'loop':34} {'images/s':>10} {'images':>9} {'seconds':>8} {'warm-up':>8}", flush=True)
    for name in arguments.models.split(","):
        for row in measure(name, device, arguments):
            rows.append(row)
            print(
                f"{row.model:9} {row.loop:34} {row.images_per_second:10,.0f} {row.images:9,} {row.seconds:8.1f}"
                f" {row.warm_up_seconds:8.1f}",
                flush=True,
            )
            content = {"machine": machine(device), "batch_size": BATCH, "rows": [asdict(r) for r in rows]}
            atomic_write(path, json.dumps({**content, "summary": summary(rows)}, indent=1) + "\n")
    for name, found in summary(rows).items():
        print(f"{name}: {found['times_plain']:.1f} times the plain loop, {found['times_best']:.1f} with its workers")
    print(path)


if __name__ == "__main__":
    main()

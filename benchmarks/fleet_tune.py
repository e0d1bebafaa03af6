"""Block sizes of the fleets' kernels: each candidate timed alone, batch 256, bf16.

    python benchmarks/fleet_tune.py                     # about 4 minutes on an H200; microseconds a run and step
    python benchmarks/fleet_tune.py --only resnet       # or any of conv,conv_back,weights,first,first_weights,pool

What wins goes into `fleet_layout.Tiles` and `fleet_resnet_layout.TILES`; the story is in docs/fleet-notes.md. One stage
means ordinary loads through the first-level cache; more stages copy ahead into shared memory and pass that cache by.
"""

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from shortlist import models
from shortlist.training.fleet_layout import Tiles
from shortlist.training.fleet_lenet import LeNetFleet
from shortlist.training.fleet_resnet import ResNetFleet
from shortlist.training.fleet_resnet_layout import TILES, Conv

B, REPEATS = 256, 10
# BLOCK_M, BLOCK_K, warps, stages of a convolution
CONVS = [(256, 64, 8, 2), (256, 64, 8, 3), (128, 64, 4, 1), (256, 64, 8, 1), (128, 32, 4, 1), (256, 32, 8, 1)]
SMALL_CONVS = [(256, 16, 4, 4), (256, 16, 4, 1), (128, 16, 4, 1), (256, 16, 8, 1), (512, 16, 8, 4), (512, 16, 8, 1)]
RESNET_CONVS = {
    16: [*SMALL_CONVS, (256, 32, 4, 1), (128, 32, 4, 1)],
    32: [(256, 32, 4, 3), (256, 32, 4, 1), (128, 32, 4, 1), (256, 32, 8, 1), (128, 64, 4, 1)],
    64: [(128, 64, 4, 3), (64, 64, 4, 3), (128, 64, 4, 1), (64, 64, 4, 1), (128, 32, 4, 1)],
}
# BLOCK_M, splits, warps, stages of a weight gradient
WEIGHTS = [(64, 8, 8, 3), (64, 8, 4, 1), (128, 8, 4, 1), (64, 16, 8, 1), (32, 8, 4, 1)]
RESNET_WEIGHTS = [(64, 16, 4, 3), (64, 16, 4, 1), (128, 16, 4, 1), (64, 32, 4, 1), (32, 32, 4, 1), (64, 64, 2, 1)]


def microseconds(call: Callable[[], Any], runs: int) -> float:
    call()
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(REPEATS):
        call()
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop)) * 1000 / REPEATS / runs


def best(name: str, options: Sequence[Any], call: Callable[[Any], Any], runs: int) -> None:
    """Time every option and print them, the best first."""
    found = []
    for option in options:
        try:
            found.append((microseconds(lambda option=option: call(option), runs), option))  # type: ignore[misc]
        except Exception as error:  # out of shared memory or registers: not a candidate
            print(name, option, type(error).__name__, flush=True)
    row = "   ".join(f"{time:.2f} {option}" for time, option in sorted(found, key=lambda row: row[0])[:5])
    print(f"{name:14} {row}", flush=True)


def tune_stage(net: ResNetFleet, conv: Conv, x: torch.Tensor, y: torch.Tensor, dy: torch.Tensor) -> None:
    """One convolution, its input gradient and its weight gradient."""
    channels, runs, back = conv.inputs, net.R, torch.empty_like(y)

    def use(part: str, option: Any) -> None:
        table: Any = {**getattr(TILES, part), channels: option}
        net.tiles = replace(TILES, **{part: table})

    def forward(option: Any) -> None:
        use("conv", option)
        net._conv(x, conv)

    def backward(option: Any) -> None:
        use("conv", option)
        net._input_gradient(dy, conv, back, add=False)

    def weights(option: Any) -> None:
        use("weights", option)
        net._weights(x, dy, conv)

    best(f"conv {channels}", RESNET_CONVS[channels], forward, runs)
    best(f"conv_back {channels}", RESNET_CONVS[channels], backward, runs)
    best(f"weights {channels}", RESNET_WEIGHTS, weights, runs)


def resnet(runs: int = 12) -> None:
    states = [models.build("resnet32", (3, 32, 32), 10, seed=i).state_dict() for i in range(runs)]
    images = torch.randint(0, 256, (2000, 3, 32, 32), dtype=torch.uint8, device="cuda")
    ones = torch.ones(3, device="cuda")
    net = ResNetFleet(states, images, 127 * ones, 70 * ones, torch.zeros(runs), 0.9)
    index = torch.randint(0, 2000, (runs, B), device="cuda")
    net.forward(index, torch.ones(runs, device="cuda"), train=True)
    net.backward(torch.randn(runs, B, 10, device="cuda") / B)
    for place in (1, 6, 11):
        conv = net.blocks[place].second
        _, _, _, a1, y2, norm2, out = net._kept[place + 1][:7]
        dy = net._norm_back(torch.randn_like(y2), out, y2, norm2, conv.norm, conv, mask=1)
        tune_stage(net, conv, a1, y2, dy)
    a0, _, _, a1, y2, norm2, out = net._kept[2]
    conv, d = net.blocks[1].second, torch.randn_like(y2)

    def act(option: Any) -> None:
        net.tiles = replace(TILES, act=option)
        net._act(y2, norm2, conv, 1, a0, None)

    def act_back(option: Any, mask: int) -> None:
        net.tiles = replace(TILES, act=option)
        net._norm_back(d, out, y2, norm2, conv.norm, conv, mask=mask)

    acts = [(64, 4), (128, 4), (256, 8)]
    best("act", acts, act, runs)
    for mask in (1, 2):
        best(f"act_back {mask}", acts, partial(act_back, mask=mask), runs)


def lenet(only: Sequence[str], runs: int = 30) -> None:
    images = torch.randn(10_000, 1, 28, 28, device="cuda")
    states = [models.build("lenet", (1, 28, 28), 10, seed=i).state_dict() for i in range(runs)]
    net = LeNetFleet(states, images, torch.zeros(runs), 0.9)
    index = torch.randint(0, 10_000, (runs, B), device="cuda")
    active = torch.ones(runs, device="cuda")
    net.forward(index, active, train=True)
    net.backward(torch.randn(runs, B, 10, device="cuda") / B)
    index, h1, y2, norm, h2, _, _ = net._kept
    dy2 = net._pool_back(y2, norm, torch.randn_like(h2))
    folded, dh1 = net._fold(index, active, True), net._second_back(dy2)
    candidates: dict[str, tuple[list[Any], Callable[[], Any]]] = {
        "conv": (CONVS, lambda: net._second(h1, B, active, True)),
        "conv_back": (CONVS, lambda: net._second_back(dy2)),
        "weights": (WEIGHTS, lambda: net._second_weights(h1, dy2)),
        "first": ([*itertools.product((64, 128, 256), (4, 8))], lambda: net._first(folded, index, net.images, True)),
        "first_weights": ([*itertools.product((32, 64), (16, 32), (1, 2))], lambda: net._first_back(index, dh1)),
        "pool": ([*itertools.product((8, 16, 32, 64), (2, 4))], lambda: net._pool_back(y2, norm, h2)),
    }
    for name in only:
        options, call = candidates[name]

        def one(option: Any, name: str = name, call: Callable[[], Any] = call) -> None:
            net.tiles = replace(Tiles(), **{name: option})
            call()

        best(name, options, one, runs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="conv,conv_back,weights,first,first_weights,pool,resnet")
    only = parser.parse_args().only.split(",")
    lenet([name for name in only if name != "resnet"])
    if "resnet" in only:
        resnet()


if __name__ == "__main__":
    main()

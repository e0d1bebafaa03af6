"""Block sizes of the LeNet fleet's kernels: each candidate timed alone, 30 runs, batch 256, bf16.

    python benchmarks/fleet_tune.py            # about 3 minutes on an H200; microseconds a run and step

What wins goes into `fleet_lenet.Tiles` and `fleet_resnet.TILES`; the table goes into docs/fleet-notes.md.
"""

import argparse
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from shortlist import models
from shortlist.training.fleet_lenet import LeNetFleet, Tiles
from shortlist.training.fleet_resnet import TILES, ResNetFleet

R, B, REPEATS = 30, 256, 10
# BLOCK_M, BLOCK_K, warps, stages, cache of the LeNet's convolutions
CONVS = [
    (256, 64, 8, 2, ""), (256, 64, 8, 2, ".ca"), (256, 64, 8, 3, ".ca"), (256, 32, 8, 3, ""), (256, 32, 8, 4, ".ca"),
    (128, 64, 4, 3, ""), (512, 32, 8, 2, ""), (512, 64, 8, 2, ""), (256, 64, 4, 2, ""),
]  # fmt: skip
# BLOCK_M, splits, warps, stages, cache of its weight gradient
WEIGHTS = [(64, 8, 8, 3, ".ca"), (64, 8, 4, 3, ""), (64, 16, 4, 3, ".ca"), (32, 8, 4, 3, ""), (128, 8, 8, 2, ".ca")]
# the same of ResNet-32, without the cache
RESNET_CONVS = [
    (128, 32, 4, 3), (128, 32, 4, 2), (256, 32, 4, 3), (256, 32, 8, 3), (256, 16, 4, 4), (512, 32, 8, 2), (128, 64, 4, 3),
    (256, 64, 8, 2), (128, 16, 4, 4), (64, 64, 4, 3),
]  # fmt: skip
RESNET_WEIGHTS = [(128, 16, 4, 3), (128, 32, 4, 3), (64, 16, 4, 3), (64, 32, 2, 3), (256, 16, 8, 2), (64, 8, 4, 3)]


def microseconds(call: Callable[[], Any], runs: int = R) -> float:
    call()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(REPEATS):
        call()
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop)) * 1000 / REPEATS / runs


def best(name: str, options: list[Any], call: Callable[[Any], Any], runs: int) -> None:
    """Time every option and print the best few."""
    found = []
    for option in options:
        try:
            found.append((microseconds(lambda option=option: call(option), runs), option))  # type: ignore[misc]
        except Exception as error:  # out of shared memory or registers: not a candidate
            print(name, option, type(error).__name__, flush=True)
    for time, option in sorted(found, key=lambda row: row[0])[:4]:
        print(f"{name:16} {time:8.2f} us  {option}", flush=True)


def resnet(runs: int = 12) -> None:
    """One convolution of each stage, its input gradient, its weight gradient, and the passes between."""
    states = [models.build("resnet32", (3, 32, 32), 10, seed=i).state_dict() for i in range(runs)]
    images = torch.randint(0, 256, (2000, 3, 32, 32), dtype=torch.uint8, device="cuda")
    ones = torch.ones(3, device="cuda")
    net = ResNetFleet(states, images, 127 * ones, 70 * ones, torch.zeros(runs), 0.9)
    index = torch.randint(0, 2000, (runs, B), device="cuda")
    net.forward(index, torch.ones(runs, device="cuda"), train=True)
    net.backward(torch.randn(runs, B, 10, device="cuda") / B)
    for place, channels in ((1, 16), (6, 32), (11, 64)):
        block, kept = net.blocks[place], net._kept[place + 1]
        _, _, _, a1, y2, norm2, out = kept[:7]
        d = torch.randn_like(y2)

        def with_tiles(part: str, option: Any, channels: int = channels) -> None:
            net.tiles = replace(TILES, **{part: {**getattr(TILES, part), channels: option}})

        dy = net._act_back(d, out, y2, norm2, block.second, keep=True)
        second = block.second
        best(f"conv {channels}", RESNET_CONVS, lambda o: (with_tiles("conv", o), net._conv(a1, second)), runs)
        back = torch.empty_like(y2)
        best(
            f"conv_back {channels}",
            RESNET_CONVS,
            lambda o: (with_tiles("conv", o), net._input_gradient(dy, second, back, add=False)),
            runs,
        )
        best(
            f"weights {channels}",
            RESNET_WEIGHTS,
            lambda o: (with_tiles("weights", o), net._weights(a1, dy, second)),
            runs,
        )
    net.tiles = TILES
    block, (_, _, _, _, y2, norm2, out) = net.blocks[1], net._kept[2]
    a0 = net._kept[2][0]
    acts = [(64, 4), (128, 4), (256, 4), (256, 8), (512, 8)]

    def act(option: Any) -> None:
        net.tiles = replace(TILES, act=option)
        net._act(y2, norm2, block.second, 1, a0, None)

    def act_back(option: Any) -> None:
        net.tiles = replace(TILES, act=option)
        net._act_back(torch.empty_like(y2), out, y2, norm2, block.second, keep=True)

    best("act", acts, act, runs)
    best("act_back", acts, act_back, runs)


def lenet(only: list[str]) -> None:
    images = torch.randn(10_000, 1, 28, 28, device="cuda")
    states = [models.build("lenet", (1, 28, 28), 10, seed=i).state_dict() for i in range(R)]
    net = LeNetFleet(states, images, torch.zeros(R), 0.9)
    index = torch.randint(0, 10_000, (R, B), device="cuda")
    active = torch.ones(R, device="cuda")
    net.forward(index, active, train=True)
    net.backward(torch.randn(R, B, 10, device="cuda") / B)
    index, h1, y2, norm, h2, _, _ = net._kept
    dy2 = net._pool_back(y2, norm, torch.randn_like(h2))
    folded, dh1 = net._fold(index, active, True), net._second_back(dy2)
    candidates: dict[str, tuple[list[Any], Callable[[], Any]]] = {
        "conv": (CONVS, lambda: net._second(h1, B, active, True)),
        "conv_back": (CONVS, lambda: net._second_back(dy2)),
        "weights": (WEIGHTS, lambda: net._second_weights(h1, dy2)),
        "first": ([*itertools.product((64, 128, 256), (4, 8))], lambda: net._first(folded, index, net.images, True)),
        "first_weights": (
            [*itertools.product((64, 128, 256), (16, 32), (2, 4)), (128, 64, 4), (128, 32, 8)],
            lambda: net._first_back(index, dh1),
        ),
        "pool": ([*itertools.product((8, 16, 32, 64), (2, 4))], lambda: net._pool_back(y2, norm, h2)),
    }
    for name in only:
        options, call = candidates[name]

        def one(option: Any, name: str = name, call: Callable[[], Any] = call) -> None:
            net.tiles = replace(Tiles(), **{name: option})
            call()

        best(name, options, one, R)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="conv,conv_back,weights,first,first_weights,pool,resnet")
    only = parser.parse_args().only.split(",")
    lenet([name for name in only if name != "resnet"])
    if "resnet" in only:
        resnet()


if __name__ == "__main__":
    main()

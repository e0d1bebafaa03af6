"""Block sizes of the LeNet fleet's kernels: each candidate timed alone, 30 runs, batch 256, bf16.

    python benchmarks/fleet_tune.py            # about 3 minutes on an H200; microseconds a run and step

What wins goes into `fleet_lenet.Tiles`; the table goes into docs/fleet-notes.md.
"""

import argparse
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from shortlist import models
from shortlist.training.fleet_lenet import LeNetFleet, Tiles

R, B, REPEATS = 30, 256, 10
# BLOCK_M, BLOCK_K, warps, stages, cache of the convolutions
CONVS = [
    (128, 128, 4, 3, ""), (128, 128, 4, 3, ".ca"), (128, 128, 4, 2, ".ca"), (128, 128, 8, 3, ".ca"),
    (128, 128, 8, 2, ".ca"), (128, 64, 4, 3, ""), (128, 64, 4, 3, ".ca"), (128, 64, 4, 4, ".ca"), (128, 64, 8, 3, ".ca"),
    (128, 32, 4, 4, ".ca"), (256, 128, 8, 2, ".ca"), (256, 64, 8, 3, ".ca"), (256, 64, 8, 2, ""), (64, 128, 4, 3, ".ca"),
    (64, 64, 4, 4, ".ca"), (64, 64, 4, 3, ""),
]  # fmt: skip
# BLOCK_M, splits, warps, stages, cache of the weight gradient
WEIGHTS = [
    (64, 8, 4, 3, ""), (64, 8, 4, 3, ".ca"), (64, 8, 4, 2, ".ca"), (64, 8, 4, 4, ".ca"), (64, 8, 8, 3, ".ca"),
    (64, 4, 4, 3, ".ca"), (64, 16, 4, 3, ".ca"), (128, 8, 4, 2, ".ca"), (128, 8, 8, 2, ".ca"), (128, 8, 8, 3, ""),
    (32, 8, 4, 4, ".ca"),
]  # fmt: skip


def microseconds(call: Callable[[], Any]) -> float:
    call()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(REPEATS):
        call()
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop)) * 1000 / REPEATS / R


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="conv,conv_back,weights,first,first_weights,pool")
    only = parser.parse_args().only.split(",")
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
        found = []
        for option in options:
            net.tiles = replace(Tiles(), **{name: option})
            try:
                found.append((microseconds(call), option))
            except Exception as error:  # out of shared memory or registers: not a candidate
                print(name, option, type(error).__name__, flush=True)
        for time, option in sorted(found, key=lambda row: row[0])[:6]:
            print(f"{name:14} {time:8.2f} us  {option}", flush=True)
        print(f"{name:14} {min(t for t, o in found if o == getattr(Tiles(), name)):8.2f} us  as it is", flush=True)


if __name__ == "__main__":
    main()

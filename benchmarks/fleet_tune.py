"""Block sizes of the fleets' kernels: each candidate timed alone, batch 256, bf16.

It prints its figures and keeps none; the winners are those that fleet_speed.py measures on an H200.

    python benchmarks/fleet_tune.py                # about 2 minutes on an H200; microseconds per run and step
    python benchmarks/fleet_tune.py --only lenet   # or resnet, or act

What wins goes into the tables beside the kernels; the story is in docs/fleet-notes.md.
"""

import argparse
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from shortlist import models
from shortlist.training.fleet.conv.by_cuda import (
    BACK_TILES,
    CONV_TILES,
    WEIGHT_TILES,
    CudaTiles,
    conv_constants,
    conv_memory,
    weight_constants,
    weight_memory,
)
from shortlist.training.fleet.conv.conv import ConvShape, NormBack, Receiver, add_mode, halo_of
from shortlist.training.fleet.kernels.nvrtc import compiled
from shortlist.training.fleet.lenet.batch import resident_moments
from shortlist.training.fleet.lenet.layout import N1, ROWS2_BACK, Tiles
from shortlist.training.fleet.lenet.lenet import LeNetFleet
from shortlist.training.fleet.resnet.layout import TILES, Conv, Normed
from shortlist.training.fleet.resnet.resnet import ResNetFleet

B, REPEATS = 256, 10
CONVS = [
    CudaTiles(w, t)
    for w, ts in ((4, (2, 4)), (7, (2, 4)), (8, (1, 2, 3, 4, 5, 6)), (12, (1, 2)), (16, (1, 2)))
    for t in ts
]


def weight_tiles(shape: ConvShape) -> list[CudaTiles]:
    """Ways to share the rows of a weight gradient among warps."""
    tiles = -(-shape.real_rows // 16)
    found = []
    for across, along, pixels in itertools.product((1, 2, 3, 5, 6, 8, 9, 10, 12), (1, 2, 4, 8), (64, 128, 256)):
        each = -(-tiles // across)
        if -(-tiles // each) == across and 4 <= across * along <= 12 and each * shape.outputs // 8 * 4 <= 144:
            found.append(CudaTiles(across * along, each, pixels))
    return found


def microseconds(call: Callable[[], Any], runs: int) -> float:
    call()
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(REPEATS):
        call()
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop)) * 1000 / REPEATS / runs


def best(name: str, options: Sequence[Any], use: Callable[[Any], None], call: Callable[[], Any], runs: int) -> None:
    """Time every option and print them, the best first."""
    found = []
    for option in options:
        use(option)
        try:
            found.append((microseconds(call, runs), option))
        except Exception as error:  # out of shared memory or registers: not a candidate
            if "out of resources" not in str(error) and "invalid" not in str(error):
                print(name, option, error, flush=True)
    found.sort(key=lambda row: row[0])
    if found:
        use(found[0][1])
    print(f"{name:22}", "   ".join(f"{time:.2f} {_short(option)}" for time, option in found[:4]), flush=True)


def _short(option: Any) -> str:
    return f"({option.warps}, {option.tiles}, {option.pixels})" if isinstance(option, CudaTiles) else str(option)


def _use(table: dict[tuple[int, int, int], CudaTiles], shape: ConvShape) -> Callable[[Any], None]:
    def use(option: Any) -> None:
        table[shape.places, shape.inputs, shape.outputs] = option

    return use


def tune(
    net: LeNetFleet | ResNetFleet, shape: ConvShape, turned: ConvShape, x: Tensor, norm: Tensor | None = None,
    add: Tensor | None = None, receiver: Receiver | None = None, back: NormBack | None = None,
) -> None:  # fmt: skip
    """One convolution, its input gradient and its weight gradient, with all that they do for a residual network."""
    runs, limit = net.R, torch.cuda.get_device_properties().shared_memory_per_block_optin  # type: ignore[attr-defined]
    normed, made = norm is not None, back is not None
    forwards = [of for of in CONVS if conv_memory(shape, of, norm=normed) <= limit]
    backwards = [of for of in CONVS if conv_memory(turned, of) <= limit]
    weight_bytes = partial(weight_memory, shape, norm=normed, back=made)
    weights = [of for of in weight_tiles(shape) if weight_bytes(of) <= limit]
    x_halo = halo_of(x, shape.height * shape.stride)
    y = torch.zeros(runs, B, shape.height, shape.width, shape.outputs, device="cuda", dtype=torch.bfloat16)
    dx = torch.zeros(runs, B, turned.height, turned.width, turned.outputs, device="cuda", dtype=torch.bfloat16)
    of_conv: dict[str, Any] = {"sums": 1, "norm": normed, "x_halo": x_halo}
    of_back: dict[str, Any] = {
        "sums": 2 if receiver else 0,
        "mask": receiver.mask if receiver else 0,
        "add": add_mode(add, dx),
    }
    of_back["before_halo"] = halo_of(receiver.before, turned.height) if receiver else 0
    of_weights: dict[str, Any] = {"norm": normed, "back": back.mode if back else 0, "x_halo": x_halo}
    of_weights["before_halo"] = halo_of(back.before, shape.height) if back else 0
    jobs: list[tuple[Any, ...]] = [
        *(("conv", conv_constants(shape, of, **of_conv), of, conv_memory(shape, of, norm=normed)) for of in forwards),
        *(("conv", conv_constants(turned, of, **of_back), of, conv_memory(turned, of)) for of in backwards),
        *(("conv_weight", weight_constants(shape, of, **of_weights), of, weight_bytes(of)) for of in weights),
    ]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda job: compiled(f"{job[0]}.cu", job[0], job[1], job[2].warps * 32, job[3]), jobs))
    w = torch.randn(runs, shape.rows, shape.columns, device="cuda", dtype=torch.bfloat16)
    turned_w = torch.randn(runs, turned.rows, turned.columns, device="cuda", dtype=torch.bfloat16)
    halo = shape.places - 1
    sides = (turned.height + halo, turned.width + halo)
    dy = torch.randn(runs, B, *sides, shape.outputs, device="cuda", dtype=torch.bfloat16)
    grad = torch.zeros(runs, shape.rows, shape.columns, device="cuda")
    name = f"{shape.places} {shape.inputs}-{shape.outputs}"
    conv = net.convolver

    def forward() -> None:
        conv.forward(x, w, y, shape, statistics=True, norm=norm)

    def backward() -> None:
        conv.backward(dy, turned_w, dx, turned, add=add, to=receiver)

    def by_weights() -> None:
        conv.weights(x, dy, grad, shape, norm=norm, back=back)

    best(f"conv {name}", forwards, _use(CONV_TILES, shape), forward, runs)
    best(f"back {name}", backwards, _use(BACK_TILES, turned), backward, runs)
    best(f"weights {name}", weights, _use(WEIGHT_TILES, shape), by_weights, runs)


def resnet_net(runs: int) -> ResNetFleet:
    states = [models.build("resnet32", (3, 32, 32), 10, seed=i).state_dict() for i in range(runs)]
    images = torch.randint(0, 256, (2000, 3, 32, 32), dtype=torch.uint8, device="cuda")
    ones = torch.ones(3, device="cuda")
    net = ResNetFleet(states, images, 127 * ones, 70 * ones, torch.zeros(runs), 0.9)
    net.forward(torch.randint(0, 2000, (runs, B), device="cuda"), torch.ones(runs, device="cuda"), train=True)
    net.backward(torch.randn(runs, B, 10, device="cuda") / B)
    return net


def resnet(runs: int = 24) -> None:
    net = resnet_net(runs)
    for place in (1, 6, 11):  # a block of each size, after the one that halves it
        kept, block = net._kept[place], net.blocks[place]
        tune_resnet(net, block.second, kept.second, kept.first.y, kept.first.norm, kept.second.y, net._receiver(place))
    for place in (5, 10):  # those that halve
        kept, block = net._kept[place], net.blocks[place]
        assert block.shortcut is not None
        assert kept.shortcut is not None
        share = torch.zeros_like(kept.shortcut.y[..., : block.first.inputs])
        tune_resnet(net, block.first, kept.first, kept.a, None, share, net._receiver(place))
        tune_resnet(net, block.shortcut, kept.shortcut, kept.a, None, None, None)


def tune_resnet(
    net: ResNetFleet, conv: Conv, made: Normed, x: Tensor, norm: Tensor | None, add: Tensor | None, to: Receiver | None
) -> None:
    """With `made` by the convolution of x."""
    d = torch.randn(net.R, B, conv.size, conv.size, conv.outputs, device="cuda", dtype=torch.bfloat16)
    back = NormBack(d, made.y, made.norm, torch.zeros(net.R, 2, conv.outputs, device="cuda"))
    tune(net, conv.shape, conv.turned, x, norm, add, to, back)


def act(runs: int = 24) -> None:
    """The passes between convolutions of 16 channels."""
    net = resnet_net(runs)
    kept, conv = net._kept[1], net.blocks[1].second
    d = torch.randn_like(kept.second.y)
    options = [(64, 4), (128, 4), (256, 4), (256, 8), (512, 8)]

    def use(option: Any) -> None:
        net.tiles = replace(TILES, act=option)

    best("act", options, use, lambda: net._act(kept.second, conv, 1, kept.a, None), runs)
    best("sums", options, use, lambda: net._sums(d, net._receiver(2)), runs)


def lenet(runs: int = 60) -> None:
    images = torch.randn(10_000, 1, 28, 28, device="cuda")
    states = [models.build("lenet", (1, 28, 28), 10, seed=i).state_dict() for i in range(runs)]
    net = LeNetFleet(states, images, torch.zeros(runs), 0.9)
    index = torch.randint(0, 10_000, (runs, B), device="cuda")
    active = torch.ones(runs, device="cuda")
    net.forward(index, active, train=True)
    net.backward(torch.randn(runs, B, 10, device="cuda") / B)
    images, index, h1, y2, norm, h2, _, _ = net._kept
    tune(net, net.second, net.second.turned(ROWS2_BACK, N1), h1)
    dy2 = net._pool_back(y2, norm, torch.randn_like(h2))
    folded = net._fold(resident_moments(index, net.moments, net._zeros), B, active, True)
    dh1 = net._second_back(dy2)
    net.cuda = None  # the sizes below are those of Triton's kernels
    parts = [*itertools.product((32, 64), (16, 32), (1, 2))]
    others: dict[str, tuple[list[Any], Callable[[], Any]]] = {
        "first": ([*itertools.product((64, 128, 256), (4, 8))], lambda: net._first(folded, index, images, True)),
        "first_weights": (
            [*itertools.product((32, 64), (16, 32), (1, 2))],
            lambda: net._first_back(images, index, dh1),
        ),
        "moments": (parts, lambda: net._layers.moments(images, index)),
        "pool": ([*itertools.product((8, 16, 32, 64), (2, 4))], lambda: net._pool_back(y2, norm, h2)),
        "pool_sums": ([*itertools.product((64, 128, 256), (4, 8))], lambda: net._pool_means(norm, h2)),
    }
    for name, (options, call) in others.items():

        def use(option: Any, name: str = name) -> None:
            net.tiles = replace(Tiles(), **{name: option})

        best(name, options, use, call, runs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="lenet,resnet,act")
    for name in parser.parse_args().only.split(","):
        {"lenet": lenet, "resnet": resnet, "act": act}[name]()


if __name__ == "__main__":
    main()

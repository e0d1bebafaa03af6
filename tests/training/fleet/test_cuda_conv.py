"""The CUDA kernels, run on the CPU thread by thread (on_cpu.h), against plain sums over windows of the same numbers."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import models
from shortlist.training.fleet.conv import by_cuda as fleet_conv_cuda
from shortlist.training.fleet.conv.by_cuda import CudaTiles
from shortlist.training.fleet.conv.conv import ConvShape
from shortlist.training.fleet.lenet.layout import second_shape
from shortlist.training.fleet.resnet.layout import blocks_of

from .checked import unless_checked
from .cuda_on_cpu import COMPILER, compiled

pytestmark = [
    unless_checked,
    pytest.mark.skipif(COMPILER is None, reason="g++ is not there to compile the kernels for the CPU"),
]

R, B = 2, 3
SHAPES = {  # places, stride, height, width, inputs, outputs, rows, columns; block sizes of both kernels
    "stem": (ConvShape(3, 1, 8, 8, 8, 16, 128, 16), CudaTiles(2, 2), CudaTiles(2, 5, 32)),
    "16 channels": (ConvShape(3, 1, 8, 8, 16, 16, 192, 16), CudaTiles(2, 2), CudaTiles(3, 9, 64)),
    "stride 2": (ConvShape(3, 2, 6, 6, 16, 32, 192, 32), CudaTiles(2, 2), CudaTiles(6, 3, 32)),
    "32 channels": (ConvShape(3, 1, 5, 7, 32, 32, 320, 32), CudaTiles(2, 1), CudaTiles(6, 6, 32)),
    "64 channels": (ConvShape(3, 1, 4, 4, 64, 64, 576, 64), CudaTiles(1, 2), CudaTiles(12, 3, 16)),
    "LeNet": (ConvShape(5, 1, 6, 6, 24, 56, 640, 64), CudaTiles(2, 2), CudaTiles(10, 4, 48)),
    "LeNet turned": (ConvShape(5, 1, 6, 6, 56, 24, 1408, 32), CudaTiles(2, 2), CudaTiles(6, 15, 48)),
    "one place": (ConvShape(1, 2, 6, 6, 16, 32, 64, 32), CudaTiles(2, 1), CudaTiles(4, 1, 32)),
    "one place turned": (ConvShape(1, 1, 5, 7, 64, 32, 64, 32), CudaTiles(2, 2), CudaTiles(4, 2, 32)),
}
PLAIN = ["plain", "statistics", "made again", "added, told"]
MODES = {
    **dict.fromkeys(SHAPES, PLAIN),
    "16 channels": [*PLAIN, "half added, told", "activated"],
    "32 channels": [*PLAIN, "activated"],
    "64 channels": [*PLAIN, "half added, told", "activated"],
    "one place": ["statistics", "activated"],
    "one place turned": ["plain"],
}
BACKS = {
    **{name: ["given", "made", "activated, made", "made, not written"] for name in SHAPES},
    "LeNet": ["given"],
    "LeNet turned": ["given"],
    "one place": ["made", "activated, made"],
    "one place turned": ["made"],
}


def cases(modes: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, mode) for name in modes for mode in modes[name]]


def maps(height: int, width: int, channels: int, halo: int = 0, fill: float = 0.0) -> Tensor:
    """(R, B, ...) numbers inside, `fill` around."""
    inside = torch.randn(R, B, height, width, channels).bfloat16()
    return F.pad(inside, (0, 0, halo, halo, halo, halo), value=fill).contiguous()


def inner(map: Tensor, halo: int, step: int = 1) -> Tensor:
    """A map without its halo, or of that every so many pixels and rows."""
    return map[:, :, halo : map.shape[2] - halo : step, halo : map.shape[3] - halo : step]


def inputs(shape: ConvShape, norm: Tensor | None) -> tuple[Tensor, Tensor]:
    """x as a convolution is given it, with a halo of 1 more than a window of one place needs, and as it counts."""
    pad = max(shape.places // 2, shape.stride - 1)
    fill = 0.0 if norm is None else math.nan
    x = maps(shape.height * shape.stride, shape.width * shape.stride, shape.inputs, pad, fill)
    if norm is None:
        return x, x
    scale, shift = (norm[:, i, None, None, None] for i in range(2))
    counts = torch.relu(inner(x, pad).float() * scale + shift).bfloat16()
    return x, F.pad(counts, (0, 0, pad, pad, pad, pad))


def windows(x: Tensor, shape: ConvShape) -> Tensor:
    """(R, B, H, W, places x inputs) of maps with a halo, in double."""
    if shape.places == 1:
        return inner(x, (x.shape[2] - shape.height * shape.stride) // 2, shape.stride).double()
    parts = x.double().unfold(2, shape.places, shape.stride).unfold(3, shape.places, shape.stride)
    parts = parts[:, :, : shape.height, : shape.width]  # (R, B, H, W, inputs, places, places)
    return parts.flatten(5).transpose(4, 5).flatten(4)


def close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    error = (ours.double() - theirs.double()).norm() / theirs.double().norm()
    assert float(error) < tolerance


@pytest.mark.parametrize(("name", "mode"), cases(MODES))
def test_convolution(name: str, mode: str) -> None:
    torch.manual_seed(0)
    shape, of, _ = SHAPES[name]
    H, W, C = shape.height, shape.width, shape.outputs
    mask = {"made again": 2, "added, told": 1, "half added, told": 1}.get(mode, 0)
    add = {"added, told": 1, "half added, told": 2}.get(mode, 0)
    sums = 2 if mask else int(mode != "plain")
    y_halo, before_halo, activated = int(mode == "activated"), int(mode == "made again"), mode == "activated"
    x_norm = torch.randn(R, 4, shape.inputs)
    x, counts = inputs(shape, x_norm if activated else None)
    w = torch.randn(R, shape.rows, shape.columns).bfloat16()  # padding is not zero here: it must not be used
    y = maps(H, W, C, y_halo, math.nan)
    added = y if add == 1 else maps(H // 2, W // 2, C)
    before = maps(H, W, C, before_halo, math.nan)
    norm = torch.randn(R, 4, C)
    passed = torch.rand(R, B, H, W, C) < 0.5
    bits = sum(passed[..., i::8].byte() << i for i in range(8))
    assert isinstance(bits, Tensor)

    real = w[:, : shape.real_rows, :C].double()
    want = torch.einsum("rbhwk,rkn->rbhwn", windows(counts, shape), real)
    if add == 1:
        want += y.double()
    if add == 2:
        want[:, :, ::2, ::2] += added.double()
    scale, shift, mean, rstd = (norm[:, i, None, None, None].double() for i in range(4))
    given = inner(before, before_halo).double()
    if mask == 1:
        want = want * passed
    if mask == 2:
        want = want * (given * scale + shift > 0)

    blocks = 1 if activated else 2  # one has enough tiles to use its buffers again
    found = torch.full((R, blocks, 2, shape.columns), 7.0)
    constants = fleet_conv_cuda.conv_constants(
        shape, of, sums=sums, add=add, mask=mask, norm=activated, y_halo=y_halo, before_halo=before_halo,
        x_halo=(x.shape[2] - H * shape.stride) // 2,
    )  # fmt: skip
    runs_apart = [t.stride(0) for t in (x, w, y, before, bits, added)]
    tensors = [x, w, y, found, before, bits, norm, x_norm, added]
    shared = fleet_conv_cuda.conv_memory(shape, of, norm=activated)
    kernel = compiled("conv.cu", "conv", constants, of.warps * 32, shared)
    kernel((blocks, R), *tensors, *runs_apart, B * H * W)

    kept = inner(y, y_halo)
    close(kept, want, 3e-3)  # bf16 keeps 8 bits
    assert int(y.isnan().sum()) == y.numel() - kept.numel()  # the halo is as it was
    got = found[..., :C].double().sum(1)
    second = kept.double() ** 2 if sums == 1 else kept.double() * (given - mean) * rstd
    if sums:
        close(got[:, 0], kept.double().sum((1, 2, 3)), 1e-5)
        close(got[:, 1], second.sum((1, 2, 3)), 1e-5)
    untouched = found[..., C:] if sums else found
    assert (untouched == 7).all()


@pytest.mark.parametrize(("name", "mode"), cases(BACKS))
def test_weight_gradient(name: str, mode: str) -> None:
    torch.manual_seed(0)
    shape, _, of = SHAPES[name]
    H, W, C, pad, apart = shape.height, shape.width, shape.outputs, shape.places // 2, shape.apart
    back = {"given": 0, "made, not written": 2}.get(mode, 1)
    activated, before_halo = mode == "activated, made", int(mode == "made")
    x_norm, norm, means = torch.randn(R, 4, shape.inputs), torch.randn(R, 4, C), torch.randn(R, 2, C)
    x, counts = inputs(shape, x_norm if activated else None)
    grad, before = maps(H, W, C), maps(H, W, C, before_halo, math.nan)
    d = maps(H * apart, W * apart, C, pad) if back == 0 else torch.full_like(maps(H * apart, W * apart, C, pad), 7)
    scale, _, mean, rstd = (norm[:, i, None, None, None] for i in range(4))
    normal = (inner(before, before_halo).float() - mean) * rstd
    slopes = scale * (grad.float() - means[:, 0, None, None, None] - normal * means[:, 1, None, None, None])
    by_pixel = inner(d, pad, apart).clone() if back == 0 else slopes.bfloat16()

    blocks = 1 if activated else 2  # one has enough tiles to use its buffers again
    parts = torch.zeros(R, blocks, shape.rows, shape.columns)
    constants = fleet_conv_cuda.weight_constants(
        shape, of, norm=activated, back=back, before_halo=before_halo, x_halo=(x.shape[2] - H * shape.stride) // 2
    )
    assert of.warps % constants["ACROSS"] == 0
    runs_apart = [t.stride(0) for t in (x, d, grad, before)]
    tensors = [x, d, parts, grad, before, norm, means, x_norm]
    shared = fleet_conv_cuda.weight_memory(shape, of, norm=activated, back=back > 0)
    kernel = compiled("conv_weight.cu", "conv_weight", constants, of.warps * 32, shared)
    kernel((blocks, R), *tensors, *runs_apart, B * H * W)

    if back == 1:
        written = inner(d, pad, apart)
        close(written, slopes, 3e-3)
        by_pixel = written.clone()  # a rounding apart from ours
        assert (d == 7).sum() >= d.numel() - written.numel()  # nothing between the pixels nor around them
        written.fill_(7)
    assert back == 0 or (d == 7).all()
    want = torch.einsum("rbhwk,rbhwn->rkn", windows(counts, shape), by_pixel.double())
    close(parts.sum(1)[:, : shape.real_rows, :C], want, 1e-5 if back < 2 else 1e-3)
    assert (parts[:, :, shape.real_rows :] == 0).all()
    assert (parts[..., C:] == 0).all()


def test_block_sizes_fit() -> None:
    """All convolutions of the two networks, turned ones too, have block sizes, which fit a Hopper's shared memory."""
    limit = 232448
    stem, blocks = blocks_of(models.build("resnet32", (3, 32, 32), 10, seed=0).state_dict(), 32)
    convs = [stem, *(conv for block in blocks for conv in block.convs)]
    for shape in [second_shape(14, 14), *(conv.shape for conv in convs)]:
        assert all(memory is not None and memory <= limit for memory in fleet_conv_cuda.shared_memory(shape))
        of = fleet_conv_cuda.WEIGHT_TILES[shape.places, shape.inputs, shape.outputs]
        assert of.warps % fleet_conv_cuda.weight_constants(shape, of)["ACROSS"] == 0

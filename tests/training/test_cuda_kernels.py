"""The CUDA kernels, run on the CPU thread by thread (on_cpu.h), against plain sums over windows of the same numbers."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist import models
from shortlist.training import fleet_conv_cuda
from shortlist.training.fleet_conv import ConvShape
from shortlist.training.fleet_conv_cuda import CudaTiles
from shortlist.training.fleet_layout import second_shape
from shortlist.training.fleet_resnet_layout import blocks_of

HERE = Path(__file__).parent
KERNELS = Path(fleet_conv_cuda.__file__).parent / "kernels"
CALLS = {
    "conv": """extern "C" void run(int blocks, int runs, void** p, int x, int w, int y, int a, int M) {
        launch(blocks, runs, THREADS, [=] { conv((bf16*)p[0], (bf16*)p[1], (bf16*)p[2], (float*)p[3], (bf16*)p[4],
            (bf16*)p[5], (float*)p[6], x, w, y, a, M); }); }""",
    "conv_weight": """extern "C" void run(int blocks, int runs, void** p, int x, int d, int M) {
        launch(blocks, runs, THREADS, [=] { conv_weight((bf16*)p[0], (bf16*)p[1], (float*)p[2], x, d, M); }); }""",
}
R, B = 2, 3
SHAPES = {  # places, stride, height, width, inputs, outputs, rows, columns; block sizes of both kernels
    "stem": (ConvShape(3, 1, 8, 8, 8, 16, 128, 16), CudaTiles(2, 2), CudaTiles(2, 5, 32)),
    "16 channels": (ConvShape(3, 1, 8, 8, 16, 16, 192, 16), CudaTiles(2, 2), CudaTiles(3, 9, 64)),
    "stride 2": (ConvShape(3, 2, 6, 6, 16, 32, 192, 32), CudaTiles(2, 2), CudaTiles(6, 3, 32)),
    "32 channels": (ConvShape(3, 1, 5, 7, 32, 32, 320, 32), CudaTiles(2, 1), CudaTiles(6, 6, 32)),
    "64 channels": (ConvShape(3, 1, 4, 4, 64, 64, 576, 64), CudaTiles(1, 2), CudaTiles(12, 3, 16)),
    "LeNet": (ConvShape(5, 1, 6, 6, 24, 56, 640, 64), CudaTiles(2, 2), CudaTiles(10, 4, 48)),
    "LeNet turned": (ConvShape(5, 1, 6, 6, 56, 24, 1408, 32), CudaTiles(2, 2), CudaTiles(6, 15, 48)),
}


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("g++")
    if found is None:
        pytest.skip("g++ is not there to compile the kernels for the CPU")
    return found


def launch(
    compiler: str, folder: Path, entry: str, constants: dict[str, int], blocks: int, tensors: list[Tensor], *ints: int
) -> None:
    text = '#include "on_cpu.h"\n' + (KERNELS / "conv.cu").read_text() + CALLS[entry]
    (folder / "kernel.cpp").write_text(text)
    defines = [f"-D{key}={value}" for key, value in constants.items()]
    library = folder / "kernel.so"
    command = [compiler, "-O1", "-std=c++17", "-shared", "-fPIC", "-w", f"-I{HERE}", *defines]
    subprocess.run([*command, str(folder / "kernel.cpp"), "-o", str(library)], check=True)
    pointers = (ctypes.c_void_p * len(tensors))(*(t.data_ptr() for t in tensors))
    ctypes.CDLL(str(library)).run(blocks, R, pointers, *ints)


def halo(shape: ConvShape, channels: int) -> Tensor:
    """Maps as a convolution reads them: numbers inside, zeros around."""
    pad = shape.places // 2
    inside = torch.randn(R, B, shape.height * shape.stride, shape.width * shape.stride, channels).bfloat16()
    return F.pad(inside, (0, 0, pad, pad, pad, pad)).contiguous()


def windows(x: Tensor, shape: ConvShape) -> Tensor:
    """(R, B, H, W, places x inputs) of maps with a halo, in double."""
    parts = x.double().unfold(2, shape.places, shape.stride).unfold(3, shape.places, shape.stride)
    parts = parts[:, :, : shape.height, : shape.width]  # (R, B, H, W, inputs, places, places)
    return parts.flatten(5).transpose(4, 5).flatten(4)


def close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    error = (ours.double() - theirs.double()).norm() / theirs.double().norm()
    assert float(error) < tolerance


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("mode", ["plain", "statistics", "made again", "added, seen"])
def test_convolution(name: str, mode: str, compiler: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape, of, _ = SHAPES[name]
    x = halo(shape, shape.inputs)
    w = torch.randn(R, shape.rows, shape.columns).bfloat16()  # padding is not zero here: it must not be used
    y = torch.randn(R, B, shape.height, shape.width, shape.outputs).bfloat16()
    before = torch.randn(R, B, shape.height, shape.width, shape.outputs).bfloat16()
    norm = torch.randn(R, 4, shape.outputs)
    act = F.pad(torch.relu(torch.randn(R, B, shape.height, shape.width, shape.outputs)), (0, 0, 1, 1, 1, 1)).bfloat16()
    mask = {"made again": 2, "added, seen": 1}.get(mode, 0)
    sums, add = {"plain": 0, "statistics": 1}.get(mode, 2), mode == "added, seen"

    real = w[:, : shape.real_rows, : shape.outputs].double()
    want = torch.einsum("rbhwk,rkn->rbhwn", windows(x, shape), real) + (y.double() if add else 0)
    scale, shift, mean, rstd = (norm[:, i, None, None, None].double() for i in range(4))
    if mask == 1:
        want = want * (act[:, :, 1:-1, 1:-1] > 0)
    if mask == 2:
        want = want * (before.double() * scale + shift > 0)

    blocks = 2
    found = torch.full((R, blocks, 2, shape.columns), 7.0)
    constants = fleet_conv_cuda.conv_constants(shape, of, sums, add, mask)
    ints = (x.stride(0), w.stride(0), y.stride(0), act.stride(0), B * shape.height * shape.width)
    launch(compiler, tmp_path, "conv", constants, blocks, [x, w, y, found, before, act, norm], *ints)

    close(y, want, 3e-3)  # bf16 keeps 8 bits
    got = found[..., : shape.outputs].double().sum(1)
    second = y.double() ** 2 if sums == 1 else y.double() * (before.double() - mean) * rstd
    if sums:
        close(got[:, 0], y.double().sum((1, 2, 3)), 1e-5)
        close(got[:, 1], second.sum((1, 2, 3)), 1e-5)
    untouched = found[..., shape.outputs :] if sums else found
    assert (untouched == 7).all()


@pytest.mark.parametrize("name", SHAPES)
def test_weight_gradient(name: str, compiler: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape, _, of = SHAPES[name]
    x, d = halo(shape, shape.inputs), halo(shape, shape.outputs)
    blocks = 2
    parts = torch.zeros(R, blocks, shape.rows, shape.columns)
    constants = fleet_conv_cuda.weight_constants(shape, of)
    assert of.warps % constants["ACROSS"] == 0
    M = B * shape.height * shape.width
    launch(compiler, tmp_path, "conv_weight", constants, blocks, [x, d, parts], x.stride(0), d.stride(0), M)

    pad, step = shape.places // 2, shape.stride
    by_pixel = d[:, :, pad : pad + shape.height * step : step, pad : pad + shape.width * step : step].double()
    want = torch.einsum("rbhwk,rbhwn->rkn", windows(x, shape), by_pixel)
    close(parts.sum(1)[:, : shape.real_rows, : shape.outputs], want, 1e-5)
    assert (parts[:, :, shape.real_rows :] == 0).all()
    assert (parts[..., shape.outputs :] == 0).all()


def test_block_sizes_fit() -> None:
    """All convolutions of the two networks, turned ones too, have block sizes, which fit a Hopper's shared memory."""
    limit = 232448
    stem, blocks = blocks_of(models.build("resnet32", (3, 32, 32), 10, seed=0).state_dict(), 32)
    convs = [stem, *(conv for block in blocks for conv in (block.first, block.second))]
    for shape in [second_shape(14, 14), *(conv.shape for conv in convs)]:
        assert all(memory is not None and memory <= limit for memory in fleet_conv_cuda.shared_memory(shape))
        of = fleet_conv_cuda.WEIGHT_TILES[shape.places, shape.inputs, shape.outputs]
        assert of.warps % fleet_conv_cuda.weight_constants(shape, of)["ACROSS"] == 0

"""The LeNet's CUDA kernels, run on the CPU thread by thread (on_cpu.h), against plain loops over the same numbers."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.training.fleet.conv.conv import round_up
from shortlist.training.fleet.lenet import by_cuda as fleet_lenet_cuda
from shortlist.training.fleet.lenet.by_cuda import LayerTiles
from shortlist.training.fleet.lenet.layout import C1_PAD, C2, C2_PAD, K1, MOMENTS, N1, N2, TAPS

from .checked import unless_checked
from .cuda_on_cpu import COMPILER, compiled

pytestmark = [
    unless_checked,
    pytest.mark.skipif(COMPILER is None, reason="g++ is not there to compile the kernels for the CPU"),
]

R, ITEMS = 2, 9
SIZES = {"digits": (4, 4, 6), "wide": (2, 6, 5), "Fashion": (14, 14, 5)}
"""Height and width of the first pooled map, and a batch that is not a multiple of the images taken at a time."""
TILES = {"as on a GPU": None, "few warps": LayerTiles(2, 1)}


def launch(entry: str, constants: dict[str, int], shared: int, tensors: list[Tensor], *ints: int) -> None:
    compiled("lenet.cu", entry, constants, constants["WARPS"] * 32, shared)((2, R), *tensors, *ints)


def guarded(*shape: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """A tensor of sevens and the sevens behind it, which nobody may touch."""
    size = torch.Size(shape).numel()
    whole = torch.full((size + 64,), 7, dtype=dtype)
    return whole[:size].view(shape), whole[size:]


def close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    error = (ours.double() - theirs.double()).norm() / theirs.double().norm()
    assert float(error) < tolerance


def batch(H: int, W: int, B: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images with a halo, one of them empty, the batches, and all their windows (R, B, 2H, 2W, places) in double."""
    images = F.pad(torch.randn(ITEMS, 2 * H, 2 * W), (2,) * 4).bfloat16().contiguous()
    images[3] = 0
    index = torch.stack([torch.randperm(ITEMS)[:B] for _ in range(R)])
    index[:, 0] = 3
    return images, index, images.double().unfold(1, 5, 1).unfold(2, 5, 1).flatten(3)[index]


def corner(x: Tensor, q: int) -> Tensor:
    """Corner q of all pooled places of a map (R, B, 2H, 2W, ...)."""
    return x[:, :, q // 2 :: 2, q % 2 :: 2]


def pooled(z: Tensor) -> tuple[Tensor, Tensor]:
    """ReLU and 2 x 2 max pool, and the corner that won, the first of equals; 4 where none is above zero."""
    best = torch.zeros_like(corner(z, 0))
    code = torch.full_like(best, 4)
    for q in range(4):
        higher = corner(z, q) > best
        best, code = torch.where(higher, corner(z, q), best), torch.where(higher, q, code)
    return best, code


def packed(code: Tensor) -> Tensor:
    """Four bits a channel, the even one below."""
    return (code[..., ::2] + 16 * code[..., 1::2]).to(torch.uint8).contiguous()


@pytest.mark.parametrize("train", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("name", SIZES)
def test_first_layer(name: str, tiles: str, train: bool) -> None:
    torch.manual_seed(0)
    H, W, B = SIZES[name]
    images, index, windows = batch(H, W, B)
    w = torch.randn(R, K1, N1).bfloat16()  # padding is not zero here: it must not be used
    h, behind = guarded(R, B, H + 4, W + 4, C1_PAD, dtype=torch.bfloat16)
    code, behind_code = guarded(R, B, H, W, C1_PAD // 2, dtype=torch.uint8)
    of = TILES[tiles] or fleet_lenet_cuda.FIRST
    constants = fleet_lenet_cuda.first_constants(H, W, train, of)
    shared = fleet_lenet_cuda.first_memory(H, W, of)
    launch("first", constants, shared, [images, index, w, h, code], h.stride(0), B)

    weights = w[..., :C1_PAD].double()
    z = torch.einsum("rbhwk,rkn->rbhwn", windows, weights[:, :TAPS]) + weights[:, None, None, None, TAPS]
    want, won = pooled(z)
    close(h[:, :, 2:-2, 2:-2], want, 3e-3)  # bf16 keeps 8 bits
    assert int((h == 7).all(-1).sum()) == R * B * ((H + 4) * (W + 4) - H * W)
    if train:
        assert torch.equal(code, packed(won))
    assert (behind == 7).all()
    assert (behind_code if train else code).eq(7).all()


@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("name", SIZES)
def test_first_layers_weights(name: str, tiles: str) -> None:
    torch.manual_seed(0)
    H, W, B = SIZES[name]
    images, index, windows = batch(H, W, B)
    d = torch.randn(R, B, H, W, C1_PAD).bfloat16()
    code = torch.randint(0, 5, (R, B, H, W, C1_PAD))
    parts, behind = guarded(R, 2, K1, N1, dtype=torch.float32)
    of = TILES[tiles] or fleet_lenet_cuda.FIRST_WEIGHTS
    constants, shared = fleet_lenet_cuda.weights_constants(H, W, of), fleet_lenet_cuda.weights_memory(H, W, of)
    launch("first_weights", constants, shared, [images, index, d, packed(code), parts], B)

    want = torch.zeros(R, TAPS + 1, C1_PAD, dtype=torch.float64)
    for q in range(4):
        slope = torch.where(code == q, d.double(), 0)
        want[:, :TAPS] += torch.einsum("rbhwk,rbhwn->rkn", corner(windows, q), slope)
        want[:, TAPS] += slope.sum((1, 2, 3))
    got = parts.sum(1)[:, : TAPS + 1, :C1_PAD]
    close(got[:, :TAPS], want[:, :TAPS], 1e-5)
    close(got[:, TAPS], want[:, TAPS], 1e-5)
    assert (parts[..., C1_PAD:] == 7).all()
    assert (behind == 7).all()


@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("name", SIZES)
def test_moments(name: str, tiles: str) -> None:
    torch.manual_seed(0)
    H, W, B = SIZES[name]
    images, index, windows = batch(H, W, B)
    parts, behind = guarded(R, 2, MOMENTS, dtype=torch.float32)
    of = TILES[tiles] or fleet_lenet_cuda.MOMENT
    constants, shared = fleet_lenet_cuda.moments_constants(H, W, of), fleet_lenet_cuda.moments_memory(H, W, of)
    launch("moments", constants, shared, [images, index, parts], B)

    found, real = parts.sum(1), TAPS + TAPS * (TAPS + 1) // 2
    row, column = torch.triu_indices(TAPS, TAPS)
    close(found[:, :TAPS], windows.sum((1, 2, 3)), 1e-5)
    products = torch.einsum("rbhwk,rbhwn->rkn", windows, windows)[:, row, column]
    close(found[:, TAPS:real], products, 1e-5)
    assert (parts[..., real:] == 7).all()
    assert (behind == 7).all()


@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize(("H", "W", "B"), [(2, 2, 6), (1, 3, 5), (7, 7, 3)])
def test_pool_back(H: int, W: int, B: int, tiles: str) -> None:
    torch.manual_seed(0)
    y = (torch.randn(R, B, 2 * H, 2 * W, C2_PAD) * 2).round().bfloat16()  # often equal: the first must win
    norm, means = torch.randn(R, 4, N2), torch.randn(R, 2, N2)
    row = round_up(H * W * C2, 8)
    d = torch.randn(R, B, row).bfloat16()  # what is behind the last place must not be used
    out, behind = guarded(R, B, 2 * H + 4, 2 * W + 4, C2_PAD, dtype=torch.bfloat16)
    constants = fleet_lenet_cuda.pool_constants(H, W, TILES[tiles] or fleet_lenet_cuda.POOL_BACK)
    strides = (y.stride(0), d.stride(0), d.stride(1), out.stride(0), B * H * W)
    launch("pool_back", constants, 0, [y, norm, means, d, out], *strides)

    scale, shift, mean, rstd = (norm[:, i, None, None, None, :C2_PAD].double() for i in range(4))
    first, second = (means[:, i, None, None, None, :C2_PAD].double() for i in range(2))
    _, won = pooled((y.float() * scale.float() + shift.float()).double())
    slope = F.pad(d[..., : H * W * C2].view(R, B, H, W, C2), (0, C2_PAD - C2)).double()
    for q in range(4):
        normal = (corner(y, q).double() - mean) * rstd
        want = scale * (torch.where(won == q, slope, 0) - first - normal * second)
        close(corner(out[:, :, 2:-2, 2:-2], q), want, 3e-3)
    halo = out.clone()
    halo[:, :, 2:-2, 2:-2] = 7
    assert (halo == 7).all()
    assert (behind == 7).all()


def test_shared_memory_fits() -> None:
    """As many blocks as the registers are meant for find room on a Hopper, with 1 KB each for the system."""
    for memory, of in (
        (fleet_lenet_cuda.first_memory(14, 14), fleet_lenet_cuda.FIRST),
        (fleet_lenet_cuda.weights_memory(14, 14), fleet_lenet_cuda.FIRST_WEIGHTS),
        (fleet_lenet_cuda.moments_memory(14, 14), fleet_lenet_cuda.MOMENT),
    ):
        assert of.blocks * (memory + 1024) <= 228 * 1024

"""How the LeNet fleet lays out images and parameters (`kernels` says why), and the block sizes of its kernels."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.training.fleet.conv.conv import ConvShape, round_up

C1, C1_PAD, N1 = 20, 24, 32
C2, C2_PAD, N2 = 50, 56, 64
HIDDEN, HIDDEN_PAD = 500, 512
PLACES, HALO = 5, 2
TAPS = PLACES * PLACES
K1 = 32  # the 25 places of conv1's window, its bias in row 25
MOMENTS = 352
"""The sums of the 25 places of a window and of their 325 products, and padding."""
BLOCK_K = 128
ROWS2 = 640
"""Rows of conv2's weight matrix: 25 places of 24 channels, filled up to whole blocks."""
ROWS2_BACK = 1408
"""The same of its turned window: 25 places of 56 channels."""


@dataclass(frozen=True)
class Tiles:
    """Block sizes of the Triton kernels, as found on an H200; those of conv2 serve where `CudaConv` does not.

    So do those of the first layer, the moments and the pool's way back, where `CudaLayers` does not.
    """

    conv: tuple[int, int, int, int] = (128, 32, 4, 1)
    """BLOCK_M, BLOCK_K, warps, stages of the forward convolution."""
    conv_back: tuple[int, int, int, int] = (256, 64, 8, 1)
    weights: tuple[int, int, int, int] = (64, 8, 4, 1)
    """BLOCK_M, splits, warps, stages of the gradient by conv2's weights."""
    first: tuple[int, int] = (64, 4)
    """BLOCK_M, warps."""
    first_weights: tuple[int, int, int] = (32, 32, 1)
    """BLOCK_M, splits, warps."""
    moments: tuple[int, int, int] = (64, 32, 2)
    pool: tuple[int, int] = (32, 4)
    pool_sums: tuple[int, int] = (128, 8)


FLOAT_TILES = Tiles(conv=(64, 64, 4, 1), conv_back=(64, 64, 4, 1), weights=(32, 8, 4, 1))
"""For checks in float32, whose tiles are twice as large."""


def second_shape(H: int, W: int) -> ConvShape:
    """conv2 on maps of H x W."""
    return ConvShape(PLACES, 1, H, W, C1_PAD, C2_PAD, ROWS2, N2)


def small_slots(num_logits: int) -> tuple[dict[str, tuple[int, tuple[int, ...]]], int]:
    """Where each parameter but fc1's weight lies in the small vector, and how long that is."""
    shapes: dict[str, tuple[int, ...]] = {
        "w1": (C1, TAPS),
        "b1": (C1,),
        "gamma1": (C1,),
        "beta1": (C1,),
        "w2": (ROWS2, N2),
        "b2": (N2,),
        "gamma2": (N2,),
        "beta2": (N2,),
        "b3": (HIDDEN_PAD,),
        "gamma3": (HIDDEN_PAD,),
        "beta3": (HIDDEN_PAD,),
        "w4": (HIDDEN_PAD, num_logits),
        "b4": (num_logits,),
    }
    slots, size = {}, 0
    for name, shape in shapes.items():
        slots[name] = (size, shape)
        size += round_up(torch.Size(shape).numel(), 8)
    return slots, size


def turned_places(slots: Mapping[str, tuple[int, tuple[int, ...]]]) -> Tensor:
    """Where each weight of the turned conv2, that of its input gradient, lies in the small vector: (ROWS2_BACK * N1,).

    Row (place, output channel), column input channel; what is padding points at a padded weight, which is zero.
    """
    start = slots["w2"][0]
    zero = start + TAPS * C1_PAD * N2
    at = torch.full((ROWS2_BACK, N1), zero)
    place = (start + torch.arange(TAPS * C1_PAD * N2)).view(TAPS, C1_PAD, N2).flip(0).transpose(1, 2)
    at[: TAPS * C2_PAD].view(TAPS, C2_PAD, N1)[..., :C1_PAD] = place[:, :C2_PAD]
    return at.reshape(-1)


def with_halo(images: Tensor, dtype: torch.dtype) -> Tensor:
    """(N, 1, H, W) -> (N, H + 4, W + 4) with zeros around, in the kernels' dtype."""
    return F.pad(images.squeeze(1), (HALO,) * 4).to(dtype).contiguous()


def image_moments(images: Tensor) -> Tensor:
    """(N, MOMENTS) for each image the sums over its windows."""
    row, column = torch.triu_indices(TAPS, TAPS, device=images.device)
    parts = []
    for part in torch.split(images, 1000):
        windows = F.unfold(part, PLACES, padding=HALO)  # (n, 25, H W)
        products = (windows @ windows.transpose(1, 2))[:, row, column]
        parts.append(F.pad(torch.cat([windows.sum(-1), products], 1), (0, MOMENTS - TAPS - len(row))))
    return torch.cat(parts)


def moment_places(device: torch.device) -> Tensor:
    """(K1, K1) where `image_moments` keeps the product of two places; -1 in the padding."""
    places = torch.full((K1, K1), -1, dtype=torch.int32)
    row, column = torch.triu_indices(TAPS, TAPS)
    at = TAPS + torch.arange(len(row), dtype=torch.int32)
    places[row, column] = at
    places[column, row] = at
    return places.to(device)


def from_state(state: Mapping[str, Tensor], H: int, W: int) -> dict[str, Tensor]:
    """The parameters of `models.lenet` in the kernels' layout, without padding."""
    return {
        "w1": state["0.weight"].reshape(C1, TAPS),
        "b1": state["0.bias"],
        "gamma1": state["1.weight"],
        "beta1": state["1.bias"],
        "m1": state["1.running_mean"],
        "v1": state["1.running_var"],
        "w2": state["4.weight"].reshape(C2, C1, TAPS).permute(2, 1, 0),
        "b2": state["4.bias"],
        "gamma2": state["5.weight"],
        "beta2": state["5.bias"],
        "m2": state["5.running_mean"],
        "v2": state["5.running_var"],
        "w3": state["9.weight"].reshape(HIDDEN, C2, H * W).permute(2, 1, 0).reshape(H * W * C2, HIDDEN),
        "b3": state["9.bias"],
        "gamma3": state["10.weight"],
        "beta3": state["10.bias"],
        "m3": state["10.running_mean"],
        "v3": state["10.running_var"],
        "w4": state["12.weight"].t(),
        "b4": state["12.bias"],
    }


def to_state(v: Mapping[str, Tensor], H: int, W: int, K: int) -> dict[str, Tensor]:
    """Undo `from_state`, cutting the padding off."""
    w3 = v["w3"][: H * W * C2, :HIDDEN].reshape(H * W, C2, HIDDEN).permute(2, 1, 0)
    counted = torch.zeros((), dtype=torch.int64)  # torch does not use it where batch norm has a momentum
    return {
        "1.num_batches_tracked": counted,
        "5.num_batches_tracked": counted.clone(),
        "10.num_batches_tracked": counted.clone(),
        "0.weight": v["w1"].reshape(C1, 1, PLACES, PLACES),
        "0.bias": v["b1"],
        "1.weight": v["gamma1"],
        "1.bias": v["beta1"],
        "1.running_mean": v["m1"],
        "1.running_var": v["v1"],
        "4.weight": v["w2"][:, :C1, :C2].permute(2, 1, 0).reshape(C2, C1, PLACES, PLACES),
        "4.bias": v["b2"][:C2],
        "5.weight": v["gamma2"][:C2],
        "5.bias": v["beta2"][:C2],
        "5.running_mean": v["m2"][:C2],
        "5.running_var": v["v2"][:C2],
        "9.weight": w3.reshape(HIDDEN, C2 * H * W),
        "9.bias": v["b3"][:HIDDEN],
        "10.weight": v["gamma3"][:HIDDEN],
        "10.bias": v["beta3"][:HIDDEN],
        "10.running_mean": v["m3"][:HIDDEN],
        "10.running_var": v["v3"][:HIDDEN],
        "12.weight": v["w4"].t()[:K, :HIDDEN],
        "12.bias": v["b4"][:K],
    }

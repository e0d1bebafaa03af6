"""The LeNet fleet's first layer, moments and second pool by `kernels/lenet.cu`: block sizes, and the work of blocks."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.training.fleet.conv.by_cuda import blocks_of_run
from shortlist.training.fleet.conv.conv import Scratch, round_up
from shortlist.training.fleet.lenet.layout import C1_PAD, C2, C2_PAD, K1, MOMENTS, N1, N2

IMAGES = 4
"""How many images the first layer has in shared memory at a time."""


@dataclass(frozen=True)
class LayerTiles:
    """Warps of a block, and how many blocks a multiprocessor should have room for (for their registers)."""

    warps: int
    blocks: int


# 20 warps leave a thread 96 registers, 24 leave it 80: as many as nvcc says that these kernels want
FIRST, FIRST_WEIGHTS, MOMENT, POOL_BACK = LayerTiles(4, 5), LayerTiles(8, 3), LayerTiles(8, 3), LayerTiles(4, 5)


@dataclass(frozen=True)
class CudaLayers:
    """By `kernels/lenet.cu`, for maps of height x width after the second pool."""

    scratch: Scratch
    height: int
    width: int

    @staticmethod
    def suits(device: torch.device, dtype: torch.dtype, height: int, width: int) -> bool:
        """Whether the device has the instructions, and room for as many images."""
        if device.type != "cuda" or dtype != torch.bfloat16 or torch.cuda.get_device_capability(device) < (8, 0):
            return False
        limit = getattr(torch.cuda.get_device_properties(device), "shared_memory_per_block_optin", 0)
        return max(first_memory(2 * height, 2 * width), weights_memory(2 * height, 2 * width)) <= limit

    def first(self, images: Tensor, index: Tensor, weights: Tensor, h1: Tensor, *, train: bool) -> None:
        """h1 (R, B, H + 4, W + 4, C) from images with a halo; for `first_weights`, the pool's winners are kept."""
        from shortlist.training.fleet.kernels.nvrtc import compiled

        H, W = 2 * self.height, 2 * self.width
        constants, shared = first_constants(H, W, train), first_memory(H, W)
        kernel = compiled("lenet.cu", "first", constants, FIRST.warps * 32, shared)
        runs, B = index.shape
        blocks = blocks_of_run(-(-B // IMAGES), runs, kernel.blocks_at_once)
        code = self._code(runs, B) if train else h1
        kernel((blocks, runs), images, index, weights, h1, code, h1.stride(0), B)

    def _code(self, runs: int, B: int) -> Tensor:
        return self.scratch("code", runs, B, 4 * self.height * self.width, C1_PAD // 2, dtype=torch.uint8)

    def first_weights(self, images: Tensor, index: Tensor, dh1: Tensor) -> Tensor:
        """Parts (R, blocks, K1, N1) of the gradient by the folded weights."""
        from shortlist.training.fleet.kernels.nvrtc import compiled

        H, W = 2 * self.height, 2 * self.width
        constants, shared = weights_constants(H, W), weights_memory(H, W)
        kernel = compiled("lenet.cu", "first_weights", constants, FIRST_WEIGHTS.warps * 32, shared)
        runs, B = index.shape
        blocks = blocks_of_run(-(-B // IMAGES), runs, kernel.blocks_at_once)
        parts = self.scratch("w1_parts", runs, blocks, K1, N1, dtype=torch.float32)
        kernel((blocks, runs), images, index, dh1, self._code(runs, B), parts, B)
        return parts

    def moments(self, images: Tensor, index: Tensor) -> Tensor:
        """Parts (R, blocks, MOMENTS) of the moments of all windows of images with a halo."""
        from shortlist.training.fleet.kernels.nvrtc import compiled

        H, W = 2 * self.height, 2 * self.width
        kernel = compiled("lenet.cu", "moments", moments_constants(H, W), MOMENT.warps * 32, moments_memory(H, W))
        runs, B = index.shape
        blocks = blocks_of_run(-(-B // IMAGES), runs, kernel.blocks_at_once)
        parts = self.scratch("moment_parts", runs, blocks, MOMENTS, dtype=torch.float32)
        kernel((blocks, runs), images, index, parts, B)
        return parts

    def pool_back(self, y2: Tensor, norm: Tensor, means: Tensor, dh2: Tensor, dy2: Tensor) -> None:
        """dy2 with a halo, from the gradient by the pooled map and the means that batch norm's way back needs."""
        from shortlist.training.fleet.kernels.nvrtc import compiled

        constants = pool_constants(self.height, self.width)
        kernel = compiled("lenet.cu", "pool_back", constants, POOL_BACK.warps * 32, 0)
        runs, M = len(y2), y2.shape[1] * self.height * self.width
        at_once = POOL_BACK.warps * 32 // (C2_PAD // 8)
        blocks = blocks_of_run(-(-M // at_once), runs, kernel.blocks_at_once)
        kernel(
            (blocks, runs),
            y2, norm, means, dh2, dy2, y2.stride(0), dh2.stride(0), dh2.stride(1), dy2.stride(0), M,
        )  # fmt: skip


def _constants(H: int, W: int, of: LayerTiles) -> dict[str, int]:
    return {"H": H, "W": W, "WARPS": of.warps, "BLOCKS": of.blocks}


def first_constants(H: int, W: int, train: bool, of: LayerTiles = FIRST) -> dict[str, int]:
    """What `first` is compiled with; H, W are those of its pooled map."""
    return {**_constants(H, W, of), "IMAGES": IMAGES, "CODE": int(train)}


def weights_constants(H: int, W: int, of: LayerTiles = FIRST_WEIGHTS) -> dict[str, int]:
    """What `first_weights` is compiled with."""
    return {**_constants(H, W, of), "IMAGES": IMAGES, "BY_WEIGHTS": 1}


def moments_constants(H: int, W: int, of: LayerTiles = MOMENT) -> dict[str, int]:
    """What `moments` is compiled with."""
    return {**_constants(H, W, of), "IMAGES": IMAGES, "WIDTH": MOMENTS}


def pool_constants(H: int, W: int, of: LayerTiles = POOL_BACK) -> dict[str, int]:
    """What `pool_back` is compiled with."""
    return {**_constants(H, W, of), "CHANNELS": C2_PAD, "REAL": C2, "WN": N2}


def _images_memory(H: int, W: int) -> int:
    words = IMAGES * (W + 2) * (2 * H + 4)
    return 4 * round_up(round_up(words, 32) + 8 + words, 4)


def first_memory(H: int, W: int, of: LayerTiles = FIRST) -> int:
    """Bytes of shared memory of a block of `first`: images twice, and 16 places of results and winners by warp."""
    return _images_memory(H, W) + of.warps * 16 * (C1_PAD * 2 + C1_PAD // 2)


def weights_memory(H: int, W: int, of: LayerTiles = FIRST_WEIGHTS) -> int:
    """Bytes of shared memory of a block of `first_weights`: images twice, slopes and winners; its sums in the end."""
    return max(_images_memory(H, W) + IMAGES * H * W * (C1_PAD * 2 + C1_PAD // 2), of.warps * 24 * 32 * 4)


def moments_memory(H: int, W: int, of: LayerTiles = MOMENT) -> int:
    """Bytes of shared memory of a block of `moments`: images twice; its sums in the end."""
    return max(_images_memory(H, W), of.warps * 24 * 32 * 4)

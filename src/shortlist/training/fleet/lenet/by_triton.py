"""What `by_cuda` does, by the Triton kernels: for float32, other GPUs and the interpreter."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.training.fleet.conv.conv import Scratch
from shortlist.training.fleet.lenet.layout import C1_PAD, C2, C2_PAD, K1, MOMENTS, N1, N2, Tiles


@dataclass(frozen=True)
class TritonLayers:
    """For maps of height x width after the second pool."""

    scratch: Scratch
    height: int
    width: int
    tiles: Tiles
    moment_places: Tensor

    def first(self, images: Tensor, index: Tensor, weights: Tensor, h1: Tensor, *, train: bool) -> None:
        """h1 (R, B, H + 4, W + 4, C) from images with a halo; for `first_weights`, the pool's winners are kept."""
        from shortlist.training.fleet.kernels.lenet import first_kernel

        (runs, B), H, W = index.shape, 2 * self.height, 2 * self.width
        code = self._code(runs, B) if train else h1
        M = B * H * W
        block, warps = self.tiles.first
        first_kernel[(-(-M // block), runs)](
            images, index, weights, h1, code, h1.stride(0), B, M,
            H=H, W=W, C=C1_PAD, N=N1, K=K1, BLOCK_M=block, CODE=train, num_warps=warps,
        )  # fmt: skip

    def _code(self, runs: int, B: int) -> Tensor:
        return self.scratch("code", runs, B, 2 * self.height, 2 * self.width, C1_PAD, dtype=torch.uint8)

    def first_weights(self, images: Tensor, index: Tensor, dh1: Tensor) -> Tensor:
        """Parts (R, splits, K1, N1) of the gradient by the folded weights."""
        from shortlist.training.fleet.kernels.lenet import first_weight_kernel

        block, splits, warps = self.tiles.first_weights
        (runs, B), H, W = index.shape, 2 * self.height, 2 * self.width
        parts = self.scratch("w1_parts", runs, splits, K1, N1, dtype=torch.float32)
        first_weight_kernel[(splits, runs)](
            images, index, dh1, self._code(runs, B), parts, B, B * H * W,
            H=H, W=W, C=C1_PAD, N=N1, K=K1, BLOCK_M=block, SPLITS=splits, STEPS=-(-B * H * W // (block * splits)),
            num_warps=warps,
        )  # fmt: skip
        return parts

    def moments(self, images: Tensor, index: Tensor) -> Tensor:
        """Parts (R, splits, MOMENTS) of the moments of all windows of images with a halo."""
        from shortlist.training.fleet.kernels.lenet_augment import window_moments_kernel

        block, splits, warps = self.tiles.moments
        (runs, B), H, W = index.shape, 4 * self.height, 4 * self.width
        parts = self.scratch("moment_parts", runs, splits, MOMENTS, dtype=torch.float32)
        window_moments_kernel[(splits, runs)](
            images, index, self.moment_places, parts, B, MOMENTS,
            H=H, W=W, K=K1, BLOCK_M=block, SPLITS=splits, STEPS=-(-B * H * W // (block * splits)), num_warps=warps,
        )  # fmt: skip
        return parts

    def pool_back(self, y2: Tensor, norm: Tensor, means: Tensor, dh2: Tensor, dy2: Tensor) -> None:
        """dy2 with a halo, from the gradient by the pooled map and the means that batch norm's way back needs."""
        from shortlist.training.fleet.kernels.lenet import pool_back_kernel

        M = y2.shape[1] * self.height * self.width
        block, warps = self.tiles.pool
        pool_back_kernel[(-(-M // block), len(y2))](
            y2, norm, means, dh2, dy2, y2.stride(0), dh2.stride(0), dy2.stride(0), M,
            H=self.height, W=self.width, C=C2_PAD, N=N2, CO=C2, BLOCK_M=block, ROW=dh2.shape[2], num_warps=warps,
        )  # fmt: skip

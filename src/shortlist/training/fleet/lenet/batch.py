"""A batch as the LeNet fleet's first layer sees it: its images, where they lie or moved, and their moments."""

import torch
from torch import Tensor

from shortlist.training.augment import PADDING
from shortlist.training.fleet.conv.conv import Scratch
from shortlist.training.fleet.lenet.layout import HALO, MOMENTS


def moved_images(
    images: Tensor, index: Tensor, moves: Tensor, greys: Tensor, black: Tensor, scratch: Scratch
) -> tuple[Tensor, Tensor]:
    """Copies (R B, H + 4, W + 4) of the images at `index` (R, B), moved by `moves` (R, B, 3), and where each now lies.

    `black` (R,) is what the padding becomes, which is there before images are normalised. Moves with more columns also
    change images, as `views.change_images` does it; `greys` (N,) are their means.
    """
    from shortlist.training.fleet.kernels.lenet_augment import move_kernel

    (runs, B), (height, width) = index.shape, images.shape[1:]
    H, W = height - 2 * HALO, width - 2 * HALO
    moved = scratch("moved", runs * B, height, width)
    move_kernel[(-(-B * H * W // 512), runs)](
        images, index, moves.contiguous(), greys, black, moved, B,
        H=H, W=W, HALO=HALO, MOVES=moves.shape[-1], PADDING=PADDING, BLOCK_M=512,
    )  # fmt: skip
    return moved, torch.arange(runs * B, device=index.device).view(runs, B)


def resident_moments(index: Tensor, moments: Tensor, scratch: Scratch) -> Tensor:
    """(R, MOMENTS) the sums over the batches at `index` (R, B) of moments (N, MOMENTS) made once for all epochs."""
    from shortlist.training.fleet.kernels.lenet import moments_kernel

    runs, B = index.shape
    sums = scratch("moments", runs, MOMENTS, dtype=torch.float32)
    moments_kernel[(-(-MOMENTS // 32), runs)](
        index, moments, sums, B, MOMENTS, BLOCK_B=256, COLUMNS=32, STEPS=-(-B // 256), num_warps=8
    )
    return sums

"""Augmentation on the device that keeps the class: random crops, and flips if the dataset allows them."""

import torch
import torch.nn.functional as F
from torch import Tensor

PADDING = 4
STAY = (PADDING, PADDING, 0)
"""The move that leaves an image as it is."""


def draw_moves(count: int, flips: bool, generator: torch.Generator, side: int = 7 * PADDING) -> Tensor:
    """(count, 3) uint8: crop offsets down and right in 0..8, and whether to flip.

    Images whose shorter `side` is below 28 pixels move by a seventh of it, not by 4: a digit of 8 would be cut in two.
    """
    most = min(PADDING, max(1, side // 7))
    moves = torch.randint(0, 2 * most + 1, (count, 3), generator=generator, dtype=torch.uint8) + (PADDING - most)
    moves[:, 2] = torch.randint(0, 2, (count,), generator=generator, dtype=torch.uint8) if flips else 0
    return moves


def move_images(x: Tensor, moves: Tensor) -> Tensor:
    """Pad (B, C, H, W) images with 4 zeros on each side, crop each at its offsets, and flip those marked so."""
    B, C, H, W = x.shape
    padded = F.pad(x, (PADDING,) * 4)
    down, right, flip = moves.long().unbind(-1)
    rows = torch.arange(H, device=x.device) + down[:, None]
    columns = torch.arange(W, device=x.device).expand(B, W)
    columns = torch.where(flip[:, None] == 1, W - 1 - columns, columns) + right[:, None]
    batch = torch.arange(B, device=x.device)[:, None, None, None]
    channel = torch.arange(C, device=x.device)[None, :, None, None]
    return padded[batch, channel, rows[:, None, :, None], columns[:, None, None, :]]

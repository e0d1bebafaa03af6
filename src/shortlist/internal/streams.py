"""Streams of random numbers: one seed decides a run, and each purpose has its own stream."""

from typing import TYPE_CHECKING

import numpy as np

from shortlist.errors import InputError

if TYPE_CHECKING:  # drawing shortlists needs no torch
    import torch


def stream_seed(seed: int, *purpose: str | int) -> int:
    """A seed for one purpose, independent of those for other purposes.

    >>> stream_seed(0, "shuffle", 3) == stream_seed(0, "shuffle", 3) != stream_seed(0, "weights")
    True
    """
    if seed < 0:
        raise InputError(f"seed: expected at least 0, got {seed}")
    words = [part if isinstance(part, int) else int.from_bytes(part.encode(), "little") for part in purpose]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def generator(seed: int, *purpose: str | int) -> "torch.Generator":
    """A generator for one purpose, always on the CPU, so that a run on a GPU draws the same numbers."""
    import torch

    return torch.Generator().manual_seed(stream_seed(seed, *purpose))

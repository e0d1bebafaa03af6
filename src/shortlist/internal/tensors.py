"""What losses, risks, methods and training do to tensors alike: precision, and sums over processes."""

from collections.abc import Callable

from shortlist.internal.extras import named_extra

with named_extra():
    import torch
    from torch import Tensor

AllSum = Callable[[Tensor], Tensor]
"""Adds sums over a batch up over the processes that share it."""


def single_process(sums: Tensor) -> Tensor:
    """The `AllSum` of a single process: the sums as they are."""
    return sums


def at_least_float32(values: Tensor) -> Tensor:
    """The same in float32, or in float64 where it was: sums and squares need the range and the digits."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()

"""What losses, risks, methods and training share: the precision of tensors, and sums over processes."""

from collections.abc import Callable

from shortlist.internal.extras import named_extra

with named_extra():
    import torch
    from torch import Tensor

AllSum = Callable[[Tensor], Tensor]
"""Adds up sums over a batch from all processes that share it."""


def single_process(sums: Tensor) -> Tensor:
    """The `AllSum` of a single process: the sums unchanged."""
    return sums


def at_least_float32(values: Tensor) -> Tensor:
    """The values in float32, unless they are in float64: sums and squares need the range and the digits."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()

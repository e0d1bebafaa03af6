"""One linear layer."""

import math

from torch import nn


def linear(in_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Logits W x + b of the flattened input, with torch's default initialisation.

    >>> linear((16,), 26)
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=16, out_features=26, bias=True)
    )
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(in_shape), num_classes))

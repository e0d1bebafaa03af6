"""A fully connected network."""

import itertools
import math
from collections.abc import Iterable, Sequence

from torch import nn

from shortlist.errors import InputError
from shortlist.internal.arguments import whole


def mlp(in_shape: tuple[int, ...], num_classes: int, hidden: Sequence[int] = (256,)) -> nn.Module:
    """Linear layers with ReLU between them, on the flattened input, with torch's default initialisation.

    There is no BatchNorm, so that an item's logits never depend on the rest of its batch, and training split over
    several processes gives the result of one.

    Args:
        in_shape: (C, H, W) or (D,).
        num_classes: the number of logits.
        hidden: the width of each hidden layer.
    """
    if not isinstance(hidden, Iterable) or isinstance(hidden, str):
        raise InputError(f"mlp: hidden must be a list of widths such as (512, 256), got {hidden!r}")
    widths = [math.prod(in_shape), *(whole("mlp: a hidden width", width) for width in hidden)]
    if min(widths[1:], default=1) < 1:
        raise InputError(f"mlp: hidden widths must be positive, got {tuple(widths[1:])}")
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], num_classes))

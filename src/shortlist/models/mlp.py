"""A fully connected network."""

import itertools
import math
from collections.abc import Iterable, Sequence

from torch import nn

from shortlist.errors import InputError
from shortlist.label_checks import whole


def mlp(in_shape: tuple[int, ...], num_classes: int, hidden: Sequence[int] = (256,)) -> nn.Module:
    """Linear layers with ReLU between, on the flattened input; torch's default initialisation.

    It has no BatchNorm on purpose: an item's logits never depend on the rest of its batch, so training split
    over several processes gives the same result as one.

    Args:
        in_shape: (C, H, W) or (D,).
        num_classes: the number of logits.
        hidden: the width of each hidden layer.
    """
    if not isinstance(hidden, Iterable) or isinstance(hidden, str):
        raise InputError(f"mlp: hidden must be a list of widths such as (512, 256), got {hidden!r}")
    if any(whole("mlp: a hidden width", width) < 1 for width in hidden):
        raise InputError(f"mlp: hidden widths must be positive, got {tuple(hidden)}")
    widths = [math.prod(in_shape), *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], num_classes))

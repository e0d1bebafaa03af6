"""The registry of models. Torch is imported by `build`, not before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from shortlist.errors import InputError, first_line, unknown_name
from shortlist.internal.arguments import whole
from shortlist.internal.extras import named_extra
from shortlist.internal.plugins import own_object

if TYPE_CHECKING:
    from torch import nn

    ModelFunction = Callable[[tuple[int, ...], int], nn.Module]


class ModelRow(NamedTuple):
    """One line of `shortlist models`."""

    name: str
    what: str
    parameters: str


# name -> (where the function is, what it is, its parameters for the usual shape, which a test compares)
_MODELS: dict[str, tuple[str, str, str]] = {
    "linear": (
        "shortlist.models.linear:linear",
        "one linear layer on the flattened input",
        "7,850 (28x28x1, K = 10)",
    ),
    "mlp": (
        "shortlist.models.mlp:mlp",
        "fully connected, ReLU, hidden=(256,), no BatchNorm",
        "203,530 (28x28x1, K = 10)",
    ),
    "lenet": (
        "shortlist.models.lenet:lenet",
        "two convolutional and two fully connected layers with BatchNorm, the paper's for 28x28 images",
        "1,257,220 (28x28x1, K = 10)",
    ),
    "resnet32": (
        "shortlist.models.resnet:resnet32",
        "32-layer ResNet 16/32/64, the paper's for CIFAR10",
        "466,906 (32x32x3, K = 10)",
    ),
}


def names() -> tuple[str, ...]:
    """The names that `build` knows."""
    return tuple(_MODELS)


def describe() -> list[ModelRow]:
    """What each model is and its size, for the command line."""
    return [ModelRow(name, what, parameters) for name, (_, what, parameters) in _MODELS.items()]


def build(
    name: str | ModelFunction | nn.Module,
    in_shape: tuple[int, ...],
    num_classes: int,
    *,
    seed: int | None = None,
    **options: Any,
) -> nn.Module:
    """A fresh model for inputs of `in_shape` and K classes.

    Args:
        name: a name of `names()`; or a function `(in_shape, num_classes) -> nn.Module`, given itself or as
            "package.module:function"; or an `nn.Module`, of which a copy is returned.
        in_shape: (C, H, W) or (D,), without the batch.
        num_classes: K, the number of logits.
        seed: decides the initial weights, which are drawn on the CPU whatever the default device is. Torch's global
            generators are left alone; None uses them.
        options: passed on to the function, such as `hidden=(512, 256)` for the mlp.

    Raises:
        InputError: an unknown name, an input that the model cannot take, or your own model of the wrong shape.
    """
    with named_extra():
        import torch

    shape, num_classes = _checked_shape(in_shape), whole("num_classes", num_classes)
    if num_classes < 2:
        raise InputError(f"a model needs at least 2 classes, got {num_classes}")
    if seed is None:
        return _build(name, shape, num_classes, options)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed every GPU
        return _build(name, shape, num_classes, options)


def _build(
    name: str | ModelFunction | nn.Module, shape: tuple[int, ...], num_classes: int, options: dict[str, Any]
) -> nn.Module:
    import copy

    from torch import nn

    if isinstance(name, nn.Module):
        return _checked_output(copy.deepcopy(name), type(name).__name__, shape, num_classes)
    own = not isinstance(name, str) or name not in _MODELS
    if isinstance(name, str):
        if own and ":" not in name:
            raise unknown_name("model", name, names())
        function, label = own_object("model", name if own else _MODELS[name][0], "function", callable), name
    elif callable(name):
        function, label = name, getattr(name, "__name__", repr(name))
    else:
        raise InputError(f"model {name!r}: expected a name, a function or a torch.nn.Module")
    try:
        model = _call(function, label, shape, num_classes, options)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"model {label!r} failed: {first_line(error)}") from error
    return _checked_output(model, label, shape, num_classes) if own else model


def _call(
    function: Callable[..., nn.Module],
    label: str,
    shape: tuple[int, ...],
    num_classes: int,
    options: dict[str, Any],
) -> nn.Module:
    import inspect

    if options:
        parameters = inspect.signature(function).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        known = list(parameters)[2:]
        for option in options:
            if not known and not takes_any:
                raise InputError(f"model {label} has no options, got {option!r}")
            if option not in known and not takes_any:
                raise unknown_name(f"option of model {label}", option, known)
    return function(shape, num_classes, **options)


def _checked_shape(in_shape: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(in_shape, Iterable):
        raise InputError(f"in_shape must be (D,) or (C, H, W), got {in_shape!r}")
    shape = tuple(int(size) for size in in_shape)
    if len(shape) not in (1, 3) or math.prod(shape) < 1 or min(shape) < 1:
        raise InputError(f"in_shape must be (D,) or (C, H, W) with positive sizes, got {in_shape}")
    return shape


def _checked_output(model: object, label: str, shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Try a user's model on zeros, so that a wrong shape is one line now instead of a traceback in training."""
    import torch
    from torch import nn

    if not isinstance(model, nn.Module):
        raise InputError(f"model {label!r} must give a torch.nn.Module, got {type(model).__name__}")
    first = next(iter(model.parameters()), None)
    zeros = torch.zeros(2, *shape, device=None if first is None else first.device)
    was_training = model.training
    try:
        with torch.no_grad():
            logits = model.eval()(zeros)
    except Exception as error:
        raise InputError(f"model {label!r} cannot take input of shape {(2, *shape)}: {first_line(error)}") from error
    finally:
        model.train(was_training)
    got = tuple(getattr(logits, "shape", ()))
    if got != (2, num_classes):
        raise InputError(f"model {label!r} must give logits of shape (2, {num_classes}) for 2 items, got {got}")
    return model

"""SGD and Adam on one flat vector of parameters.

With one vector an operation is one kernel, not one per tensor. The same functions serve a fleet, whose vectors have a
leading dimension of runs. The arithmetic is that of torch.optim, with weight decay as an L2 term.
"""

import torch
from torch import Tensor, nn

from shortlist.errors import InputError


class FlatParameters:
    """The trainable parameters of a model as one vector `value`, their gradients as another, `grad`.

    The model's own tensors become views of these. Convolution weights are laid out channels last, which is faster on
    every device. `into` gives vectors to use instead of new ones, such as a fleet's rows.
    """

    def __init__(self, model: nn.Module, into: tuple[Tensor, Tensor] | None = None) -> None:
        parameters = [p for p in model.parameters() if p.requires_grad]
        if not parameters:
            raise InputError("the model has no parameters to train")
        if len({(p.dtype, p.device) for p in parameters}) > 1:
            raise InputError("the model's parameters differ in dtype or device, expected one of each")
        first = parameters[0]
        total = sum(p.numel() for p in parameters)
        value = torch.empty(total, dtype=first.dtype, device=first.device)
        self.value, self.grad = (value, torch.zeros_like(value)) if into is None else into
        self._parameters = parameters
        for p, view, slope in zip(parameters, self.views(self.value), self.views(self.grad), strict=True):
            view.copy_(p.detach())
            p.data, p.grad = view, slope

    def views(self, flat: Tensor) -> list[Tensor]:
        """A vector like `value`, cut into tensors shaped like the trainable parameters, in their order."""
        parts = torch.split(flat, [p.numel() for p in self._parameters])
        return [_view_as(part, p) for part, p in zip(parts, self._parameters, strict=True)]


def _view_as(flat: Tensor, like: Tensor) -> Tensor:
    if like.dim() == 4:
        outputs, inputs, height, width = like.shape
        return flat.view(outputs, height, width, inputs).permute(0, 3, 1, 2)
    return flat.view_as(like)


class Momentum:
    """SGD with momentum: v <- mu v + (g + wd p), p <- p - lr v."""

    def __init__(self, value: Tensor, weight_decay: Tensor | float, momentum: float) -> None:
        self.weight_decay, self.momentum = weight_decay, momentum
        self.velocity = torch.zeros_like(value)

    def step(self, value: Tensor, grad: Tensor, lr: Tensor) -> None:
        """Update `value` in place; `lr` broadcasts over it."""
        self.velocity.mul_(self.momentum).add_(grad).add_(value * self.weight_decay)
        value.sub_(self.velocity * lr)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must keep."""
        return {"velocity": self.velocity}


class Adam:
    """Adam with beta = (0.9, 0.999) and weight decay as an L2 term."""

    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, value: Tensor, weight_decay: Tensor | float) -> None:
        self.weight_decay = weight_decay
        self.mean, self.square = torch.zeros_like(value), torch.zeros_like(value)
        # one per run; double, as 1 - 0.999 has lost half its digits in float32
        self.count = torch.zeros_like(value[..., :1], dtype=torch.float64)

    def step(self, value: Tensor, grad: Tensor, lr: Tensor) -> None:
        """Update `value` in place; `lr` broadcasts over it."""
        self.count.add_(1)
        slope = grad + value * self.weight_decay
        self.mean.lerp_(slope, 1 - self.beta1)
        self.square.lerp_(slope * slope, 1 - self.beta2)
        mean = self.mean / (1 - self.beta1**self.count).to(value.dtype)
        root = (self.square / (1 - self.beta2**self.count).to(value.dtype)).sqrt_().add_(self.epsilon)
        value.sub_(lr * mean / root)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must keep."""
        return {"mean": self.mean, "square": self.square, "count": self.count}


def optimiser_of(name: str, value: Tensor, weight_decay: Tensor | float, momentum: float) -> Momentum | Adam:
    """The optimiser a `RunConfig` names."""
    return Adam(value, weight_decay) if name == "adam" else Momentum(value, weight_decay, momentum)

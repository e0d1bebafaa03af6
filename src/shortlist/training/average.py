"""Averaged weights: the network that is scored and saved slowly follows the trained one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


class Average:
    """Moving averages of tensors that training changes: a <- d a + (1 - d) x, with d = min(ema, (1 + t) / (10 + t)).

    t is the number of earlier steps. At first the average reaches back over about a tenth of the steps so far, so the
    random start is soon forgotten. Running statistics of batch norm are averaged like weights: those of the trained
    network describe the activations of its last steps, not those of the averaged weights.

    Args:
        ema: the decay d, () for one run or (R,); 0 follows at once, and if all are 0 nothing is kept.
        tensors: what is averaged, each with the dimensions of `ema` in front.
    """

    def __init__(self, ema: Tensor, tensors: Sequence[Tensor]) -> None:
        self.ema = ema.to(tensors[0].device, torch.float32)
        self.count = torch.zeros_like(self.ema)
        self.values = [tensor.detach().clone() for tensor in tensors] if bool(ema.any()) else []

    @torch.no_grad()
    def step(self, tensors: Sequence[Tensor], moving: Tensor | None = None) -> None:
        """Follow `tensors`; a run that is not `moving` stands still."""
        if not self.values:
            return
        share = 1 - torch.minimum(self.ema, (1 + self.count) / (10 + self.count))
        share = share if moving is None else share * moving
        self.count += 1 if moving is None else moving
        self._move(tensors, share)

    def _move(self, tensors: Sequence[Tensor], share: Tensor) -> None:
        for value, tensor in zip(self.values, tensors, strict=False):
            value.lerp_(tensor, share.view(*share.shape, *[1] * (value.dim() - share.dim())).to(value.dtype))

    @contextmanager
    def shown_in(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """Inside, `tensors` hold the averages; those of a run without any stay as they are."""
        with torch.no_grad():  # a second forward pass may have moved its running statistics since the last step
            self._move(tensors, (self.ema == 0).float())
        self._swap(tensors)
        try:
            yield
        finally:
            self._swap(tensors)

    @torch.no_grad()
    def _swap(self, tensors: Sequence[Tensor]) -> None:
        for value, tensor in zip(self.values, tensors, strict=False):
            held = tensor.clone()
            tensor.copy_(value)
            value.copy_(held)

    def keep(self, runs: Tensor) -> None:
        """Go on with these runs only."""
        self.ema, self.count = self.ema[runs], self.count[runs]
        self.values = [value[runs].contiguous() for value in self.values]

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must keep."""
        found = {str(i): value for i, value in enumerate(self.values)}
        return {**found, "count": self.count} if found else {}

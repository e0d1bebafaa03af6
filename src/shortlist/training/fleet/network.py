"""What a fleet asks of its networks."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

import torch
from torch import Tensor


class FleetNet(Protocol):
    """R networks that move together."""

    device: torch.device

    def forward(
        self, index: Tensor, active: Tensor, *, train: bool, inputs: Any = None, moves: Tensor | None = None
    ) -> Tensor:
        """Logits (R, B, K) at `index` (R, B) of the training inputs, or of `inputs`; images moved by `moves`."""

    def backward(self, dlogits: Tensor) -> None:
        """Gradients from the gradient by the logits."""

    def update(self, lr: Tensor) -> None:
        """One optimiser step; a negative lr stands still."""

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the networks are the averaged ones: what is scored and saved."""

    def keep(self, runs: Tensor) -> None:
        """Free all runs but these."""

    def some(self, runs: slice) -> Self:
        """These runs alone, on the same memory, to go forward with."""

    def state(self) -> list[Tensor]:
        """Everything a step changes."""

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """One run's model, as the single loop would save it."""


class SecondPass:
    """The second forward pass of a step for the runs whose methods ask for one, and as few others as lie between."""

    def __init__(self, net: FleetNet, runs: Sequence[int], device: torch.device) -> None:
        self.span = slice(min(runs), max(runs) + 1)
        self.net = net.some(self.span)
        self.asked = torch.tensor([float(run in runs) for run in range(min(runs), max(runs) + 1)], device=device)

    def __call__(self, logits: Tensor, items: Tensor, active: Tensor, moves: Tensor | None) -> Tensor:
        """(R, B, K) the logits, those of these runs made anew."""
        of = self.span
        moved = None if moves is None else moves[of]
        fresh = self.net.forward(items[of], active[of] * self.asked, train=True, moves=moved).detach()
        return torch.cat([logits[: of.start], fresh, logits[of.stop :]])

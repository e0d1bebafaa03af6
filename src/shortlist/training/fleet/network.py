"""What a fleet needs of its networks."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

import torch
from torch import Tensor


class FleetNet(Protocol):
    """R networks that step together."""

    device: torch.device

    def forward(
        self,
        index: Tensor,
        active: Tensor,
        *,
        train: bool,
        inputs: Any = None,
        moves: Tensor | None = None,
        own: Tensor | None = None,
    ) -> Tensor:
        """Logits (R, B, K) at `index` (R, B) of the training inputs, or of `inputs`; images moved by `moves`.

        Moves (R, B, 3) are those of `augment`, (R, B, 9) those of `views`, where `own` (R,) says how strong ones mix.
        """

    def backward(self, dlogits: Tensor) -> None:
        """Gradients from the gradient by the logits."""

    def update(self, lr: Tensor) -> None:
        """One optimiser step; a run whose lr is negative stands still."""

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the networks hold the averaged weights: what is scored and saved."""

    def weights(self) -> list[Tensor]:
        """Parameters and running statistics, (R, ...) each."""

    def keep(self, runs: Tensor) -> None:
        """Free all runs but these."""

    def some(self, runs: slice) -> Self:
        """These runs alone, in the same memory, for forward passes."""

    def teachers(self, runs: slice) -> Callable[[Tensor, Tensor | None], Tensor]:
        """The averaged weights that teach these runs: items (R, B) and moves -> logits (R, B, K)."""

    def state(self) -> list[Tensor]:
        """Everything a step changes."""

    def state_dict(self, run: int) -> dict[str, Tensor]:
        """One run's model, as the single loop would save it."""


class SecondPass:
    """The second forward pass of a step, for the runs whose methods ask for one and the few that lie between them."""

    def __init__(self, net: FleetNet, runs: Sequence[int], device: torch.device) -> None:
        self.span = slice(min(runs), max(runs) + 1)
        self.net = net.some(self.span)
        self.asked = torch.tensor([float(run in runs) for run in range(min(runs), max(runs) + 1)], device=device)

    def __call__(self, logits: Tensor, items: Tensor, active: Tensor, moves: Tensor | None) -> Tensor:
        """(R, B, K) the logits, with new ones for the runs that ask for them."""
        of = self.span
        moved = None if moves is None else moves[of]
        fresh = self.net.forward(items[of], active[of] * self.asked, train=True, moves=moved).detach()
        return torch.cat([logits[: of.start], fresh, logits[of.stop :]])


class TeacherPass:
    """The teachers' forward pass, for the runs whose methods have one and the few that lie between them."""

    def __init__(self, net: FleetNet, runs: Sequence[int]) -> None:
        self.span = slice(min(runs), max(runs) + 1)
        self.teach = net.teachers(self.span)

    def __call__(self, items: Tensor, moves: Tensor | None) -> Tensor:
        """(R, B, K) the teachers' logits; zeros for the runs outside that range."""
        of = self.span
        said = self.teach(items[of], None if moves is None else moves[of])
        behind = len(items) - of.stop
        return torch.nn.functional.pad(said, (0, 0, 0, 0, of.start, behind))

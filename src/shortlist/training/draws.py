"""What a run draws at random in each epoch: the order of its items and how it sees them, each from its own stream."""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from shortlist.internal.streams import generator
from shortlist.training.augment import STAY, draw_moves
from shortlist.training.config import RunConfig
from shortlist.training.views import draw_changes, draw_shares


@dataclass
class Draws:
    """The draws of one epoch; a fleet has one more dimension, of runs, in front. None: not asked for."""

    order: Tensor
    """(steps B,) which items come, one batch after another."""
    moves: Tensor | None
    """(N, 3) of the weak views."""
    teacher_moves: Tensor | None
    """(N, 3) of what the teacher sees, where that is a crop of its own."""
    changes: Tensor | None
    """(N, 9) of the strong views."""
    shares: Tensor | None
    """(steps,) of its own in a mixed view."""

    def to(self, device: torch.device) -> "Draws":
        """The same on another device."""
        on_device: dict[str, Any] = {
            name: None if value is None else value.to(device) for name, value in vars(self).items()
        }
        return Draws(**on_device)

    def copy_(self, other: "Draws") -> None:
        """Take over what another epoch drew."""
        for f in fields(self):
            ours, theirs = getattr(self, f.name), getattr(other, f.name)
            if ours is not None:
                ours.copy_(theirs)


def draw_epoch(
    config: RunConfig, epoch: int, items: int, batch_size: int, in_shape: tuple[int, ...], *, flips: bool, apart: bool
) -> Draws:
    """What a run draws for an epoch.

    Args:
        config: its seed, and which views it asks for.
        epoch: how many came before.
        items: N.
        batch_size: B. Batches are full: the items that are left over at the end of the order sit this epoch out.
        in_shape: of one item.
        flips: whether images may be flipped.
        apart: whether the teacher sees a crop of its own.
    """

    def stream(purpose: str) -> torch.Generator:
        return generator(config.seed, purpose, epoch)

    steps = items // batch_size
    order = torch.randperm(items, generator=stream("shuffle"))[: steps * batch_size]
    if not (config.augment or config.strong):
        return Draws(order, None, None, None, None)
    _, height, width = in_shape

    def moves(purpose: str) -> Tensor:
        if not config.augment:
            return torch.tensor(STAY, dtype=torch.uint8).repeat(items, 1)
        return draw_moves(items, flips, stream(purpose), min(height, width))

    return Draws(
        order,
        moves=moves("augment"),
        teacher_moves=moves("teacher") if apart else None,
        changes=draw_changes(items, height, width, flips, stream("strong")) if config.strong else None,
        shares=draw_shares(steps, stream("mix")) if config.mix else None,
    )

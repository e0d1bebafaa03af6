"""What an epoch of a fleet draws at random, as the single loop draws it: each run from streams of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from shortlist.internal.streams import generator
from shortlist.training.augment import STAY, draw_moves
from shortlist.training.task import Task
from shortlist.training.views import COLUMNS, draw_changes, draw_shares


@dataclass
class Draws:
    """The orders of R runs, and how they see their items; None where no run asks for it."""

    order: Tensor
    """(R, steps B) which items come, one batch after another."""
    moves: Tensor | None
    """(R, N, 3) of the weak views; of runs that are not augmented, those that leave images as they are."""
    teacher_moves: Tensor | None
    """(R, N, 3) of what teachers see, where one sees a crop of its own."""
    changes: Tensor | None
    """(R, N, 9) of the strong views."""
    shares: Tensor | None
    """(R, steps) of its own in a mixed view."""

    def to(self, device: torch.device) -> "Draws":
        """The same on another device."""
        on_device: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            on_device[f.name] = None if value is None else value.to(device)
        return Draws(**on_device)

    def copy_(self, other: "Draws") -> None:
        """Take over what another epoch drew."""
        for f in fields(self):
            ours, theirs = getattr(self, f.name), getattr(other, f.name)
            if ours is not None:
                ours.copy_(theirs)


def draw_epoch(tasks: Sequence[Task], epoch: int, batch_size: int) -> Draws:
    """What these runs draw for an epoch; all of them have two views, and mixed ones, or none has."""
    sizes, first = [len(task.feed) for task in tasks], tasks[0].config
    runs, longest, most = len(tasks), max(sizes), max(sizes) // batch_size
    augmented = first.strong or any(task.config.augment for task in tasks)
    still = torch.tensor(STAY, dtype=torch.uint8).repeat(runs, longest, 1)
    apart = augmented and any(task.method.apart for task in tasks)
    order = torch.zeros(runs, most * batch_size, dtype=torch.int64)
    moves, teacher_moves = still, still.clone() if apart else None
    changes = torch.zeros(runs, longest, COLUMNS, dtype=torch.int16) if first.strong else None
    shares = torch.ones(runs, most) if first.mix else None
    for run, (task, n) in enumerate(zip(tasks, sizes, strict=True)):
        seed, flips, steps = task.config.seed, task.dataset.flips, n // batch_size
        full = steps * batch_size
        order[run, :full] = torch.randperm(n, generator=generator(seed, "shuffle", epoch))[:full]
        if task.config.augment:
            side = min(task.dataset.in_shape[1:])
            moves[run, :n] = draw_moves(n, flips, generator(seed, "augment", epoch), side)
            if teacher_moves is not None:
                own = task.method.apart
                drawn = draw_moves(n, flips, generator(seed, "teacher", epoch), side) if own else moves[run, :n]
                teacher_moves[run, :n] = drawn
        if changes is not None:
            _, height, width = task.dataset.in_shape
            changes[run, :n] = draw_changes(n, height, width, flips, generator(seed, "strong", epoch))
        if shares is not None:
            shares[run, :steps] = draw_shares(steps, generator(seed, "mix", epoch))
    return Draws(order, moves if augmented else None, teacher_moves, changes, shares)

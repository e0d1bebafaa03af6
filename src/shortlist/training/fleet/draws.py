"""What a fleet draws at random in each epoch: the draws of its runs, side by side."""

from collections.abc import Sequence

import torch
from torch import Tensor

from shortlist.training.augment import STAY
from shortlist.training.draws import Draws, draw_epoch
from shortlist.training.fleet.feeds import side_by_side
from shortlist.training.task import Task
from shortlist.training.views import COLUMNS


def draw_all(tasks: Sequence[Task], epoch: int, batch_size: int) -> Draws:
    """What these runs draw for an epoch. Either all have two views or none, and either all mix them or none."""
    drawn = [
        draw_epoch(
            task.config, epoch, len(task.feed), batch_size, task.dataset.in_shape,
            flips=task.dataset.flips, apart=task.method.apart,
        )
        for task in tasks
    ]  # fmt: skip
    runs, longest = len(tasks), max(len(task.feed) for task in tasks)
    most = longest // batch_size

    def padded(parts: Sequence[Tensor | None], length: int, blank: Tensor) -> Tensor | None:
        return None if all(part is None for part in parts) else side_by_side(parts, runs, length, blank)

    still = torch.tensor(STAY, dtype=torch.uint8)
    apart = any(d.teacher_moves is not None for d in drawn)
    taught = [(d.moves if d.teacher_moves is None else d.teacher_moves) if apart else None for d in drawn]
    return Draws(
        order=side_by_side([d.order for d in drawn], runs, most * batch_size, torch.tensor(0)),
        moves=padded([d.moves for d in drawn], longest, still),
        teacher_moves=padded(taught, longest, still),
        changes=padded([d.changes for d in drawn], longest, torch.zeros(COLUMNS, dtype=torch.int16)),
        shares=padded([d.shares for d in drawn], most, torch.tensor(1.0)),
    )

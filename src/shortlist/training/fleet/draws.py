"""What an epoch of a fleet draws at random: what each of its runs draws by itself, side by side."""

from collections.abc import Sequence

import torch
from torch import Tensor

from shortlist.training.augment import STAY
from shortlist.training.draws import Draws, draw_epoch
from shortlist.training.task import Task
from shortlist.training.views import COLUMNS


def draw_all(tasks: Sequence[Task], epoch: int, batch_size: int) -> Draws:
    """What these runs draw for an epoch; all of them have two views, and mixed ones, or none has."""
    drawn = [
        draw_epoch(
            task.config, epoch, len(task.feed), batch_size, task.dataset.in_shape,
            flips=task.dataset.flips, apart=task.method.apart,
        )
        for task in tasks
    ]  # fmt: skip
    longest = max(len(task.feed) for task in tasks)
    most = longest // batch_size
    order = _stack([d.order for d in drawn], most * batch_size, torch.tensor(0))
    assert order is not None
    still = torch.tensor(STAY, dtype=torch.uint8)
    apart = any(d.teacher_moves is not None for d in drawn)
    taught = [(d.moves if d.teacher_moves is None else d.teacher_moves) if apart else None for d in drawn]
    return Draws(
        order,
        moves=_stack([d.moves for d in drawn], longest, still),
        teacher_moves=_stack(taught, longest, still),
        changes=_stack([d.changes for d in drawn], longest, torch.zeros(COLUMNS, dtype=torch.int16)),
        shares=_stack([d.shares for d in drawn], most, torch.tensor(1.0)),
    )


def _stack(parts: Sequence[Tensor | None], length: int, blank: Tensor) -> Tensor | None:
    """(R, length, ...) the parts of the runs, `blank` where a run has none or fewer; None where no run has any."""
    if all(part is None for part in parts):
        return None
    rows = blank.repeat(len(parts), length, *[1] * blank.dim())
    for row, part in zip(rows, parts, strict=True):
        if part is not None:
            row[: len(part)] = part
    return rows

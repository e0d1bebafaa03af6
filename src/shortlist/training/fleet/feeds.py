"""What the runs of a fleet are fed, side by side on the device."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from shortlist.methods import Batch, Method
from shortlist.training.fleet.class_sets import Sets
from shortlist.training.task import Task


class Feeds:
    """The feeds of R runs as tensors with a dimension of runs in front; shorter feeds are padded at the end."""

    def __init__(self, tasks: Sequence[Task], sets: Sets, device: torch.device) -> None:
        feeds = self._feeds = [task.feed for task in tasks]
        runs, longest, K = len(feeds), max(map(len, feeds)), feeds[0].num_classes

        def padded(parts: Iterable[Tensor | None], blank: Tensor) -> Tensor:
            return side_by_side(parts, runs, longest, blank.to(device))

        each = zip(tasks, feeds, strict=True)
        self.rows = padded((feed.rows + sets.place(task).train for task, feed in each), torch.tensor(0))
        """(R, N) where each item lies among those of all sets of classes."""
        self.shown = padded((f.batch(torch.arange(len(f))).shown for f in feeds), torch.zeros(K, dtype=torch.bool))
        self.answer = padded((feed.answer for feed in feeds), torch.tensor(0))
        self.prior = torch.stack([feed.prior for feed in feeds]).to(device)
        self.weight: Tensor | None = None
        if any(feed.weight is not None for feed in feeds):  # by a `Method.feed` of one's own
            self.weight = padded((feed.weight for feed in feeds), torch.tensor(1.0))
        self.inclusion: Tensor | None = None
        if any(feed.inclusion is not None for feed in feeds):
            self.inclusion = padded((feed.inclusion for feed in feeds), torch.tensor(1.0))
        self.table: Tensor | None = None
        if any(feed.table is not None for feed in feeds):
            self.table = padded((feed.table for feed in feeds), torch.zeros(K))
        self._run = torch.arange(runs, device=device).unsqueeze(1)

    def batch(self, runs: slice, method: Method, index: Tensor, **others: Any) -> Batch:
        """What the method of these runs sees of the items at `index` (R, B); `others` are further fields of `Batch`."""
        at = self._run[runs], index[runs]
        table = self.table if method.refresh != "never" else None
        return Batch(
            shown=self.shown[at],
            answer=self.answer[at],
            prior=self.prior[runs],
            weight=None if self.weight is None else self.weight[at],
            confidence=None if table is None else table[at],
            table=None if table is None else table[runs],
            inclusion=None if self.inclusion is None else self.inclusion[at],
            **others,
        )

    def renew(self, runs: slice, index: Tensor, confidence: Tensor, moving: Tensor) -> None:
        """Store renewed confidences, but not of the runs that stand still (`moving` (R,) is false)."""
        assert self.table is not None
        at = self._run[runs], index[runs]
        self.table[at] = torch.where(moving[runs].view(-1, 1, 1), confidence.to(self.table.dtype), self.table[at])

    def hand_back(self, runs: Sequence[int]) -> None:
        """Copy the confidences of these runs back to their own feeds, from which the next `Feeds` is made."""
        if self.table is None:
            return
        for run in runs:
            feed = self._feeds[run]
            if feed.table is not None:
                feed.table.copy_(self.table[run, : len(feed)])


def side_by_side(parts: Iterable[Tensor | None], runs: int, length: int, blank: Tensor) -> Tensor:
    """(R, length, ...) one part per run, filled up with `blank`; all blank where a run has none."""
    rows = blank.repeat(runs, length, *[1] * blank.dim())
    for row, part in zip(rows, parts, strict=True):
        if part is not None:
            row[: len(part)].copy_(part)
    return rows

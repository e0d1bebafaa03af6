"""What the networks of a fleet say of items that they are not trained on, some of every run's at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from shortlist.training.fleet_net import FleetNet
from shortlist.training.fleet_sets import Sets
from shortlist.training.graph import captured
from shortlist.training.prepare import Task

EVALUATION_BATCH = 500
"""Items a run and evaluation step: small, since every run of the fleet has that many at once."""


class Passes:
    """Forward passes over rows of some inputs, which may be called again and again as the networks change.

    Steps have one size, so that one graph serves all: the last begins early enough to be whole, and meets some again.

    Args:
        net: the networks.
        rows: (R, N) on the device.
        inputs: what they are rows of, as `net` takes it; the training inputs where None.
        out: (R, N, ...) where what is kept goes.
        keep: makes it, (R, B, ...), from logits (R, B, K).
        graph: capture a step as a CUDA graph.
    """

    def __init__(
        self, net: FleetNet, rows: Tensor, inputs: Any, out: Tensor, keep: Callable[[Tensor], Tensor], graph: bool
    ) -> None:
        self.net, self.rows, self.inputs, self.out, self.keep = net, rows, inputs, out, keep
        self.graph = graph and getattr(inputs, "resident", True)  # what comes from the host comes step by step
        R, N = rows.shape
        self.size = min(EVALUATION_BATCH, N)
        self.steps, self.last = -(-N // self.size), N - self.size
        self.span = torch.arange(self.size, device=rows.device)
        self.still = torch.zeros(R, device=rows.device)
        self.number = torch.zeros((), dtype=torch.int64, device=rows.device)
        self._replay: Callable[[], None] | None = None

    @torch.no_grad()
    def __call__(self) -> Tensor:
        """`out`, made by the networks as they are."""
        self.number.zero_()
        step = self._captured() if self.graph else self._step
        for _ in range(self.steps):
            step()
        return self.out

    def _step(self) -> None:
        """One step of every run. Reads its number from the device and counts itself on."""
        at = (self.number * self.size).clamp(max=self.last) + self.span
        logits = self.net.forward(self.rows[:, at], self.still, train=False, inputs=self.inputs)
        self.out[:, at] = self.keep(logits)
        self.number.add_(1)

    def _captured(self) -> Callable[[], None]:
        if self._replay is None:
            self._replay = captured(self._step, [self.number], self.rows.device)
        return self._replay


class Accuracies:
    """The accuracies of all runs, each on the test items of its own classes."""

    def __init__(
        self, net: FleetNet, tasks: Sequence[Task], sets: Sets, inputs: Any, y: Tensor, graph: bool = False
    ) -> None:
        self.counts = [len(task.dataset.test or ()) for task in tasks]
        starts = torch.tensor([[sets.place(task).test] for task in tasks], device=y.device)
        counts = torch.tensor(self.counts, device=y.device).unsqueeze(1)
        at = torch.arange(max(self.counts), device=y.device)
        rows = starts + torch.minimum(at, counts - 1)  # a run with fewer items sees its last again
        self.real, self.y = at < counts, y[rows]
        self.said = Passes(net, rows, inputs, torch.zeros_like(rows), lambda logits: logits.argmax(-1), graph)

    def __call__(self) -> list[float]:
        """Of the networks as they are; this waits for the device."""
        right = ((self.said() == self.y) & self.real).sum(-1)
        return [n / count for n, count in zip(right.tolist(), self.counts, strict=True)]


def held_passes(net: FleetNet, tasks: Sequence[Task], sets: Sets, graph: bool = False) -> Passes:
    """(R, longest, K) the logits of each run's held-out items; in the rows of runs with fewer, anything behind them."""
    longest = max(len(task.held_rows) for task in tasks)
    rows = torch.zeros(len(tasks), longest, dtype=torch.int64)
    for run, task in enumerate(tasks):
        rows[run, : len(task.held_rows)] = task.held_rows + sets.place(task).train
    logits = torch.zeros(len(tasks), longest, tasks[0].feed.num_classes, device=net.device)
    return Passes(net, rows.to(net.device), None, logits, lambda logits: logits, graph)

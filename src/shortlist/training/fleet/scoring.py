"""Scores of a fleet's networks on items that they are not trained on.

Unlike training this is not captured as a graph: on an H200 that saved only 1 % of the time (20 ResNet-32s, 10,000
items).
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from shortlist.training.evaluation import HeldAnswers, Scores, miscalibration
from shortlist.training.fleet.class_sets import Sets
from shortlist.training.fleet.network import FleetNet
from shortlist.training.task import Task

EVALUATION_BATCH = 500
"""Items per run and forward pass: few, as every run of the fleet has that many at once."""


def accuracies(net: FleetNet, tasks: Sequence[Task], sets: Sets, inputs: Any, y: Tensor) -> list[float]:
    """Each run's accuracy on the test items of its classes, given as rows of `inputs` and `y`; waits for the device."""
    rows, counts = _test_rows(tasks, sets, y.device)
    each = torch.tensor(counts, device=y.device).unsqueeze(1)
    said = _said(net, rows, inputs, lambda logits: logits.argmax(-1))
    right = ((said == y[rows]) & (torch.arange(rows.shape[1], device=y.device) < each)).sum(-1)
    return [n / count for n, count in zip(right.tolist(), counts, strict=True)]


def calibration_errors(net: FleetNet, tasks: Sequence[Task], sets: Sets, inputs: Any, y: Tensor) -> list[float]:
    """Each run's calibration error on the same items, by its method's probabilities; waits for the device.

    NaN if the logits are not numbers, which the risk does not show if the very last step led there.
    """
    rows, counts = _test_rows(tasks, sets, y.device)
    logits = _said(net, rows, inputs, Tensor.clone)
    errors = []
    for run, (task, count) in enumerate(zip(tasks, counts, strict=True)):
        own = logits[run, :count]
        error = miscalibration(task.method.class_probabilities(own, task.smoothing), y[rows[run, :count]])
        errors.append(torch.where(torch.softmax(own, -1).isnan().any(), torch.nan, error))
    found: list[float] = torch.stack(errors).tolist()
    return found


def _test_rows(tasks: Sequence[Task], sets: Sets, device: torch.device) -> tuple[Tensor, list[int]]:
    """(R, longest) the rows of each run's test items, and how many it has; a run with fewer repeats its last."""
    counts = [len(task.dataset.test or ()) for task in tasks]
    starts = torch.tensor([[sets.place(task).test] for task in tasks], device=device)
    last = torch.tensor(counts, device=device).unsqueeze(1) - 1
    return starts + torch.minimum(torch.arange(max(counts), device=device), last), counts


class HeldOut:
    """The held-out items of a fleet's runs, scored on the device."""

    def __init__(self, tasks: Sequence[Task], sets: Sets, device: torch.device) -> None:
        self.tasks = tasks
        rows = torch.zeros(len(tasks), max(len(task.held_rows) for task in tasks), dtype=torch.int64)
        for run, task in enumerate(tasks):
            rows[run, : len(task.held_rows)] = task.held_rows + sets.place(task).train
        self.rows = rows.to(device)
        self.answers = [None if t.held is None else HeldAnswers.of(t.held, t.uniform, device) for t in tasks]

    def logits(self, net: FleetNet) -> Tensor:
        """(R, longest, K); what lies behind the items of a run with fewer means nothing."""
        return _said(net, self.rows, None, Tensor.clone)  # the next pass may write over the logits

    def scores(self, net: FleetNet) -> list[Scores | None]:
        """The scores of each run, None if it holds nothing out; waits for the device once."""
        logits = self.logits(net)
        sums = []
        for run, (task, held) in enumerate(zip(self.tasks, self.answers, strict=True)):
            if held is not None:
                own = logits[run, : len(held.answer)]
                sums.append(held.sums(own, task.method.class_probabilities(own, task.smoothing)))
        numbers = iter(torch.stack(sums).tolist() if sums else [])
        return [None if held is None else held.scores(next(numbers)) for held in self.answers]


@torch.no_grad()
def _said(net: FleetNet, rows: Tensor, inputs: Any, keep: Callable[[Tensor], Tensor]) -> Tensor:
    """(R, N, ...) `keep` of the logits at the rows (R, N) of `inputs`, or of the training inputs if that is None."""
    still = torch.zeros(len(rows), device=rows.device)
    parts = [
        keep(net.forward(part.contiguous(), still, train=False, inputs=inputs))
        for part in torch.split(rows, EVALUATION_BATCH, dim=1)
    ]
    return torch.cat(parts, 1)

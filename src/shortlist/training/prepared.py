"""From a dataset and a configuration to a run that is ready to start."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from shortlist.data import Dataset
from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.methods import Method
from shortlist.training.config import Engine, RunConfig
from shortlist.training.distributed import Processes
from shortlist.training.evaluation import fit_temperature, is_softmax, predict_logits
from shortlist.training.fleet.networks import suits_kernels
from shortlist.training.fleet.single import KernelRun
from shortlist.training.inputs import Inputs
from shortlist.training.run import Run
from shortlist.training.saved.fingerprint import Fingerprint, code_checksums, inputs_checksum, labels_checksum
from shortlist.training.solver.solver import SolverRun
from shortlist.training.task import Task, build_task

FEW = 100
"""How many items a trained model is tried on."""
PLENTY = 1 << 23
"""A temperature is fitted to about this many logits (items times classes) at most; of more items to every n-th."""


@dataclass
class Prepared:
    """A run with what is needed to score it."""

    run: Run
    method: Method
    labels: StochasticLabels
    """All labels, held-out ones included."""
    held: StochasticLabels | None
    """The labels of the held-out items."""
    held_rows: Tensor
    """The rows of those items in the data."""
    test: Inputs | None
    test_y: Tensor | None
    smoothing: float
    """The label smoothing that predicted probabilities must undo."""
    uniform: bool
    """Whether every list is known to be a uniform draw, or to hold all classes."""
    given: Any
    """The inputs of all items as they were given: an array, a CSR matrix, or texts."""
    code: dict[str, str]
    """The checksums of `saved.fingerprint.code_checksums`."""
    temperature: float = 1.0
    """What the trained model's logits are divided by before they become probabilities (`calibrate`)."""

    def held_logits(self, part: NDArray[np.int64] | slice = slice(None)) -> Tensor:
        """(N, K) the current model's logits of the held-out items, on the device."""
        run = self.run
        return predict_logits(run.model, run.inputs, self.held_rows[part], bool(run.engine.amp))

    def test_logits(self) -> Tensor | None:
        """The same of the test items; None if there are none."""
        return None if self.test is None else predict_logits(self.run.model, self.test, amp=bool(self.run.engine.amp))

    def gives_numbers(self) -> bool:
        """Whether the current model gives numbers; it is tried on a few training items."""
        run = self.run
        logits = predict_logits(run.model, run.inputs, run.feed.rows[:FEW].cpu(), bool(run.engine.amp))
        return not torch.softmax(logits, -1).isnan().any()  # softmax, as some logits of -inf do no harm

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What must be the same for this run to resume a saved one."""
        inputs = self.run.inputs
        labels = labels_checksum(self.labels, self.run.feed, inputs.shape, len(inputs))
        return Fingerprint(labels, inputs_checksum(self.given), self.code)

    def calibrate(self) -> float:
        """Fit the temperature of the trained model to the held-out answers, and return it.

        It stays 1 if nothing is held out, and for methods whose probabilities are not the softmax of their logits.
        """
        if self.held is None or self.smoothing or not is_softmax(self.method, self.labels.num_classes):
            return self.temperature
        step = math.ceil(len(self.held) * self.labels.num_classes / PLENTY)
        part = np.arange(0, len(self.held), step)
        candidates = torch.from_numpy(self.held.subset(part).candidates)
        self.temperature = fit_temperature(self.held_logits(part).cpu(), candidates)
        return self.temperature


def prepare(
    dataset: Dataset,
    config: RunConfig,
    *,
    labels: StochasticLabels | None = None,
    rows: NDArray[np.int64] | None = None,
    weight: ArrayLike | None = None,
    engine: Engine | None = None,
    group: Processes | None = None,
    inputs: Inputs | None = None,
    model: nn.Module | None = None,
    given: Any = None,
) -> Prepared:
    """Make the run that `config` describes.

    Args:
        dataset: the data, texts already turned into features.
        config: what decides the result.
        labels: collected answers; by default they are drawn from the dataset's classes, `config.size` at a time.
        rows: which row of the data each label belongs to; by default all rows in order.
        weight: how much each label counts.
        engine: how to compute.
        group: the processes that share the run.
        inputs: the training inputs if they are on the device already: runs can share them.
        model: an untrained network to use instead of building `config.model`.
        given: what the dataset's features were made of, such as texts; a saved run is recognised by it.
    """
    task = build_task(dataset, config, labels=labels, rows=rows, weight=weight, model=model)
    if config.optimiser == "lbfgs":  # sparse products on the host
        engine = Engine(device="cpu")
    engine = (engine or Engine()).resolve(config.epochs * len(task.labels))
    test = task.dataset.test
    tested, shape = None if test is None else Inputs(test.x, engine.device), task.dataset.in_shape
    if tested is not None and tested.shape != shape:
        raise InputError(f"{dataset.name}: test items of shape {tested.shape}, expected {shape}")
    return Prepared(
        run=_run(task, inputs or Inputs(task.dataset.train.x, engine.device), engine, group),
        method=task.method,
        labels=task.labels,
        held=task.held,
        held_rows=task.held_rows,
        test=tested,
        test_y=None if test is None else torch.from_numpy(np.asarray(test.y)),
        smoothing=task.smoothing,
        uniform=task.uniform,
        given=task.dataset.train.x if given is None else given,
        code=code_checksums(config.method, config.model),  # now: the files may be edited while it trains
    )


def _run(task: Task, inputs: Inputs, engine: Engine, group: Processes | None) -> Run:
    if task.config.optimiser == "lbfgs":
        return SolverRun(task.config, task.model, task.method, task.feed, inputs, engine, group)
    single = all(parameter.dtype == torch.float32 for parameter in task.model.parameters())
    if suits_kernels(task, engine) and single and (group is None or group.world == 1):
        return KernelRun(task, inputs, engine)
    return Run(task.config, task.model, task.method, task.feed, inputs, engine, flips=task.dataset.flips, group=group)

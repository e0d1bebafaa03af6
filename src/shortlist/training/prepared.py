"""From a dataset and a configuration to a run that is ready to start."""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from shortlist import methods, models
from shortlist.data import Dataset
from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.methods import Feed, Method
from shortlist.training.config import Engine, RunConfig, stream_seed
from shortlist.training.distributed import Processes
from shortlist.training.inputs import Inputs, Normalise
from shortlist.training.method_check import check_method
from shortlist.training.run import Run
from shortlist.training.saved.fingerprint import Fingerprint, inputs_checksum, labels_checksum


@dataclass
class Task:
    """What a configuration means on a dataset, before anything is put on a device."""

    config: RunConfig
    dataset: Dataset
    """Restricted to the configuration's classes."""
    model: nn.Module
    """Untrained; its first layer normalises."""
    method: Method
    feed: Feed
    labels: StochasticLabels
    """All labels, held-out ones included."""
    held: StochasticLabels | None
    """The labels of the held-out items."""
    held_rows: Tensor
    """The rows of those items in the data."""
    smoothing: float
    """What `predict_proba` must undo."""


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
    """What `predict_proba` must undo."""
    given: Any
    """The inputs of all items as they were given, on the host: an array, a CSR matrix, or texts."""

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What a saved run must have been trained on for this one to go on with it."""
        inputs = self.run.inputs
        labels = labels_checksum(self.labels, self.run.feed, inputs.shape, len(inputs))
        return Fingerprint(labels, inputs_checksum(self.given))


def draw_labels(dataset: Dataset, config: RunConfig) -> StochasticLabels:
    """The simulated labels of a run: shortlists of `config.size`, or ordinary labels where that is None."""
    y, K = dataset.train.y, dataset.num_classes
    if y is None or (y < 0).any():
        raise InputError(
            f"{dataset.name}: items without a label, so shortlists cannot be simulated: give a labels file"
        )
    if config.size is None:
        return StochasticLabels.ordinary(y, num_classes=K, class_names=dataset.class_names)
    if not 1 <= config.size <= K:
        raise InputError(f"size: expected 1..{K} for the {K} classes of {dataset.name}, got {config.size}")
    seed = stream_seed(config.seed, "shortlists")
    return StochasticLabels.draw(y, num_classes=K, size=config.size, seed=seed, class_names=dataset.class_names)


def hold_out(labels: StochasticLabels, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows held out, a share of the answered and of the None items each, drawn by the seed."""
    if not share:
        return np.arange(len(labels)), np.arange(0)
    rng = np.random.Generator(np.random.PCG64(stream_seed(seed, "holdout")))
    kept, held = [], []
    for rows in (np.nonzero(labels.answered)[0], np.nonzero(~labels.answered)[0]):
        order = rows[np.argsort(rng.random(len(rows)), kind="stable")]
        cut = round(share * len(rows))
        held.append(order[:cut])
        kept.append(order[cut:])
    return np.sort(np.concatenate(kept)), np.sort(np.concatenate(held))


def plan(
    dataset: Dataset,
    config: RunConfig,
    *,
    labels: StochasticLabels | None = None,
    rows: NDArray[np.int64] | None = None,
    weight: ArrayLike | None = None,
    model: nn.Module | None = None,
    normalise: Normalise | None = None,
) -> Task:
    """Work out what `config` means on `dataset`; the arguments are those of `prepare`.

    `normalise` is a first layer made for the same inputs: a fleet measures them once.
    """
    if config.classes is not None:
        if labels is not None:
            raise InputError("classes: a run on some classes draws its own labels, and labels were given")
        dataset = dataset.only_classes(config.classes)
    labels = draw_labels(dataset, config) if labels is None else labels
    rows = np.arange(len(dataset.train)) if rows is None else rows
    if len(rows) != len(labels):
        raise InputError(f"{len(labels)} labels for {len(rows)} items of {dataset.name}")
    if dataset.num_classes != labels.num_classes:
        raise InputError(f"{dataset.name} has {dataset.num_classes} classes, the labels {labels.num_classes}")
    if weight is not None and np.shape(weight) != (len(labels),):
        raise InputError(f"weight: expected {len(labels)} numbers, one a label, got shape {np.shape(weight)}")
    kept, held = hold_out(labels, config.holdout, config.seed)
    if len(held) and not len(kept):
        raise InputError(f"holdout: a share of {config.holdout} of {len(labels)} items leaves none to train on")
    method = methods.get(config.method, **config.method_options)
    trained = labels.subset(kept) if len(held) else labels
    feed = method.feed(trained, config.protocol, None if weight is None else np.asarray(weight)[kept])
    check_method(method, feed)
    feed.rows = torch.from_numpy(rows[kept])[feed.rows]  # rows of the data, not of the labels
    network = model or models.build(
        config.model,
        dataset.in_shape,
        dataset.num_classes,
        seed=stream_seed(config.seed, "weights"),
        **config.model_options,
    )
    return Task(
        config=config,
        dataset=dataset,
        model=nn.Sequential(copy.deepcopy(normalise) or Normalise(dataset.train.x, rows, weight), network),
        method=method,
        feed=feed,
        labels=labels,
        held=labels.subset(held) if len(held) else None,
        held_rows=torch.from_numpy(rows[held]),
        smoothing=method.smoothing(labels),
    )


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
) -> Prepared:
    """Make the run that `config` describes.

    Args:
        dataset: the data, texts already turned into features.
        config: what decides the result.
        labels: collected answers; drawn from the dataset's classes by `config.size` where not given.
        rows: the data rows `labels` belong to, in their order; all rows where not given.
        weight: how much each label counts.
        engine: how to compute.
        group: the processes that share the run.
        inputs: the training inputs on the device already, to be shared between runs.
        model: an untrained network to use instead of building `config.model`.
    """
    task = plan(dataset, config, labels=labels, rows=rows, weight=weight, model=model)
    engine = (engine or Engine()).resolve(config.epochs * len(task.labels))
    test = task.dataset.test if task.dataset.test is not None and task.dataset.test.y is not None else None
    tested, shape = None if test is None else Inputs(test.x, engine.device), task.dataset.in_shape
    if tested is not None and tested.shape != shape:
        raise InputError(f"{dataset.name}: test items of shape {tested.shape}, expected {shape}")
    run = _run(task, inputs or Inputs(task.dataset.train.x, engine.device), engine, group)
    return Prepared(
        run=run,
        method=task.method,
        labels=task.labels,
        held=task.held,
        held_rows=task.held_rows,
        test=tested,
        test_y=None if test is None else torch.from_numpy(np.asarray(test.y)),
        smoothing=task.smoothing,
        given=task.dataset.train.x,
    )


def _run(task: Task, inputs: Inputs, engine: Engine, group: Processes | None) -> Run:
    single = all(parameter.dtype == torch.float32 for parameter in task.model.parameters())
    if engine.kernels and single and (group is None or group.world == 1):
        from shortlist.training.fleet.packs import suits_kernels
        from shortlist.training.fleet.single import KernelRun

        if suits_kernels(task, engine):
            return KernelRun(task, inputs, engine)
    return Run(task.config, task.model, task.method, task.feed, inputs, engine, flips=task.dataset.flips, group=group)

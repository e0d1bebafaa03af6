"""What a configuration means on a dataset: labels, held-out items, model and method, before any device."""

import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from shortlist import methods, models
from shortlist.data import UNLABELLED, Dataset
from shortlist.errors import InputError
from shortlist.internal.arguments import integers
from shortlist.internal.streams import stream_seed
from shortlist.labels import StochasticLabels
from shortlist.methods import Feed, Method
from shortlist.training.answers import draw_labels
from shortlist.training.config import RunConfig
from shortlist.training.inputs import Normalise
from shortlist.training.method_check import check_method
from shortlist.training.views import check_mixed


@dataclass
class Task:
    """A configuration applied to a dataset, before anything is put on a device."""

    config: RunConfig
    dataset: Dataset
    """Restricted to the configuration's classes, and to the test items whose class is known."""
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
    """The label smoothing that predicted probabilities must undo."""
    uniform: bool
    """Whether every list is known to be a uniform draw, or to hold all classes."""

    @property
    def batch_size(self) -> int:
        """That of the configuration, but no more than there are items."""
        return min(self.config.batch_size, len(self.feed))


def hold_out(labels: StochasticLabels, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows held out: the same share of the answered and of the None items, drawn by the seed."""
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


def with_known_test(dataset: Dataset) -> Dataset:
    """The dataset without the test items whose class is not known, which cannot be scored."""
    test = dataset.test
    if test is None:
        return dataset
    known = np.zeros(len(test), np.bool_) if test.y is None else test.y != UNLABELLED
    if known.any() and known.all():
        return dataset  # not a copy: a fleet keeps the items of each dataset object once
    return replace(dataset, test=test.take(known) if known.any() else None)


def build_task(
    dataset: Dataset,
    config: RunConfig,
    *,
    labels: StochasticLabels | None = None,
    rows: NDArray[np.int64] | None = None,
    weight: ArrayLike | None = None,
    model: nn.Module | None = None,
    normalise: Normalise | None = None,
) -> Task:
    """Apply a configuration to a dataset; the arguments are those of `prepare`.

    `normalise` is a first layer already made for the same inputs: a fleet measures them once.
    """
    if config.classes is not None:
        if labels is not None:
            raise InputError("classes: a run on some classes draws its own labels, and labels were given")
        dataset = dataset.only_classes(config.classes)
    dataset = with_known_test(dataset)
    labels = draw_labels(dataset, config.size, config.seed) if labels is None else labels
    items = len(dataset.train)
    rows = np.arange(items) if rows is None else integers("rows", rows, (0, items))
    if rows.shape != (len(labels),):
        raise InputError(f"{len(labels)} labels for {len(rows)} items of {dataset.name}")
    if dataset.num_classes != labels.num_classes:
        raise InputError(f"{dataset.name} has {dataset.num_classes} classes, the labels {labels.num_classes}")
    if weight is not None and np.shape(weight) != (len(labels),):
        raise InputError(f"weight: expected {len(labels)} numbers, one per label, got shape {np.shape(weight)}")
    kept, held = hold_out(labels, config.holdout, config.seed)
    if len(held) and not len(kept):
        raise InputError(f"holdout: a share of {config.holdout} of {len(labels)} items leaves none to train on")
    if config.keep == "best" and not len(held):
        raise InputError(f"keep best: a holdout of {config.holdout} holds out none of {len(labels)} items to choose by")
    method = methods.get(config.method, **config.method_options)
    trained = labels.subset(kept) if len(held) else labels
    with torch.random.fork_rng(devices=[]):  # a method may draw its first confidences
        torch.default_generator.manual_seed(stream_seed(config.seed, "feed"))
        feed = method.feed(trained, config.protocol, None if weight is None else np.asarray(weight)[kept])
    check_method(method, feed, views=2 if config.strong else 1)
    if config.mix:
        check_mixed(method)
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
        uniform=config.size is not None or bool((labels.sizes == labels.num_classes).all()),
    )

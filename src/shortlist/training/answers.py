"""The labels of a run: simulated from the classes, ordinary, or collected answers joined to the data by item."""

import logging
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import UNLABELLED, Dataset
from shortlist.errors import InputError
from shortlist.internal.streams import stream_seed
from shortlist.labels import StochasticLabels, join

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answers:
    """Labels, the rows of the data they belong to, and where they came from."""

    labels: StochasticLabels
    rows: NDArray[np.int64]
    origin: str
    """`simulated`, `ordinary`, or the file's name."""

    def to_dict(self) -> dict[str, Any]:
        """What a model card says of them."""
        summary = self.labels.summary()
        return {
            "origin": self.origin,
            "items": summary.items,
            "none_share": summary.none_share,
            "reads": summary.reads,
            "sizes": {str(size): count for size, count in summary.size_histogram.items()},
        }


def check_classes(dataset: Dataset) -> None:
    """Refuse data with nothing to tell apart."""
    if dataset.num_classes == 1:
        raise InputError(f"{dataset.name}: only one class, {dataset.class_names[0]!r}: training needs at least two")


def draw_labels(
    dataset: Dataset, size: int | None, seed: int, *, miss: float = 0.0, slip: float = 0.0, named: bool = False
) -> StochasticLabels:
    """Labels made of the true classes: ordinary ones where `size` is None, else uniform shortlists and their answers.

    Args:
        dataset: its training items are labelled (where `named`, those that are not are left out).
        size: classes on a shortlist.
        seed: decides the shortlists and the mistakes.
        miss: how often the right class is missed and None answered.
        slip: how often a wrong class is picked.
        named: keep the names of the items, which a file of labels needs and a fleet of runs has no room for.
    """
    check_classes(dataset)
    dataset = _labelled(dataset)[0] if named else dataset
    y, K = dataset.train.y, dataset.num_classes
    if y is None or (y == UNLABELLED).any():
        count = len(dataset.train) if y is None else int((y == UNLABELLED).sum())
        raise InputError(
            f"{dataset.name}: {count} of {len(dataset.train)} items have no class, so "
            f"{'it cannot be trained on as it is' if size is None else 'shortlists cannot be simulated'}: "
            "give a labels file"
        )
    names, items = dataset.class_names, dataset.train.items if named else None
    if size is None:
        return StochasticLabels.ordinary(y, num_classes=K, class_names=names, items=items)
    if not 1 <= size <= K:
        raise InputError(f"size: expected 1..{K} for the {K} classes of {dataset.name}, got {size}")
    return StochasticLabels.draw(
        y,
        num_classes=K,
        size=size,
        seed=stream_seed(seed, "shortlists"),
        miss=miss,
        slip=slip,
        class_names=names,
        items=items,
    )


def simulated(dataset: Dataset, size: int | None, seed: int, miss: float, slip: float) -> Answers:
    """Answers of the training items whose class is known, made of these by `draw_labels`."""
    part, rows = _labelled(dataset)
    labels = draw_labels(part, size, seed, miss=miss, slip=slip)
    return Answers(labels, rows, "ordinary" if size is None else "simulated")


def _labelled(dataset: Dataset) -> tuple[Dataset, NDArray[np.int64]]:
    """Only the training items whose class is known, and which rows these are; all of them where none is known."""
    y, count = dataset.train.y, len(dataset.train)
    rows = np.arange(count) if y is None else np.nonzero(y != UNLABELLED)[0]
    if not 0 < len(rows) < count:
        return dataset, np.arange(count)
    _LOG.warning("%s: %d of %d items have no class and are left out", dataset.name, count - len(rows), count)
    return replace(dataset, train=dataset.train.take(rows)), rows


def collected(dataset: Dataset, path: Path) -> tuple[Dataset, Answers]:
    """Answers from a file, joined by item; the dataset with the classes that both agree on."""
    labels = read_for(path, dataset)
    if labels.class_names != dataset.class_names:
        names = labels.class_names or tuple(str(k) for k in range(labels.num_classes))
        dataset = dataset.with_classes(names)
    try:
        rows, joined = join(labels, dataset.train.items.tolist())
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    _tell_contradictions(labels, path)
    return dataset, Answers(joined, rows, path.name)


def _tell_contradictions(labels: StochasticLabels, path: Path) -> None:
    """Say of how many items people picked different classes."""
    picked = np.nonzero(labels.answered)[0]
    pairs = {
        (item, answer) for item, answer in zip(labels.item_ids[picked], labels.answer[picked].tolist(), strict=True)
    }
    often = Counter(item for item, _ in pairs)
    torn = [item for item, count in often.items() if count > 1]
    if torn:
        _LOG.warning(
            "%s: different classes were picked for %d items, first %r: the one picked most often counts, of equals the "
            "last",
            *(path, len(torn), str(min(torn))),
        )


def read_for(path: Path, dataset: Dataset) -> StochasticLabels:
    """The labels in a file, in the dataset's classes; in the file's own where it knows more of them."""
    if not dataset.class_names:
        return StochasticLabels.read(path)
    try:
        return StochasticLabels.read(path, class_names=dataset.class_names)
    except InputError as error:
        try:
            labels = StochasticLabels.read(path)
        except InputError:
            raise error from None
        names = set(labels.class_names or map(str, range(labels.num_classes)))
        if set(dataset.class_names) < names:
            return labels
        if labels.class_names is None and labels.num_classes != dataset.num_classes:
            raise InputError(
                f"{path}: labels of {labels.num_classes} classes, {dataset.name} has {dataset.num_classes}"
            ) from error
        raise

"""The labels of a run: simulated from the true classes, ordinary, or collected answers joined to the data by item."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.data import UNLABELLED, Dataset, Split
from shortlist.errors import InputError
from shortlist.internal.names import shown_names
from shortlist.internal.streams import stream_seed
from shortlist.labels import LabelsFile, StochasticLabels, join

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answers:
    """Labels, the rows of the data that they belong to, and where they came from."""

    labels: StochasticLabels
    rows: NDArray[np.int64]
    origin: str
    """`simulated`, `ordinary`, or the file's name."""
    known: frozenset[str] = frozenset()
    """Items whose class was known, so nobody was asked about them."""

    def to_dict(self) -> dict[str, Any]:
        """What a model card says about them; reads and None answers are of the items that people were asked about."""
        asked = [item not in self.known for item in self.labels.item_ids.tolist()] if self.known else []
        summary = (self.labels.subset(np.array(asked, np.bool_)) if asked else self.labels).summary()
        return {
            "origin": self.origin,
            "items": len(self.labels),
            "known": len(self.labels) - summary.items,
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
    """Labels made from the true classes: ordinary ones if `size` is None, else uniform shortlists and their answers.

    Args:
        dataset: the training items need classes; with `named`, those that have none are left out.
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
    """Answers for the training items whose class is known, made by `draw_labels`."""
    part, rows = _labelled(dataset)
    labels = draw_labels(part, size, seed, miss=miss, slip=slip)
    return Answers(labels, rows, "ordinary" if size is None else "simulated")


def _labelled(dataset: Dataset) -> tuple[Dataset, NDArray[np.int64]]:
    """The training items whose class is known, and their rows; all items if none is known."""
    y, count = dataset.train.y, len(dataset.train)
    rows = np.arange(count) if y is None else np.nonzero(y != UNLABELLED)[0]
    if not 0 < len(rows) < count:
        return dataset, np.arange(count)
    _LOG.warning("%s: %d of %d items have no class and are left out", dataset.name, count - len(rows), count)
    return replace(dataset, train=dataset.train.take(rows)), rows


def collected(dataset: Dataset, path: Path) -> tuple[Dataset, Answers]:
    """The answers in a file, joined to the data by item; and the dataset in the classes that both agree on."""
    file = LabelsFile(path)
    labels = _in_classes_of(dataset, file)
    if labels.class_names != dataset.class_names:
        names = labels.class_names or tuple(str(k) for k in range(labels.num_classes))
        dataset = _without_others(dataset, names, path).with_classes(names)
    items = dataset.train.items.tolist()
    elsewhere = file.known.difference(items)  # labels that the project was given may be for other files
    here = np.array([item not in elsewhere for item in labels.item_ids.tolist()], np.bool_)
    if elsewhere and here.any():
        _LOG.warning("%s: %d items of known class are not in the data and are left out", path, len(elsewhere))
        labels = labels.subset(here)
    try:
        rows, joined = join(labels, items)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    _tell_contradictions(labels, path)
    _tell_unused(dataset, rows)
    return dataset, Answers(joined, rows, path.name, file.known)


def _without_others(dataset: Dataset, names: Sequence[str], path: Path) -> Dataset:
    """The dataset without those of its classes that the answers do not have: its folders may be months, say."""
    others = [k for k, name in enumerate(dataset.class_names) if name not in names]
    if not others:
        return dataset
    _LOG.warning(
        "%s: its own classes (%s) are not the %d that %s states: those count, and its own are left out",
        *(dataset.name, shown_names([dataset.class_names[k] for k in others]), len(names), path),
    )

    def cleared(split: Split | None) -> Split | None:
        if split is None or split.y is None:
            return split
        y = np.where(np.isin(split.y, others), UNLABELLED, split.y)
        return Split(split.x, None if (y == UNLABELLED).all() else y, split.items)

    train = cleared(dataset.train)
    assert train is not None
    return replace(dataset, train=train, test=cleared(dataset.test))


def _tell_unused(dataset: Dataset, rows: NDArray[np.int64]) -> None:
    """Warn that items without an answer have a class in the data: it is not learned from, as it may be for scoring."""
    if dataset.train.y is not None:
        unused = dataset.train.y != UNLABELLED
        unused[rows] = False
        if unused.any():
            _LOG.warning(
                "%s: %d items without an answer have a class in the data, which is not learned from; to learn it: "
                "`shortlist annotate add PROJECT --known`, and export again",
                *(dataset.name, int(unused.sum())),
            )


def _tell_contradictions(labels: StochasticLabels, path: Path) -> None:
    """Warn about items for which people picked different classes."""
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


def _in_classes_of(dataset: Dataset, file: LabelsFile) -> StochasticLabels:
    """The labels in the dataset's classes; in the file's own if it states others, or has more."""
    if not dataset.class_names:
        return StochasticLabels.read(file)
    try:
        return StochasticLabels.read(file, class_names=dataset.class_names)
    except InputError as error:
        try:
            labels = StochasticLabels.read(file)
        except InputError:
            raise error from None
        if labels.class_names is not None and file.states_classes:
            return labels
        if _has_more(labels, dataset.class_names):
            if not file.states_classes:
                _tell_more(labels, dataset, file.path)
            return labels
        if labels.class_names is None and labels.num_classes != dataset.num_classes:
            raise InputError(
                f"{file.path}: labels of {labels.num_classes} classes, {dataset.name} has {dataset.num_classes}"
            ) from error
        raise


def _has_more(labels: StochasticLabels, names: Sequence[str]) -> bool:
    """Whether the labels have all of these classes, and others."""
    if labels.num_classes <= len(names):
        return False
    if labels.class_names is not None:
        return set(names) < set(labels.class_names)
    digits = len(str(labels.num_classes))  # not by a set of all numbers: there may be a hundred million
    return all(
        len(name) <= digits and name.isdecimal() and name == str(int(name)) and int(name) < labels.num_classes
        for name in names
    )


def _tell_more(labels: StochasticLabels, dataset: Dataset, path: Path) -> None:
    """Warn about classes that only the answers have, which may be slips; refuse numbers that leave others out."""
    known, names = set(dataset.class_names), labels.class_names
    occur = {k: str(k) if names is None else names[k] for k in np.unique(labels.classes).tolist()}
    new = [k for k, name in occur.items() if name not in known]
    rows = np.repeat(np.arange(len(labels)), labels.sizes)[np.isin(labels.classes, new)]
    told = (
        f"{path}: the answers have classes that {dataset.name} does not have, {shown_names([occur[k] for k in new])}, "
        f"in {len(np.unique(rows))} of {len(labels)} rows (first item {str(labels.item_ids[rows[0]])!r})"
    )
    if len(known) + len(new) < labels.num_classes:
        raise InputError(f"{told}: if they are not slips, state how many there are in the column 'classes'")
    _LOG.warning("%s: they are learned as classes of their own, unless you correct them", told)

"""Stochastic labels: for every item the classes that were shown (its shortlist) and the answer, a class or NONE.

Needs numpy only. The shortlists are stored one after another in a flat array, cut by offsets, so that a million items
with ten of ten thousand classes each take 60 MB. Masks over all K classes are made on demand, in training per batch.
"""

import os
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError
from shortlist.internal.arguments import integers
from shortlist.labels.checks import (
    NONE,
    IntArray,
    LabelArrays,
    check_rows,
    checked_classes,
    checked_count,
    checked_inclusion,
    checked_items,
    checked_names,
)
from shortlist.labels.files import LabelsFile, write_labels
from shortlist.labels.lists import from_mask, from_rows, offsets_of
from shortlist.labels.simulate import simulate_labels
from shortlist.labels.summary import LabelSummary

BoolArray = NDArray[np.bool_]


class StochasticLabels:
    """The shortlists and answers of N items.

    Args:
        shown: (N, K) boolean mask of the classes shown. `from_lists` takes the lists themselves.
        answer: (N,) the class picked, or `NONE`.
        class_names: K names, kept with the labels and used in files.
        items: N identifiers that join the labels to the data; the row numbers by default.

    Raises:
        InputError: (a ValueError) names the first bad row and what is wrong with it.

    Example:
        >>> labels = StochasticLabels.draw([0, 1, 2, 3], num_classes=4, size=2, seed=0)
        >>> labels.sizes
        array([2, 2, 2, 2])
        >>> labels.candidates.sum(axis=1)[labels.answer == NONE]
        array([2, 2])
    """

    classes: NDArray[np.int32]
    """The shortlists one after another; row i is classes[offsets[i]:offsets[i + 1]]."""
    offsets: IntArray
    answer: IntArray
    num_classes: int
    class_names: tuple[str, ...] | None
    items: NDArray[np.object_] | None
    """The identifiers, as text; None stands for the row numbers."""
    inclusion: NDArray[np.float64] | None
    """For each of `classes` the probability with which it was put on its list; NaN if unknown, None if all are.

    It says how the list was chosen, before the answer: l/K in a uniform draw, or what a policy states in an export.
    """

    def __init__(
        self,
        shown: ArrayLike,
        answer: ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        items: ArrayLike | None = None,
    ) -> None:
        classes, offsets, num_classes = from_mask(shown)
        self._set(LabelArrays(classes, offsets, answer, num_classes, class_names, items), check=True)

    # -- making labels -----------------------------------------------------------------------------------------------

    @classmethod
    def from_lists(
        cls,
        shortlists: Iterable[Iterable[int]],
        answer: ArrayLike,
        num_classes: int,
        *,
        class_names: Sequence[str] | None = None,
        items: ArrayLike | None = None,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """From the shortlists themselves, which keep their order; a 2-d integer array will do if all have one size.

        `inclusion` is flat: the probability of each class to be on its list, one list after another.

        >>> StochasticLabels.from_lists([[2, 0], [1]], [0, NONE], num_classes=3).shown.astype(int)
        array([[1, 0, 1],
               [0, 1, 0]])
        """
        classes, offsets = from_rows(shortlists)
        chances = deepcopy(inclusion)  # like all the rest not the caller's to change later
        return cls._of(LabelArrays(classes, offsets, answer, num_classes, class_names, items, chances), check=True)

    @classmethod
    def draw(
        cls,
        y: ArrayLike,
        *,
        num_classes: int,
        size: int | ArrayLike,
        seed: int,
        miss: float = 0.0,
        slip: float = 0.0,
        class_names: Sequence[str] | None = None,
        items: ArrayLike | None = None,
    ) -> Self:
        """Simulate people: a uniform shortlist for each item, answered from its true class.

        Args:
            y: (N,) true classes.
            num_classes: K.
            size: classes on a list, 1 <= l <= K; one number, or one per item. At l = K there is no None.
            seed: decides the draw, the same on every machine.
            miss: how often people answer None although the true class was shown.
            slip: how often people pick a wrong class of those shown, if there is one.
            class_names: as in the constructor.
            items: as in the constructor.
        """
        drawn = simulate_labels(y, num_classes, size, seed, miss, slip)
        return cls._of(replace(drawn, class_names=class_names, items=items))

    @classmethod
    def ordinary(
        cls,
        y: ArrayLike,
        *,
        num_classes: int,
        class_names: Sequence[str] | None = None,
        items: ArrayLike | None = None,
    ) -> Self:
        """Ordinary labels: every class was shown and the true one picked, at a cost of K reads per item."""
        num_classes = checked_count(num_classes)
        truth = integers("y", y, (0, num_classes))
        classes = np.tile(np.arange(num_classes, dtype=np.int32), len(truth))
        offsets = np.arange(len(truth) + 1) * num_classes
        certain = np.broadcast_to(1.0, classes.shape)
        return cls._of(LabelArrays(classes, offsets, truth, num_classes, class_names, items, certain), check=True)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """The parts one after another; they must have the same classes. Rows without identifiers are renumbered."""
        if not parts:
            raise InputError("concatenate: expected at least one set of labels")
        first = parts[0]
        for i, part in enumerate(parts):
            if part.num_classes != first.num_classes or part.class_names != first.class_names:
                raise InputError(f"concatenate: part {i} has other classes than part 0")
        with_items = [part.items for part in parts if part.items is not None]
        if with_items and len(with_items) != len(parts):
            raise InputError("concatenate: some parts have item identifiers and some have none")
        return cls._of(
            LabelArrays(
                np.concatenate([part.classes for part in parts]),
                offsets_of(np.concatenate([part.sizes for part in parts])),
                np.concatenate([part.answer for part in parts]),
                first.num_classes,
                first.class_names,
                np.concatenate(with_items) if with_items else None,
                np.concatenate([_known(part) for part in parts]),
            )
        )

    def subset(self, rows: ArrayLike) -> Self:
        """The rows given (indices or a boolean mask), in that order; they keep their identifiers (row numbers too)."""
        index = self._index(rows)
        labels = self._take(index)
        labels.items = self.item_ids[index]
        return labels

    def __getitem__(self, rows: Any) -> Self:
        """`labels[rows]`, the `subset`: with `shape` scikit-learn cuts labels into folds as it cuts items."""
        return self.subset(np.arange(len(self))[rows])

    def _index(self, rows: ArrayLike) -> IntArray:
        chosen = np.atleast_1d(np.asarray(rows))
        index: IntArray = np.arange(len(self))[chosen if chosen.size else chosen.astype(np.int64)]
        return index

    def _take(self, index: IntArray) -> Self:
        """A subset without identifiers, which would take the longest."""
        sizes = self.sizes[index]
        offsets = offsets_of(sizes)
        # place k of the new list i is place k of the old list index[i]
        source = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], sizes)
        classes, answer, names = self.classes[source], self.answer[index], self.class_names
        inclusion = None if self.inclusion is None else self.inclusion[source]
        return self._of(LabelArrays(classes, offsets, answer, self.num_classes, names, None, inclusion))

    # -- what they hold ----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.answer)

    def __repr__(self) -> str:
        sizes = f"size {self.sizes[0]}" if len(set(self.sizes.tolist())) == 1 else "sizes vary"
        return f"StochasticLabels({len(self)} items, {self.num_classes} classes, {sizes}, None {self.none_share:.1%})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StochasticLabels)
            and self.num_classes == other.num_classes
            and self.class_names == other.class_names
            and np.array_equal(self.answer, other.answer)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.classes, other.classes)
            and np.array_equal(self.item_ids, other.item_ids)
            and np.array_equal(_known(self), _known(other), equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def shortlist(self, row: int) -> NDArray[np.int32]:
        """The classes shown for one item, in their order."""
        row = range(len(self))[row]  # a negative row counts from the end, one that is not there is refused
        return self.classes[self.offsets[row] : self.offsets[row + 1]]

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        return len(self), self.num_classes

    @property
    def item_ids(self) -> NDArray[np.object_]:
        """(N,) the identifiers of the items as text: those given, or the row numbers."""
        if self.items is not None:
            return self.items
        return np.array([str(row) for row in range(len(self))], dtype=object)

    @property
    def sizes(self) -> IntArray:
        """(N,) how many classes each item was shown."""
        return np.diff(self.offsets)

    @property
    def answered(self) -> BoolArray:
        """(N,) whether the answer is a class."""
        return np.not_equal(self.answer, NONE)

    @property
    def none_share(self) -> float:
        """The share of None answers."""
        return float(np.mean(self.answer == NONE)) if len(self) else 0.0

    @property
    def reads(self) -> int:
        """Class names shown to people in all: the cost."""
        return int(self.offsets[-1])

    def mask(self, rows: ArrayLike | None = None) -> BoolArray:
        """(B, K) mask of the classes shown, for the rows given or for all."""
        part = self if rows is None else self._take(self._index(rows))
        mask = np.zeros((len(part), self.num_classes), np.bool_)
        mask[np.repeat(np.arange(len(part)), part.sizes), part.classes] = True
        return mask

    @property
    def shown(self) -> BoolArray:
        """(N, K) mask of the classes shown; it takes N K bytes and is made anew at each call."""
        return self.mask()

    @property
    def candidates(self) -> BoolArray:
        """(N, K) mask of the classes still possible: the answer alone, or all that were not shown."""
        possible: BoolArray = ~self.mask()
        possible[self.answered] = False
        possible[self.answered, self.answer[self.answered]] = True
        return possible

    @property
    def complementary(self) -> BoolArray:
        """(N, K) mask of the classes ruled out: the complement of `candidates`."""
        return ~self.candidates

    @property
    def one_hot(self) -> NDArray[np.float32]:
        """(N, K) the answers one-hot; None is a row of zeros."""
        encoded = np.zeros(self.shape, np.float32)
        encoded[self.answered, self.answer[self.answered]] = 1
        return encoded

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """(K + 1,) P(s), the share of each answer, None last; the paper's Eq. (9)."""
        slots = np.where(self.answered, self.answer, self.num_classes)
        return np.bincount(slots, minlength=self.num_classes + 1) / max(len(self), 1)

    def padded(self) -> IntArray:
        """(N, longest) the shortlists as one array; short rows are filled up with K, which is no class."""
        sizes = self.sizes
        rectangle = np.full((len(self), int(sizes.max(initial=0))), self.num_classes, np.int64)
        rectangle[np.arange(rectangle.shape[1]) < sizes[:, None]] = self.classes
        return rectangle

    def summary(self) -> LabelSummary:
        """What they hold and what they cost, in a few numbers."""
        sizes, counts = np.unique(self.sizes, return_counts=True)
        return LabelSummary(
            items=len(self),
            num_classes=self.num_classes,
            none_share=self.none_share,
            reads=self.reads,
            answers_per_class=np.bincount(self.answer[self.answered], minlength=self.num_classes),
            size_histogram=dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        )

    # -- files -------------------------------------------------------------------------------------------------------

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a .csv, .jsonl or .parquet file (docs/files.md), whole or not at all."""
        K, names, items = self.num_classes, self.class_names, self.item_ids
        write_labels(LabelArrays(self.classes, self.offsets, self.answer, K, names, items, self.inclusion), path)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str] | LabelsFile,
        *,
        class_names: Sequence[str] | None = None,
        num_classes: int | None = None,
    ) -> Self:
        """Read what `write` wrote, or a file made elsewhere with the same columns.

        Args:
            path: the file, or a `LabelsFile` that was read before.
            class_names: all classes in their order. Say them for a file made elsewhere: it may not name classes that
                were never shown.
            num_classes: the same for a file that holds indices instead of names.

        Raises:
            InputError: names the file, the row and what is wrong with it.
        """
        file = path if isinstance(path, LabelsFile) else LabelsFile(path)
        return cls._of(file.arrays(class_names, num_classes))

    # -- inside ------------------------------------------------------------------------------------------------------

    @classmethod
    def _of(cls, arrays: LabelArrays, *, check: bool = False) -> Self:
        labels = cls.__new__(cls)
        labels._set(arrays, check=check)
        return labels

    def _set(self, arrays: LabelArrays, *, check: bool) -> None:
        """Take the arrays over; `check` the rows unless they were drawn, read or taken from other labels."""
        self.num_classes = checked_count(arrays.num_classes)
        self.offsets = arrays.offsets.astype(np.int64, copy=False)
        self.classes = checked_classes(arrays.classes, self.offsets, self.num_classes)
        self.answer = integers("answer", arrays.answer, (NONE, self.num_classes))
        count = len(self.offsets) - 1
        if self.answer.shape != (count,):
            raise InputError(f"answer: expected {count} of them, one per shortlist, got shape {self.answer.shape}")
        self.class_names = checked_names(arrays.class_names, self.num_classes)
        self.items = checked_items(arrays.items, count)
        self.inclusion = checked_inclusion(arrays.inclusion, self.offsets)
        if check:
            check_rows(self.classes, self.offsets, self.answer, self.num_classes, self.class_names)


def _known(labels: StochasticLabels) -> NDArray[np.float64]:
    """The inclusion probabilities, all NaN if there are none."""
    return np.broadcast_to(np.nan, labels.classes.shape) if labels.inclusion is None else labels.inclusion

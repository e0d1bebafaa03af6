"""Stochastic labels: for every item the classes that were shown (its shortlist) and the answer, a class or NONE.

Needs numpy only. The shortlists are kept as the classes shown, one flat array cut by offsets, so a million items with
ten of ten thousand classes each take 60 MB; masks over all K classes are made on demand, per batch in training.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.arguments import integers, whole
from shortlist.errors import InputError
from shortlist.labels.checks import NONE, IntArray, check_rows
from shortlist.labels.draw import answer_shortlists, draw_shortlists

__all__ = ["NONE", "LabelSummary", "StochasticLabels"]

BoolArray = NDArray[np.bool_]
MOST_CLASSES = 2**31 - 1
"""Classes are kept as int32."""


@dataclass(frozen=True)
class LabelSummary:
    """What a set of stochastic labels holds and what it cost to collect."""

    items: int
    num_classes: int
    none_share: float
    reads: int
    """Class names shown to people in all, None not counted."""
    answers_per_class: IntArray
    size_histogram: dict[int, int]
    """How many items have a shortlist of each size."""


class StochasticLabels:
    """The shortlists and answers of N items.

    Args:
        shown: (N, K) boolean mask of the classes shown. `from_lists` takes the lists themselves.
        answer: (N,) the class picked, or `NONE`.
        class_names: K names, kept with the labels and used in files.
        items: N identifiers that join the labels to the data; row numbers where not given.

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
    """Identifiers are text; None stands for the row numbers."""

    def __init__(
        self,
        shown: ArrayLike,
        answer: ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        items: ArrayLike | None = None,
    ) -> None:
        mask = np.asarray(shown)
        if mask.ndim != 2:
            raise InputError(f"shown: expected an (N, K) mask, got shape {mask.shape}")
        if mask.dtype != np.bool_:
            if not np.isin(mask, (0, 1)).all():
                raise InputError(f"shown: expected a mask of booleans (or 0 and 1), got {mask.dtype} values")
            mask = mask.astype(np.bool_)
        rows, classes = np.nonzero(mask)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(mask)))])
        self._fill(classes, offsets, answer, mask.shape[1], class_names, items)
        check_rows(self.classes, self.offsets, self.answer, self.num_classes, self.class_names)

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
    ) -> Self:
        """From the shortlists themselves, kept in their order; a 2-d integer array where all have one size.

        >>> StochasticLabels.from_lists([[2, 0], [1]], [0, NONE], num_classes=3).shown.astype(int)
        array([[1, 0, 1],
               [0, 1, 0]])
        """
        if isinstance(shortlists, np.ndarray) and shortlists.ndim == 2:
            flat: NDArray[Any] = shortlists.flatten()  # a copy: the labels are not the caller's to change
            sizes = np.full(len(shortlists), shortlists.shape[1])
        else:
            rows = [np.asarray(list(row)) for row in shortlists]
            for i, row in enumerate(rows):
                if row.ndim != 1:
                    raise InputError(f"row {i}: expected a flat list of classes, got shape {row.shape}")
            sizes = np.array([len(row) for row in rows], dtype=np.int64)
            # a dtype for the empty case only: floats must reach the check below
            flat = np.concatenate([row for row in rows if len(row)]) if sizes.any() else np.empty(0, np.int64)
        return cls._from_flat(flat, np.concatenate([[0], np.cumsum(sizes)]), answer, num_classes, class_names, items)

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
        """Simulate the mechanism: a uniform shortlist for each item, answered from its true class.

        Args:
            y: (N,) true classes.
            num_classes: K.
            size: classes on a list, 1 <= l <= K; one number, or one per item. At l = K there is no None.
            seed: decides the draw, the same on every machine.
            miss: how often an annotator answers None although the true class was shown.
            slip: how often an annotator picks a wrong class of those shown (where there is one).
        """
        num_classes = whole("num_classes", num_classes)
        truth = integers("y", y, (0, num_classes))
        if truth.ndim != 1:
            raise InputError(f"y: expected one class an item, got shape {truth.shape}")
        sizes = np.asarray(size)
        if sizes.ndim not in (0, 1) or (sizes.ndim == 1 and len(sizes) != len(truth)):
            raise InputError(f"size: expected one number or {len(truth)} of them, got shape {sizes.shape}")
        sizes = np.broadcast_to(integers("size", sizes, (1, num_classes + 1)), truth.shape)
        if not (miss >= 0 and slip >= 0 and miss + slip <= 1):  # as a positive, so that NaN is refused too
            raise InputError(f"miss and slip: expected shares with a sum of at most 1, got {miss} and {slip}")
        if whole("seed", seed) < 0:  # no seed would be another draw each time
            raise InputError(f"seed: expected a whole number of at least 0, got {seed}")
        # the lists and the mistakes come from separate streams, so asking for mistakes does not change the lists
        list_seed, mistake_seed = np.random.SeedSequence(seed).spawn(2)
        classes, offsets = draw_shortlists(np.random.Generator(np.random.PCG64(list_seed)), num_classes, sizes)
        rng = np.random.Generator(np.random.PCG64(mistake_seed))
        answer = answer_shortlists(rng, classes, offsets, truth, num_classes, miss, slip, NONE)
        labels = cls.__new__(cls)
        labels._fill(classes, offsets, answer, num_classes, class_names, items)
        return labels

    @classmethod
    def ordinary(
        cls,
        y: ArrayLike,
        *,
        num_classes: int,
        class_names: Sequence[str] | None = None,
        items: ArrayLike | None = None,
    ) -> Self:
        """Ordinary labels: every class was shown and the true one picked, at a cost of K reads an item."""
        num_classes = whole("num_classes", num_classes)
        truth = integers("y", y, (0, num_classes))
        classes = np.tile(np.arange(num_classes, dtype=np.int32), len(truth))
        return cls._from_flat(classes, np.arange(len(truth) + 1) * num_classes, truth, num_classes, class_names, items)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """One after another; the parts must agree on the classes. Without identifiers the rows are numbered anew."""
        if not parts:
            raise InputError("concatenate: expected at least one set of labels")
        first = parts[0]
        for i, part in enumerate(parts):
            if part.num_classes != first.num_classes or part.class_names != first.class_names:
                raise InputError(f"concatenate: part {i} has other classes than part 0")
        with_items = [part.items for part in parts if part.items is not None]
        if with_items and len(with_items) != len(parts):
            raise InputError("concatenate: some parts have item identifiers and some have none")
        labels = cls.__new__(cls)
        labels._fill(
            np.concatenate([part.classes for part in parts]),
            np.concatenate([[0], np.cumsum(np.concatenate([part.sizes for part in parts]))]),
            np.concatenate([part.answer for part in parts]),
            first.num_classes,
            first.class_names,
            np.concatenate(with_items) if with_items else None,
        )
        return labels

    def subset(self, rows: ArrayLike) -> Self:
        """The rows given (indices or a boolean mask), in that order; they keep their identifiers (row numbers too)."""
        labels = self._take(rows)
        labels.items = self.item_ids[self._index(rows)]
        return labels

    def _index(self, rows: ArrayLike) -> IntArray:
        chosen = np.atleast_1d(np.asarray(rows))
        index: IntArray = np.arange(len(self))[chosen if chosen.size else chosen.astype(np.int64)]
        return index

    def _take(self, rows: ArrayLike) -> Self:
        """A subset without identifiers: cheap enough to make for each batch."""
        index = self._index(rows)
        sizes = self.sizes[index]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        # position k of row i in the new flat array came from the old row's start + k
        source = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], sizes)
        labels = self.__class__.__new__(self.__class__)
        labels._fill(self.classes[source], offsets, self.answer[index], self.num_classes, self.class_names, None)
        return labels

    # -- reading them off --------------------------------------------------------------------------------------------

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
        )

    __hash__ = None  # type: ignore[assignment]

    def shortlist(self, row: int) -> NDArray[np.int32]:
        """The classes shown for one item, in their order."""
        row = range(len(self))[row]  # counts from the end, and refuses what is not there, as a list does
        return self.classes[self.offsets[row] : self.offsets[row + 1]]

    @property
    def item_ids(self) -> NDArray[np.object_]:
        """(N,) the identifiers of the items, as text: those given, or the row numbers."""
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
        """(B, K) mask of the classes shown, for some rows or all."""
        part = self if rows is None else self._take(rows)
        mask = np.zeros((len(part), self.num_classes), np.bool_)
        mask[np.repeat(np.arange(len(part)), part.sizes), part.classes] = True
        return mask

    @property
    def shown(self) -> BoolArray:
        """(N, K) mask of the classes shown; N times K bytes, made anew at each call."""
        return self.mask()

    @property
    def candidates(self) -> BoolArray:
        """(N, K) mask of the classes still possible: the answer alone, or all that were not shown."""
        possible: BoolArray = ~self.mask()
        possible[self.answered] = False
        possible[np.nonzero(self.answered)[0], self.answer[self.answered]] = True
        return possible

    @property
    def complementary(self) -> BoolArray:
        """(N, K) mask of the classes ruled out: the complement of `candidates`."""
        return ~self.candidates

    @property
    def one_hot(self) -> NDArray[np.float32]:
        """(N, K) the answers one-hot; a row of zeros for None."""
        rows = np.nonzero(self.answered)[0]
        encoded = np.zeros((len(self), self.num_classes), np.float32)
        encoded[rows, self.answer[rows]] = 1
        return encoded

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """(K + 1,) P(s): the share of each answer, None last (the paper's Eq. 9)."""
        slots = np.where(self.answered, self.answer, self.num_classes)
        return np.bincount(slots, minlength=self.num_classes + 1) / max(len(self), 1)

    def padded(self) -> IntArray:
        """(N, longest) the shortlists as one rectangle, short rows filled up with K."""
        sizes = self.sizes
        rectangle = np.full((len(self), int(sizes.max(initial=0))), self.num_classes, np.int64)
        rectangle[np.arange(rectangle.shape[1]) < sizes[:, None]] = self.classes
        return rectangle

    def summary(self) -> LabelSummary:
        """None share, reads, answers per class, size histogram."""
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
        """Write .csv, .jsonl or .parquet (columns item, shortlist, answer), whole or not at all."""
        from shortlist.labels.files import write_labels

        write_labels(self, path)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        class_names: Sequence[str] | None = None,
        num_classes: int | None = None,
    ) -> "StochasticLabels":
        """Read what `write` wrote, or a file made elsewhere with the same columns.

        A file does not name classes that were never shown, so say `class_names` (or `num_classes` where the file holds
        indices) unless Shortlist wrote it.

        Raises:
            InputError: names the file, the row and what is wrong with it.
        """
        from shortlist.labels.files import read_labels

        return read_labels(path, class_names=class_names, num_classes=num_classes)

    # -- inside ------------------------------------------------------------------------------------------------------

    @classmethod
    def _from_flat(
        cls,
        classes: NDArray[Any],
        offsets: NDArray[Any],
        answer: ArrayLike,
        num_classes: int,
        class_names: Sequence[str] | None,
        items: ArrayLike | None,
    ) -> Self:
        if len(classes) and not np.issubdtype(classes.dtype, np.integer):
            raise InputError(f"shortlists: expected class indices (integers), got {classes.dtype}")
        labels = cls.__new__(cls)
        labels._fill(classes, offsets, answer, num_classes, class_names, items)
        check_rows(labels.classes, labels.offsets, labels.answer, labels.num_classes, labels.class_names)
        return labels

    def _fill(
        self,
        classes: NDArray[Any],
        offsets: NDArray[Any],
        answer: ArrayLike,
        num_classes: int,
        class_names: Sequence[str] | None,
        items: ArrayLike | None,
    ) -> None:
        num_classes = whole("num_classes", num_classes)
        if not 2 <= num_classes <= MOST_CLASSES:
            raise InputError(f"num_classes: expected 2..{MOST_CLASSES}, got {num_classes}")
        self.num_classes = num_classes
        self.offsets = offsets.astype(np.int64, copy=False)
        # before the cast: an int32 would hide a class of 2**32 + 1
        outside = np.nonzero((classes < 0) | (classes >= num_classes))[0]
        if len(outside):
            row = int(np.searchsorted(self.offsets, outside[0], side="right")) - 1
            raise InputError(f"row {row}: class {classes[outside[0]]} is out of range, expected 0..{num_classes - 1}")
        self.classes = classes.astype(np.int32, copy=False)
        self.answer = integers("answer", answer, (NONE, num_classes))
        if self.answer.shape != (len(self.offsets) - 1,):
            raise InputError(
                f"answer: expected {len(self.offsets) - 1} of them, one a shortlist, got shape {self.answer.shape}"
            )
        self.class_names = None if class_names is None else tuple(str(name) for name in class_names)
        if self.class_names is not None:
            if len(self.class_names) != num_classes:
                raise InputError(f"class_names: expected {num_classes} names, got {len(self.class_names)}")
            if len(set(self.class_names)) != num_classes:
                raise InputError("class_names: a name occurs twice")
            if "" in self.class_names:  # in files an empty answer means None
                raise InputError("class_names: a name is empty")
        self.items = None
        if items is not None:
            identifiers = np.asarray(items, dtype=object)
            if identifiers.shape != self.answer.shape:
                raise InputError(f"items: expected {len(self.answer)} identifiers, got shape {identifiers.shape}")
            self.items = np.array([str(item) for item in identifiers.tolist()], dtype=object)

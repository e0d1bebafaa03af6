"""What the answers on each item say, P(answers | y), in memory that grows with the answers. Needs numpy only.

An answer says the same about all classes that were not on its list. So an item's likelihood is one value, the `rest`,
for every class except the few that were shown or typed, the exceptions. As a table a million items of a thousand
classes would take 4 GB; here an answered item takes a few bytes per exception, and an unasked one only its `rest` of 1.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.noise import IntArray, Log, Mistakes, answer_chances

Matrix = NDArray[np.float32]
LEAST = 1e-30
"""The least likelihood of a class if mistakes are modelled, so that none is ever ruled out for good."""


@dataclass(frozen=True)
class Answers:
    """The likelihoods of B items: `rest` for every class except the exceptions, which are stored item by item.

    >>> Answers.known(np.array([2, 0]), 3).table().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    rest: NDArray[np.floating]
    """(B,) the likelihood that all classes but the exceptions share."""
    offsets: IntArray
    """(B + 1,) where the exceptions of each item begin."""
    classes: NDArray[np.integer]
    """The class of each exception, rising within an item."""
    values: NDArray[np.floating]
    num_classes: int

    @classmethod
    def known(cls, classes: IntArray, num_classes: int) -> Self:
        """Items whose class is known: 1 for it, 0 for all others."""
        count = len(classes)
        ones = np.ones(count, np.float32)
        return cls(np.zeros(count, np.float32), np.arange(count + 1), classes.astype(np.int32), ones, num_classes)

    @classmethod
    def from_table(cls, table: NDArray[np.floating]) -> Self:
        """From a (B, K) table; a row's `rest` is 0 or its largest value, whichever leaves fewer exceptions."""
        top = table.max(axis=1, initial=0)
        rest = np.where((table == 0).sum(axis=1) >= (table == top[:, None]).sum(axis=1), 0, top).astype(np.float32)
        rows, classes = np.nonzero(table != rest[:, None])
        values = np.asarray(table[rows, classes], np.float32)
        return cls(rest, _offsets(rows, len(table)), classes.astype(np.int32), values, table.shape[1])

    def __len__(self) -> int:
        return len(self.rest)

    def __getitem__(self, part: slice) -> "Answers":
        cuts = self.offsets[part.start : part.stop + 1]
        own = slice(cuts[0], cuts[-1])
        return Answers(self.rest[part], cuts - cuts[0], self.classes[own], self.values[own], self.num_classes)

    @property
    def rows(self) -> IntArray:
        """The item of each exception."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def blank(self) -> bool:
        """Whether the answers say nothing about any of these items."""
        return not len(self.classes) and bool((self.rest == 1).all())

    @property
    def possible(self) -> IntArray:
        """(B,) the number of classes with a likelihood above 0."""
        exceptions, positive = np.diff(self.offsets), np.bincount(self.rows[self.values > 0], minlength=len(self))
        return positive + np.where(self.rest > 0, self.num_classes - exceptions, 0)

    def table(self) -> Matrix:
        """(B, K) the likelihood of every class."""
        full: Matrix = np.repeat(np.asarray(self.rest, np.float32)[:, None], self.num_classes, axis=1)
        full[self.rows, self.classes] = self.values
        return full

    def at(self, classes: IntArray) -> Matrix:
        """(B,) the likelihood of one class of each item."""
        found: Matrix = np.array(self.rest, np.float32)
        rows = self.rows
        mine = self.classes == classes[rows]
        found[rows[mine]] = self.values[mine]
        return found

    def weighted(self, weights: NDArray[np.floating]) -> NDArray[np.float64]:
        """(B,) sum_y P(answers | y) weight(y)."""
        weights = np.asarray(weights, np.float64)
        shown = np.bincount(self.rows, weights[self.classes] * self.values, len(self))
        hidden = np.maximum(weights.sum() - np.bincount(self.rows, weights[self.classes], len(self)), 0)
        total: NDArray[np.float64] = self.rest * hidden + shown
        return total

    def times(self, other: "Answers") -> "Answers":
        """The product of the likelihoods, class by class, in double precision."""
        mine, theirs = (self._keys(), other._keys())
        keys = np.union1d(mine, theirs)
        rows, classes = np.divmod(keys, self.num_classes)
        left, right = self.rest[rows].astype(np.float64), other.rest[rows].astype(np.float64)
        left[np.searchsorted(keys, mine)] = self.values
        right[np.searchsorted(keys, theirs)] = other.values
        rest = self.rest.astype(np.float64) * other.rest
        return Answers(rest, _offsets(rows, len(self)), classes.astype(np.int32), left * right, self.num_classes)

    def _keys(self) -> IntArray:
        return self.rows * self.num_classes + self.classes

    def scaled(self, least: float) -> tuple["Answers", NDArray[np.bool_]]:
        """Scaled to a largest value of 1 per item, with values below `least` raised to it.

        Also (B,) which items have no possible class; theirs become 1 for every class.
        """
        top = np.where(np.diff(self.offsets) < self.num_classes, self.rest, 0)
        np.maximum.at(top, self.rows, self.values)
        lost = top <= 0
        top[lost] = 1
        rest = np.maximum(np.where(lost, 1, self.rest / top), least).astype(np.float32)
        values = np.maximum(self.values / top[self.rows], least).astype(np.float32)
        kept = (values != rest[self.rows]) & ~lost[self.rows]
        offsets = _offsets(self.rows[kept], len(self))
        return Answers(rest, offsets, self.classes[kept], values[kept], self.num_classes), lost

    def likeliest(self) -> "Answers":
        """1 for the classes with a likelihood of at least 0.5, and 0 for the others; the largest must be 1.

        >>> Answers.from_table(np.array([[1, 0.02, 0.003], [0.05, 1, 1]])).likeliest().table().tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
        """
        rest, values = ((part >= 0.5).astype(np.float32) for part in (self.rest, self.values))
        return Answers(rest, self.offsets, self.classes, values, self.num_classes)


def likelihood_of(mistakes: Mistakes, log: Log, num_classes: int) -> Answers:
    """`noise.likelihood` of every question in the log, as `Answers`."""
    rest, rows, classes, values = answer_chances(mistakes, log, num_classes)
    keys, last = np.unique((rows * num_classes + classes)[::-1], return_index=True)
    rows, classes = np.divmod(keys, num_classes)
    return Answers(rest, _offsets(rows, len(log)), classes.astype(np.int32), values[::-1][last], num_classes)


class AnswerTable:
    """The likelihoods of N items, which are replaced item by item as answers come."""

    def __init__(self, num_items: int, num_classes: int) -> None:
        self.num_classes = num_classes
        self.rest = np.ones(num_items, np.float32)
        self.possible = np.full(num_items, num_classes, np.int32)
        """(N,) the number of classes of each item with a likelihood above 0."""
        self._begin = np.zeros(num_items, np.int64)
        self._count = np.zeros(num_items, np.int32)
        self._classes, self._values = np.empty(0, np.int32), np.empty(0, np.float32)
        self._used = 0

    def __len__(self) -> int:
        return len(self.rest)

    def __getitem__(self, rows: IntArray) -> Matrix:
        """(B, K) the likelihoods of some items as a table."""
        return self.take(rows).table()

    def take(self, rows: IntArray) -> Answers:
        """The likelihoods of some items."""
        count = self._count[rows]
        offsets = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
        places = np.arange(offsets[-1]) + np.repeat(self._begin[rows] - offsets[:-1], count)
        return Answers(self.rest[rows], offsets, self._classes[places], self._values[places], self.num_classes)

    def put(self, rows: IntArray, answers: Answers) -> None:
        """Replace the likelihoods of some items, each of which occurs once."""
        size = len(answers.classes)
        if self._used + size > len(self._classes):
            self._make_room(size)
        self._classes[self._used : self._used + size] = answers.classes
        self._values[self._used : self._used + size] = answers.values
        self.rest[rows], self.possible[rows] = answers.rest, answers.possible
        self._begin[rows], self._count[rows] = self._used + answers.offsets[:-1], np.diff(answers.offsets)
        self._used += size

    def _make_room(self, size: int) -> None:
        """Drop what was replaced, and make room for as much again."""
        live = self.take(np.arange(len(self)))
        self._used = len(live.classes)
        self._begin = live.offsets[:-1].copy()
        room = 2 * self._used + size
        self._classes, self._values = np.resize(live.classes, room), np.resize(live.values, room)


def _offsets(rows: IntArray, count: int) -> IntArray:
    """(count + 1,) where each item's entries begin, given the item of each entry in rising order."""
    offsets: IntArray = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count), dtype=np.int64)])
    return offsets

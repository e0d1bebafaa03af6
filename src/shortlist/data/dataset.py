"""What every source gives: a training split, perhaps a test split, and the names of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError, unknown_name
from shortlist.internal.arguments import whole

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Kind: TypeAlias = Literal["image", "text", "features"]
Inputs: TypeAlias = "NDArray[Any] | csr_matrix | list[str]"

NUMBERS = "buif"
"""The kinds of real numbers, as numpy names them."""
UNLABELLED = -1
"""The value in `Split.y` for an item whose class is not known."""


@dataclass(frozen=True, eq=False)
class Split:
    """Some items and, where known, their classes.

    Attributes:
        x: images uint8 (N, C, H, W), features float32 (N, D) or scipy CSR, or a list of N texts; tensors and data
            frames become arrays.
        y: int64 (N,), `UNLABELLED` for an item whose class is not known; None if no class is known.
        items: (N,) names of the items, by which labels are joined; by default the row numbers.
    """

    x: Inputs
    y: NDArray[np.int64] | None = None
    items: NDArray[np.str_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", as_inputs(self.x))
        n = len(self)
        if self.items is None:
            object.__setattr__(self, "items", np.arange(n).astype(np.str_))
        if self.y is not None:
            object.__setattr__(self, "y", _whole(self.y))
            if self.y.shape != (n,):
                raise InputError(f"{n} items need y of shape ({n},), got {self.y.shape}")
        if len(self.items) != n:
            raise InputError(f"{n} items need {n} names, got {len(self.items)}")

    def __repr__(self) -> str:
        known = "labelled" if self.y is not None and (self.y != UNLABELLED).all() else "labelled in part"
        return f"Split({_shape(self.x)}, {'unlabelled' if self.y is None else known})"

    def __len__(self) -> int:
        return len(self.x) if isinstance(self.x, list) else int(self.x.shape[0])

    def take(self, index: NDArray[Any] | Sequence[int]) -> Split:
        """The items at `index` (positions or a bool mask), in that order."""
        rows = np.asarray(index)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        x = [self.x[i] for i in rows] if isinstance(self.x, list) else self.x[rows]
        return Split(x, None if self.y is None else self.y[rows], self.items[rows])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training split, perhaps a test split, and what is known about them.

    Attributes:
        name: the name it was loaded by.
        train: the items to learn from.
        test: the items to score on, or None.
        class_names: the K classes, which `y` counts from 0. Empty for unlabelled data without stated classes.
        kind: what `x` holds.
        flips: whether images may be mirrored left to right without changing the class (not so for characters).
    """

    name: str
    train: Split
    test: Split | None
    class_names: tuple[str, ...]
    kind: Kind
    flips: bool = False

    def __post_init__(self) -> None:
        for where, split in (("train", self.train), ("test", self.test)):
            if split is None or split.y is None or len(split.y) == 0:
                continue
            low, high = int(split.y.min()), int(split.y.max())
            if low < UNLABELLED or high >= self.num_classes:
                wrong = low if low < UNLABELLED else high
                raise InputError(
                    f"{self.name}: class {wrong} in the {where} labels, expected 0 to {self.num_classes - 1}"
                )

    def __repr__(self) -> str:
        test = "no test set" if self.test is None else f"test {_shape(self.test.x)}"
        return f"Dataset({self.name!r}, {self.kind}, {self.num_classes} classes, train {_shape(self.train.x)}, {test})"

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.class_names)

    @property
    def in_shape(self) -> tuple[int, ...]:
        """The shape of one item, (C, H, W) or (D,)."""
        if isinstance(self.train.x, list):
            raise InputError(f"{self.name}: texts have no shape until they are features (data.text)")
        return tuple(int(size) for size in self.train.x.shape[1:])

    def only_classes(self, classes: Sequence[int | str]) -> Dataset:
        """Only the items of these classes, relabelled 0, 1, ... in the order given (the paper's Tables 3-5).

        Args:
            classes: indices (from 0) or names. The paper counts from 1: its classes 4-9 are `range(3, 9)`.

        >>> from shortlist.data import load
        >>> part = load("digits").only_classes(range(3, 9))
        >>> part.class_names, sorted(set(part.train.y.tolist()))
        (('3', '4', '5', '6', '7', '8'), [0, 1, 2, 3, 4, 5])
        """
        index = [self._class_index(c) for c in classes]
        if len(set(index)) != len(index):
            raise InputError(f"{self.name}: a class is named twice in {list(classes)}")
        if len(index) < 2:
            raise InputError(f"{self.name}: at least 2 classes are needed, got {len(index)}")
        new = np.full(self.num_classes + 1, UNLABELLED, np.int64)  # the last entry is for UNLABELLED, -1
        new[index] = np.arange(len(index))
        return replace(
            self,
            train=_relabelled(self.train, new),
            test=None if self.test is None else _relabelled(self.test, new),
            class_names=tuple(self.class_names[i] for i in index),
        )

    def with_classes(self, class_names: Sequence[str]) -> Dataset:
        """The same items with the classes in this order; there may be more of them than occur.

        It is for answers from a labels file that has classes which the data has not.
        """
        wanted = tuple(str(name) for name in class_names)
        if len(set(wanted)) != len(wanted):
            raise InputError(f"{self.name}: a class is named twice in the class names")
        place = {name: i for i, name in enumerate(wanted)}
        splits = (self.train, self.test)
        occurring = {c for s in splits if s is not None and s.y is not None for c in np.unique(s.y).tolist()}
        for c in sorted(occurring - {UNLABELLED}):
            if self.class_names[c] not in place:
                raise InputError(f"{self.name}: class {self.class_names[c]!r} occurs but is not among the class names")
        new = np.array([place.get(name, UNLABELLED) for name in self.class_names] + [UNLABELLED], np.int64)
        train, test = (s if s is None or s.y is None else replace(s, y=new[s.y]) for s in splits)
        assert train is not None
        return replace(self, train=train, test=test, class_names=wanted)

    def with_features(self, x: Inputs, x_test: Inputs | None) -> Dataset:
        """The same items as features that were made from them; `x_test` are those of the test items."""
        test = None if self.test is None or x_test is None else replace(self.test, x=x_test)
        return replace(self, train=replace(self.train, x=x), test=test, kind="features")

    def _class_index(self, wanted: int | str) -> int:
        if isinstance(wanted, str):
            if wanted not in self.class_names:
                raise unknown_name(f"class of {self.name}", wanted, self.class_names)
            return self.class_names.index(wanted)
        index = whole(f"class of {self.name}", wanted)
        if not 0 <= index < self.num_classes:
            raise InputError(f"{self.name}: no class {index}, they are 0 to {self.num_classes - 1}")
        return index


def as_inputs(x: Any) -> Inputs:
    """`x` as `Split.x` holds it: converted if that loses nothing, else refused."""
    if isinstance(x, list):
        for i, text in enumerate(x):
            if not isinstance(text, str):
                raise InputError(
                    f"x: a list holds texts, item {i} is a {type(text).__name__}: give numbers as an array"
                )
        return x
    if hasattr(x, "tocsr"):
        rows: csr_matrix = x.tocsr()
        if rows.dtype.kind not in NUMBERS:
            raise InputError(f"x: expected a sparse matrix of real numbers, got {rows.dtype}")
        return rows
    if not hasattr(x, "__array__"):
        raise InputError(f"x: expected an array, a sparse matrix or a list of texts, got a {type(x).__name__}")
    array: NDArray[Any] = np.asanyarray(x)  # a memory map stays one
    if array.ndim < 2 or array.dtype.kind not in NUMBERS:
        raise InputError(
            f"x: expected numbers of shape (N, ...), or a list of texts, got {array.dtype} of shape {array.shape}"
        )
    return array


def _whole(y: Any) -> NDArray[np.int64]:
    """Classes as int64; a float such as 3.5, or a name, is refused."""
    array = np.asarray(y)
    if array.dtype.kind == "O" and all(isinstance(value, Real) for value in array.flat):
        array = array.astype(np.float64)  # numbers in a column that may hold anything
    if array.dtype.kind in NUMBERS:
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64, copy=False)
        wrong = array[whole != array].tolist()
        if not wrong:
            return whole
    else:
        wrong = [value for value in array.ravel().tolist() if not isinstance(value, Real)]
    raise InputError(f"y: expected whole numbers that count the classes from 0, got {wrong[:1]}")


def _shape(x: Inputs) -> str:
    return f"{len(x):,} texts" if isinstance(x, list) else "x".join(str(size) for size in x.shape)


def _relabelled(split: Split, new: NDArray[np.int64]) -> Split:
    if split.y is None:
        raise InputError("classes can be chosen only where the labels are known")
    y = new[split.y]
    kept = split.take(y != UNLABELLED)
    return Split(kept.x, y[y != UNLABELLED], kept.items)

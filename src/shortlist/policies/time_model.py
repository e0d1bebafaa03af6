"""How long a question takes: a base time, a time for every class name looked at, and one for typing. numpy only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.data import read_table
from shortlist.errors import InputError
from shortlist.internal.cells import plain_cell
from shortlist.internal.files import first_row
from shortlist.internal.names import split_names

FloatArray = NDArray[np.float64]

LEAST = 0.005
"""The least time per name, in seconds, that is believed: nobody reads a name faster."""
USUAL = 0.95
"""The share of the answers, by rising time, that a time model is fitted to."""
ENOUGH_TYPED = 10
"""With so many typed answers the time to type is fitted."""
MATCHES = 3
"""Names that people look at after typing a few letters of a class."""


@dataclass(frozen=True)
class TimeModel:
    """seconds = base + per_class * (names looked at); people look from the top and stop at the right name.

    Typing a class takes seconds = base + per_class * (list size + MATCHES) + typing: people look at the whole list, and
    then at the names that match. The 2.75 s are those of the keystroke-level model (Card, Moran, Newell 1980): 1.35 to
    recall the name, and five keys of 0.28.

    >>> TimeModel().seconds([1, 8]).tolist(), TimeModel().typed([8]).tolist()
    ([1.25, 3.0], [6.5])
    """

    base: float = 1.0
    per_class: float = 0.25
    typing: float = 2.75

    def __post_init__(self) -> None:
        times = (self.base, self.per_class, self.typing)
        if not (min(times) >= 0 and sum(times) < np.inf and self.base + self.per_class > 0):
            raise InputError(
                "seconds: expected finite times of at least 0 per question, per name and to type, and not 0 for both "
                f"of the first, got {self.base}, {self.per_class} and {self.typing}"
            )

    @staticmethod
    def read(path: str | Path) -> "TimeModel":
        """Fit it to an annotation export: columns shortlist (names separated by |), answer, seconds, maybe typed.

        Raises:
            InputError: the file lacks a column, or has too few timed answers.
        """
        return _read_log(Path(path))

    def seconds(self, looked_at: ArrayLike) -> FloatArray:
        """base + per_class * looked_at: how long questions take when so many names are looked at."""
        taken: FloatArray = self.base + self.per_class * np.asarray(looked_at, np.float64)
        return taken

    def typed(self, shown: ArrayLike) -> FloatArray:
        """How long it takes to read a list of so many names in vain (0: no list) and to type the class."""
        return self.seconds(np.asarray(shown) + MATCHES) + self.typing

    def expected(self, ordered: FloatArray) -> FloatArray:
        """(B, m) the expected seconds of the list of the first 1, 2, ..., m classes.

        The i-th name is looked at unless one before it was right, so the expected number of names looked at in a list
        of l is sum_{i <= l} (1 - p_1 - ... - p_{i-1}).

        Args:
            ordered: (B, m) the probabilities of the classes in the order in which they would be shown.
        """
        before = np.cumsum(ordered, axis=1) - ordered
        return self.seconds(np.cumsum(np.clip(1 - before, 0, 1), axis=1))


def looked_at(lists: NDArray[np.int32], sizes: NDArray[np.int64], answer: NDArray[np.int64]) -> NDArray[np.int64]:
    """(B,) the number of names looked at: down to the answer, or the whole list if it is None.

    Args:
        lists: (B, width) the classes shown in their order, short rows filled up with K.
        sizes: (B,) the number of classes on each list.
        answer: (B,) a class or NONE.
    """
    found = lists == answer[:, None]
    return np.where(found.any(axis=1), found.argmax(axis=1) + 1, sizes)


def fit_time(
    shortlists: Sequence[Sequence[str]],
    answers: Sequence[str],
    seconds: Sequence[float],
    *,
    typed: Sequence[bool] | None = None,
) -> TimeModel:
    """The time model of an annotation log, by non-negative least squares.

    The slowest answers, above the quantile `USUAL`, are left out: people leave their desks.

    Args:
        shortlists: the names on each list, in the order shown.
        answers: the name picked, or an empty string for None.
        seconds: how long each answer took.
        typed: whether the class was typed; if not given, nobody typed. With `ENOUGH_TYPED` typed answers the time to
            type is the mean of what these took beyond the reading; with fewer it is the default.

    Raises:
        InputError: there is too little to fit two numbers to, or the times do not grow with the names looked at.
    """
    from scipy.optimize import nnls

    taken = np.asarray(seconds, np.float64)
    looked = np.array(
        [
            row.index(answer) + 1 if answer in row else len(row)
            for row, answer in zip(map(list, shortlists), answers, strict=True)
        ],
        np.float64,
    )
    wrote = np.zeros(len(taken), np.bool_) if typed is None else np.asarray(typed, np.bool_)
    usable = np.isfinite(taken) & (taken > 0)
    whole = np.array([len(row) for row in shortlists], np.float64)[usable & wrote]
    typing = taken[usable & wrote]
    taken, looked = taken[usable & ~wrote], looked[usable & ~wrote]
    if len(taken) < 10 or len(np.unique(looked)) < 2:
        raise InputError(
            f"the log has {len(taken)} timed answers after {len(np.unique(looked))} different numbers of names: "
            "at least 10 and 2 are needed to fit the time model"
        )
    kept = taken <= np.quantile(taken, USUAL)
    design = np.column_stack([np.ones(kept.sum()), looked[kept]])
    (base, per_class), _ = nnls(design, taken[kept])
    if per_class < LEAST:
        raise InputError(
            f"the log's {len(taken)} answers took no longer after more names ({per_class:.2f} s per name): "
            "every way of labelling would seem to take the same time. Give a log of people who read lists of "
            "different lengths, or state the times (--seconds 1 0.25)"
        )
    time = TimeModel(float(base), float(per_class))
    if len(typing) < ENOUGH_TYPED:
        return time
    kept = typing <= np.quantile(typing, USUAL)
    beyond = typing[kept] - time.seconds(whole[kept] + MATCHES)
    return replace(time, typing=max(float(beyond.mean()), 0.0))


def _read_log(file: Path) -> TimeModel:
    table = read_table(file)
    columns = []
    for name in ("shortlist", "answer", "seconds"):
        if name not in table:
            raise InputError(f"{file} has no column {name!r}: a log has shortlist, answer and seconds")
        columns.append(table[name])
    # our own CSV files escape names that a spreadsheet would run as formulas
    plain = plain_cell if file.suffix.lower() in (".csv", ".tsv") else str
    lists, answers, seconds, typed = [], [], [], []
    wrote = table.get("typed", [None] * len(columns[0]))
    for number, (shown, answer, taken, written) in enumerate(zip(*columns, wrote, strict=True), first_row(file)):
        if taken in ("", None):
            continue
        try:
            seconds.append(float(taken.replace(",", ".") if isinstance(taken, str) else taken))  # as spreadsheets write
        except (TypeError, ValueError) as error:
            raise InputError(f"{file}, row {number}: seconds is {taken!r}, not a number") from error
        lists.append([str(name) for name in shown] if isinstance(shown, list) else split_names(plain(shown or "")))
        answers.append("" if answer is None else plain(str(answer)))
        typed.append(bool(written))
    return fit_time(lists, answers, seconds, typed=typed)

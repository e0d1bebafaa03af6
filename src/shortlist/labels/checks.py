"""What a set of stochastic labels must satisfy; the first row that does not is named."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError

NONE: Final = -1
"""The answer "None of these": the true class was not on the shortlist."""

IntArray = NDArray[np.int64]


def check_rows(
    classes: NDArray[np.int32],
    offsets: IntArray,
    answer: IntArray,
    num_classes: int,
    class_names: Sequence[str] | None,
) -> None:
    """Refuse the first row that no annotator could have produced."""
    sizes = np.diff(offsets)
    rows = np.repeat(np.arange(len(answer)), sizes)
    # two equal (row, class) pairs side by side after sorting are a class listed twice
    keys = np.sort(rows * num_classes + classes)
    twice = keys[1:][keys[1:] == keys[:-1]] // num_classes
    on_list = np.zeros(len(answer), np.bool_)
    on_list[rows[classes == answer[rows]]] = True
    answered = answer != NONE
    names = class_names or range(num_classes)
    problems: list[tuple[IntArray, Callable[[int], str]]] = [
        (np.nonzero(sizes == 0)[0], lambda row: "an empty shortlist, expected at least one class"),
        (twice, lambda row: "a class is on the shortlist twice"),
        (
            np.nonzero(answered & ~on_list)[0],
            lambda row: f"the answer {names[answer[row]]!r} is not on the shortlist",
        ),
        (
            np.nonzero(~answered & (sizes == num_classes))[0],
            lambda row: f"None, although all {num_classes} classes were shown",
        ),
    ]
    found = [(int(bad[0]), say) for bad, say in problems if len(bad)]
    if found:
        row, say = min(found, key=lambda problem: problem[0])
        raise InputError(f"row {row}: {say(row)}")

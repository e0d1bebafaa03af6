"""Join labels to data by item, and several questions on one item into one.

Answers are taken as right. The app can model mistakes (`policies.noise`): it has beliefs from before each answer, and
gold items, from which to estimate their rates. A file of answers has neither. The model trained on the answers would
agree with them and find too few mistakes, so where answers contradict each other the majority decides.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.internal.names import plain_name
from shortlist.labels.checks import NONE
from shortlist.labels.stochastic import StochasticLabels


def join(labels: StochasticLabels, items: Sequence[str]) -> tuple[NDArray[np.int64], StochasticLabels]:
    """The rows of the data that have labels, and those labels, one row each in the order of the data.

    Several questions on one item become one row: the union of what was shown, and the class picked most often (if
    several were, the one picked last), or None if no class was picked. For answers without mistakes that is the exact
    likelihood of all of them together; separate rows would not be. An item on which every class was refused says
    nothing and is left out. The inclusion probabilities are those of the first question, and unknown for classes that
    only later ones showed: how likely a class is to be on a union depends on lists it was not on, and no file says so.

    Args:
        labels: any number of rows per item.
        items: the identifiers of the data, each once.

    Raises:
        InputError: a label is for an item that the data does not have.
    """
    position = {str(item): row for row, item in enumerate(items)}
    if len(position) != len(items):
        raise InputError("the data has an item identifier twice, so labels cannot be joined to it")
    unknown = [item for item in labels.item_ids.tolist() if item not in position]
    if unknown:
        alike = next((item for item in position if plain_name(item) == plain_name(unknown[0])), None)
        if alike is not None:  # they may look the same on a screen, as file names from macOS do
            raise InputError(f"a label is for the item {unknown[0]!a}, the data has {alike!a}: give both one spelling")
        raise InputError(
            f"{len(unknown)} of {len(labels)} labels are for items the data does not have, first {unknown[0]!r} "
            f"(the data's first is {next(iter(position), None)!r}): another dataset's labels, or another --item-column?"
        )
    rows = np.array([position[item] for item in labels.item_ids.tolist()], np.int64)
    order = np.argsort(rows, kind="stable")
    if len(order) == len(np.unique(rows)):
        return rows[order], labels.subset(order)
    return _merge(labels.subset(order), rows[order])


def _merge(labels: StochasticLabels, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], StochasticLabels]:
    """Merge neighbours that belong to one row of the data."""
    starts = np.concatenate([[0], np.nonzero(np.diff(rows))[0] + 1, [len(rows)]])
    kept, lists, answers, chances = [], [], [], []
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        classes = labels.classes[labels.offsets[start] : labels.offsets[stop]]
        union = list(dict.fromkeys(classes.tolist()))  # each once; those of the first question first
        answer = _agree(labels.answer[start:stop].tolist())
        if answer != NONE or len(union) < labels.num_classes:
            kept.append(start)
            lists.append(union)
            answers.append(answer)
            chances.append(_of_first(labels, start, len(union)))
    names, items = labels.class_names, labels.item_ids[kept]
    merged = StochasticLabels.from_lists(
        lists,
        answers,
        labels.num_classes,
        class_names=names,
        items=items,
        inclusion=np.concatenate([np.empty(0), *chances]),
    )
    return rows[kept], merged


def _of_first(labels: StochasticLabels, row: int, size: int) -> NDArray[np.float64]:
    """The inclusion probabilities of one question, then NaN for classes of later ones."""
    chances = np.full(size, np.nan)
    if labels.inclusion is not None:
        first = labels.inclusion[labels.offsets[row] : labels.offsets[row + 1]]
        chances[: len(first)] = first
    return chances


def _agree(answers: list[int]) -> int:
    picks = [answer for answer in answers if answer != NONE]
    if not picks:
        return NONE
    # max keeps the first of equals, so walk backwards: the later pick wins a tie
    return max(reversed(picks), key=picks.count)

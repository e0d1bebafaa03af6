"""Uniform shortlists and the answers to them, drawn in bulk with numpy.

Only `Generator.random` is used: doubles made from the raw bits of PCG64, the same on every machine and numpy version.
"""

import numpy as np
from numpy.typing import NDArray

from shortlist.labels.checks import NONE
from shortlist.labels.lists import offsets_of

FLOYD_LIMIT = 32
"""Up to this size Floyd's algorithm (l^2 / 2 vector steps) beats sorting K random keys per item."""
CHUNK = 1 << 22
"""Random keys held at a time, so that memory does not grow with N K."""


def draw_shortlists(
    rng: np.random.Generator, num_classes: int, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """A uniform subset of the classes for each item, in ascending order: (classes, offsets).

    Args:
        rng: its state alone decides the draw.
        num_classes: K.
        sizes: (N,) classes on each list.
    """
    offsets = offsets_of(sizes)
    classes = np.empty(offsets[-1], np.int32)
    for size in np.unique(sizes).tolist():
        rows = np.nonzero(sizes == size)[0]
        lists = _draw_equal(rng, num_classes, size, len(rows))
        classes[offsets[rows, None] + np.arange(size)] = lists
    return classes, offsets


def _draw_equal(rng: np.random.Generator, num_classes: int, size: int, count: int) -> NDArray[np.int32]:
    if size == num_classes:
        return np.tile(np.arange(num_classes, dtype=np.int32), (count, 1))
    if size <= FLOYD_LIMIT:
        return np.sort(_floyd(rng, num_classes, size, count), axis=1)
    lists = np.empty((count, size), np.int32)
    step = max(1, CHUNK // num_classes)
    for start in range(0, count, step):
        keys = rng.random((min(step, count - start), num_classes))
        # the classes with the l smallest of K random keys are a uniform subset
        lists[start : start + step] = np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1)
    return lists


def _floyd(rng: np.random.Generator, num_classes: int, size: int, count: int) -> NDArray[np.int32]:
    """Floyd's subset sampling, all rows at once: at step j take t in 0..j, or j itself if t was taken before."""
    lists = np.empty((count, size), np.int32)
    for k, j in enumerate(range(num_classes - size, num_classes)):
        taken = (rng.random(count) * (j + 1)).astype(np.int32)
        seen = np.zeros(count, np.bool_)
        for earlier in range(k):
            seen |= lists[:, earlier] == taken
        lists[:, k] = np.where(seen, j, taken)
    return lists


def answer_shortlists(
    rng: np.random.Generator,
    classes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    truth: NDArray[np.int64],
    num_classes: int,
    miss: float,
    slip: float,
) -> NDArray[np.int64]:
    """What people with these rates of mistakes answer.

    With probability `slip` they pick a wrong class of those shown, each with the same chance (never if the true class
    is the only one shown). With probability `miss` they answer None although the true class was shown (never if all K
    classes are shown: there is no None then). Otherwise the answer is right.
    """
    sizes = np.diff(offsets)
    rows = np.repeat(np.arange(len(truth)), sizes)
    hit = classes == truth[rows]
    position = np.full(len(truth), -1, np.int64)  # of the true class on its list
    position[rows[hit]] = np.nonzero(hit)[0] - offsets[rows[hit]]
    shown = position >= 0
    answer = np.where(shown, truth, NONE)
    if miss == 0 and slip == 0:
        return answer
    kind = rng.random(len(truth))
    wrong = sizes - shown  # how many wrong classes are on the list
    slips = (kind < slip) & (wrong > 0)
    choice = (rng.random(len(truth)) * wrong).astype(np.int64)
    choice += shown & (choice >= position)  # step over the true class
    answer[slips] = classes[offsets[:-1][slips] + choice[slips]]
    misses = (kind >= slip) & (kind < slip + miss) & shown & (sizes < num_classes)
    answer[misses] = NONE
    return answer

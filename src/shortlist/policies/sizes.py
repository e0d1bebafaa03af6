"""How many classes each policy puts on a list: one function per policy, and the registry of policies. Needs numpy only.

A new policy is one function (here or in a file of its own) and one line in `RULES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.time_model import TimeModel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Limits(Protocol):
    """What a rule may look at of the `Policy` it is used by."""

    @property
    def size(self) -> int:
        """Classes on a list, where that is fixed."""

    @property
    def hit(self) -> float:
        """The wanted probability that the right class is on the list."""

    @property
    def time(self) -> TimeModel:
        """How long a question takes."""


@dataclass(frozen=True)
class SizeRule:
    """How one policy sets the size of a list; all but `uniform` then show that many of the most likely classes.

    Attributes:
        sizes: from the (B, m) probabilities of the classes that could be shown, most likely first, to the (B,) sizes.
        fixed: the lists have the policy's `size`; otherwise at most its `max_size`.
        uniform: the lists are drawn uniformly, whatever the probabilities.
    """

    sizes: Callable[[FloatArray, Limits], IntArray]
    fixed: bool = False
    uniform: bool = False


def stated_size(ranked: FloatArray, limits: Limits) -> IntArray:
    """(B,) the policy's `size`."""
    return np.full(len(ranked), limits.size)


def reach_hit(ranked: FloatArray, limits: Limits) -> IntArray:
    """(B,) the least l with p_1 + ... + p_l >= `hit`; all m classes if they do not reach it."""
    reached = np.cumsum(ranked, axis=1) >= limits.hit - 1e-9
    sizes: IntArray = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, ranked.shape[1])
    return sizes


def most_bits_per_second(ranked: FloatArray, limits: Limits) -> IntArray:
    """(B,) the l that maximises H(answer to the first l classes) / E[seconds that it takes]."""
    sizes: IntArray = np.argmax(bits(ranked) / limits.time.expected(ranked), axis=1) + 1
    return sizes


def bits(ordered: FloatArray) -> FloatArray:
    """(B, m) the entropy in bits of the answer to the list of the first 1, 2, ..., m classes.

    For l classes it is -sum_{j <= l} p_j log2 p_j - r log2 r, with r = 1 - (p_1 + ... + p_l) the chance of None.

    For a given size the most likely classes give the most bits: exchanging a class on the list for a likelier one off
    it makes the distribution of answers more even. They are also looked through fastest, so only the size is open.
    """
    own = np.cumsum(_plogp(ordered), axis=1)
    rest = np.clip(1 - np.cumsum(ordered, axis=1), 0, 1)
    return own + _plogp(rest)


def _plogp(p: FloatArray) -> FloatArray:
    value: FloatArray = -p * np.log2(np.where(p > 0, p, 1))
    return value


RULES: dict[str, SizeRule] = {
    "uniform": SizeRule(stated_size, fixed=True, uniform=True),
    "top": SizeRule(stated_size, fixed=True),
    "adaptive": SizeRule(reach_hit),
    "information": SizeRule(most_bits_per_second),
}
"""The policies by name."""

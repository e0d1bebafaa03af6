"""A uniform sample of the items that is asked about but not learned from: an honest score.

Answers about items that a model chose, to lists that it chose, are no fair sample. This one is: it is drawn before
anybody answers, its items are asked about in a fixed order, and no model is trained on them. Needs numpy only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from shortlist.policies.beliefs import Matrix, softmax
from shortlist.policies.noise import IntArray
from shortlist.policies.score.interval import estimate
from shortlist.policies.score.projection import questions_for
from shortlist.policies.state import LabelState

SIZE, SHARE = 300, 10
"""The usual sample: 300 items (an accuracy of 90 % is then known to within 3.4 points), but at most a tenth of all."""
EVERY = 10
"""One question in ten is about the sample until all of it is resolved."""
LATE = 20
"""One item in 20 may be late (skipped, or in somebody's hands) without holding up the score; it counts as undecided."""


@dataclass(frozen=True)
class Score:
    """The accuracy of a model on items that it has not learned from."""

    accuracy: float
    low: float
    high: float
    """The interval from low to high holds the accuracy in 95 % of all cases, or more often if items are undecided."""
    items: int
    """The items of the sample that were asked about so far."""
    undecided: int
    """Those on which the model may still be right or wrong: they count as wrong for `low` and as right for `high`."""
    size: int
    """The size of the whole sample."""
    corrected: bool
    """Whether annotators' mistakes are allowed for; if not, answers are taken as right."""


def usual_size(items: int) -> int:
    """The usual size of a sample of so many items."""
    return min(SIZE, items // SHARE)


def draw_sample(names: Sequence[object], seed: int, count: int | None = None) -> IntArray:
    """The positions of `count` names (by default as many as usual), drawn at random, in a random order.

    Each name has a random number of its own, a hash of seed and name, and the names with the lowest are drawn. So if
    names are added later, the sample is as uniform as if they had been there from the start, and most of it stays.
    """
    keys = [blake2b(f"{seed}/{name}".encode(), digest_size=8).digest() for name in names]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return np.array(order[: usual_size(len(keys)) if count is None else count], np.int64)


@dataclass
class Audit:
    """The sample of one loop.

    Attributes:
        rows: (n,) its items, in the order in which they are asked about.
        past: after each training, the number of questions so far and (n,) the model's classes of these items.
    """

    rows: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    past: list[tuple[int, IntArray]] = field(default_factory=list)

    def remember(self, earlier: "Audit") -> None:
        """Take over what earlier models said about the same sample."""
        if self.past and np.array_equal(self.rows, earlier.rows):
            before = [one for one in earlier.past if one[0] <= self.past[-1][0]]
            self.past = sorted(before + self.past, key=lambda one: one[0])  # stable: the present model stays the last

    def among(self, order: IntArray, open_rows: IntArray, state: LabelState, *, all_of_it: bool = False) -> IntArray:
        """`order` (of other items) with those open items of the sample in between whose turn it is, or with all.

        First come asked items on which it is undecided whether the model is right, then new ones, then those on which
        the model is known to be wrong: what they are instead, later lists find out with fewer names.
        """
        mine = self.rows[np.isin(self.rows, open_rows)]
        group = np.where(self._wrong(mine, state), 2, state.asked[mine] == 0)
        mine = mine[np.argsort(group, kind="stable")]
        turn, asked = np.arange(len(mine)), int(state.asked[self.rows].sum())
        place = np.maximum(turn, EVERY * (asked + turn) - state.questions)
        if all_of_it or not len(order):
            place = np.minimum(place, len(order) + turn)
        mine, place = mine[place <= len(order) + turn], place[place <= len(order) + turn]
        taken = np.zeros(len(order) + len(mine), np.bool_)
        taken[place] = True
        merged = np.empty(len(taken), np.int64)
        merged[taken], merged[~taken] = mine, order
        return merged

    def _wrong(self, rows: IntArray, state: LabelState) -> NDArray[np.bool_]:
        """(B,) whether the class that the present model gives each item was refused."""
        if not self.past:
            return np.zeros(len(rows), np.bool_)
        favourite = np.zeros(state.num_items, np.int64)
        favourite[self.rows] = self.past[-1][1]
        return np.less(state.answer_likelihood.take(rows).at(favourite[rows]), 0.5)

    def score(self, state: LabelState, logits: Matrix, sure: float) -> Score | None:
        """What the sample says about the present model; None before it says anything.

        Args:
            state: all answers.
            logits: (n, K) those of the present model, divided by its temperature.
            sure: if mistakes are modelled, the probability of right or wrong from which on an item is decided.
        """
        count = self._reached(state)
        if not count or not self.past:
            return None
        likelihoods = state.answer_likelihood[self.rows[:count]].astype(np.float64)
        favourite = self.past[-1][1][:count, None]
        right = np.take_along_axis(likelihoods, favourite, axis=1)[:, 0]
        others = logits[:count].copy()
        np.put_along_axis(others, favourite, -np.inf, axis=1)
        wrong = (softmax(others) * likelihoods).sum(axis=1)
        wrong[(right == 0) & (wrong == 0)] = 1  # the model takes all that is left for impossible: it is wrong, not NaN
        doubt = np.minimum(right, wrong) / (right + wrong)
        undecided = doubt > (1 - sure if state.mistakes else 0)
        accuracy, low, high = estimate(right, wrong, undecided)
        return Score(accuracy, low, high, count, int(undecided.sum()), len(self.rows), bool(state.mistakes))

    def _reached(self, state: LabelState) -> int:
        """How far down the sample items were asked about; only its place decides whether an item is counted."""
        begun = state.asked[self.rows] > 0
        place = np.arange(1, len(begun) + 1)
        reached = place[begun & (np.cumsum(~begun) <= np.maximum(place // LATE, 1))]
        return int(reached[-1]) if len(reached) else 0

    def questions_for(self, points: float, state: LabelState, classes: IntArray) -> float | None:
        """About how many more questions would raise the accuracy by so many percentage points; None if unknown.

        Every model so far is scored on the same items, all that the sample has by now, so that small steps of the curve
        are not drowned by the chance of which items were asked about.

        Args:
            points: percentage points.
            state: all answers.
            classes: (n,) the class of each item of the sample, NONE where it is not known.
        """
        count = self._reached(state)
        if not count:
            return None
        curve = [(questions, float(np.mean(seen[:count] == classes[:count]))) for questions, seen in self.past]
        return questions_for(points, np.array(curve))

"""Policies: from what a model believes to the shortlist to show, with exact inclusion probabilities. Needs numpy only.

A policy sees the probabilities of the K classes and which of them are still candidates, never the true class. So the
likelihood of the answers needs no weights. Mixed with uniform lists (`epsilon`, `floor`), a policy also keeps a known,
positive chance for every candidate, and risks weighted by inverse inclusion probabilities stay unbiased:

    P(class j is shown) = (1 - epsilon) [j is on the preferred list] + epsilon l / m

for a list of l out of m candidates.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError, unknown_name
from shortlist.policies.sizes import RULES
from shortlist.policies.time_model import TimeModel

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Policy:
    """How a shortlist is chosen.

    Args:
        kind: `uniform` (every list of `size` is as likely as any other), `top` (the `size` most likely classes),
            `adaptive` (the fewest most likely classes that reach the probability `hit` together), `information` (as
            many of the most likely classes as give the most bits per second).
        size: classes on a list, for `uniform` and `top`.
        hit: the wanted probability that the right class is on the list, for `adaptive`.
        max_size: the longest list, for `adaptive` and `information`.
        epsilon: with this probability the list is instead drawn uniformly from the candidates, with the same size.
        floor: the least inclusion probability of every candidate. Raises epsilon as far as needed, and the size where
            floor * m > size.
        deduce: leave one class out of a list that would hold all m candidates: None then says that it is this one.
            Only right if annotators make no mistakes.
        time: the time model, for `information`.
    """

    kind: str = "adaptive"
    size: int = 8
    hit: float = 0.8
    max_size: int = 8
    epsilon: float = 0.0
    floor: float = 0.0
    deduce: bool = True
    time: TimeModel = field(default_factory=TimeModel)

    def __post_init__(self) -> None:
        if self.kind not in RULES:
            raise unknown_name("policy", self.kind, RULES)
        if self.size < 1 or self.max_size < 1:
            raise InputError(f"policy {self.kind}: a shortlist has at least one class")
        if not 0 < self.hit <= 1:
            raise InputError(f"hit: expected a probability above 0, at most 1, got {self.hit}")
        if not 0 <= self.epsilon <= 1 or not 0 <= self.floor <= 1:
            raise InputError(f"epsilon and floor: expected 0 to 1, got {self.epsilon} and {self.floor}")

    @property
    def longest(self) -> int:
        """The most classes a list can have before a floor asks for more."""
        return self.size if RULES[self.kind].fixed else self.max_size


@dataclass(frozen=True)
class Questions:
    """The shortlists chosen for B items, and what their inclusion probabilities follow from."""

    lists: NDArray[np.int32]
    """(B, width) the classes shown, most likely first, short rows filled up with K."""
    sizes: NDArray[np.int64]
    """(B,) the number of classes shown; 0 where no class is possible any more."""
    best: NDArray[np.int32]
    """(B, width) the list that the policy prefers; with probability epsilon a uniform one was drawn instead."""
    epsilon: FloatArray
    """(B,) the probability of a uniform list."""
    num_candidates: NDArray[np.int64]
    """(B,) m, the number of candidates."""

    @property
    def probabilities(self) -> FloatArray:
        """(B, width) the inclusion probability of each class shown: (1 - epsilon) [it is preferred] + epsilon l / m.

        It is stored with the question. 0 where a row is filled up.
        """
        preferred = (self.lists[:, :, None] == self.best[:, None, :]).any(axis=2)
        uniform = (self.epsilon * self.sizes / np.maximum(self.num_candidates, 1))[:, None]
        chance = (1 - self.epsilon[:, None]) * preferred + uniform
        return np.where(np.arange(self.lists.shape[1]) < self.sizes[:, None], chance, 0.0)

    def __len__(self) -> int:
        return len(self.sizes)

    def row(self, i: int) -> tuple[list[int], list[float]]:
        """The shortlist of one item and the inclusion probabilities of its classes."""
        size = int(self.sizes[i])
        return self.lists[i, :size].tolist(), self.probabilities[i, :size].tolist()


def choose(
    policy: Policy, probabilities: NDArray[np.floating], candidates: BoolArray, rng: np.random.Generator
) -> Questions:
    """Choose a shortlist for each of B items.

    The size l follows from the probabilities and the candidates, before anything is drawn. So the uniform list has the
    size of the preferred one, and inclusion = (1 - epsilon) [preferred] + epsilon l / m is exact even if sizes adapt.

    Args:
        policy: how to choose.
        probabilities: (B, K) what the model believes; need not be normalised over the candidates.
        candidates: (B, K) whether each class is still possible.
        rng: draws the uniform lists.
    """
    m, K = candidates.sum(axis=1), candidates.shape[1]
    ranked, mass = _ranked(policy, probabilities, candidates, m)
    sizes = _sizes(policy, mass, m)
    width = int(sizes.max(initial=1))
    kept = np.arange(width) < sizes[:, None]
    best = np.where(kept, ranked[:, :width], K).astype(np.int32)
    epsilon = _epsilon(policy, sizes, m)
    lists = best
    uniform = np.nonzero((rng.random(len(m)) < epsilon) & (sizes > 0))[0] if epsilon.any() else np.empty(0, np.int64)
    if len(uniform):
        drawn = _draw(candidates[uniform], probabilities[uniform], sizes[uniform], width, rng)
        lists = best.copy()
        lists[uniform] = drawn
    return Questions(lists, sizes, best, epsilon, m.astype(np.int64))


def choose_one(
    policy: Policy, probabilities: NDArray[np.floating], refused: NDArray[np.integer], seed: int
) -> tuple[list[int], list[float]]:
    """The shortlist of one item and its inclusion probabilities, reproducible from the seed; servers call this.

    >>> choose_one(Policy("top", size=2), np.array([0.1, 0.2, 0.3, 0.4]), np.array([3]), seed=0)
    ([2, 1], [1.0, 1.0])
    """
    candidates = np.ones((1, len(probabilities)), np.bool_)
    candidates[0, np.asarray(refused, np.int64)] = False
    rng = np.random.Generator(np.random.PCG64(seed))
    return choose(policy, np.asarray(probabilities)[None], candidates, rng).row(0)


# -- inside ------------------------------------------------------------------------------------------------------------


def _ranked(
    policy: Policy, probabilities: NDArray[np.floating], candidates: BoolArray, m: NDArray[np.int64]
) -> tuple[NDArray[np.int64], FloatArray]:
    """The most likely candidates, in order, and their probabilities normalised over all candidates."""
    K = candidates.shape[1]
    longest = max(policy.longest, int(np.ceil(policy.floor * m.max(initial=1) - 1e-12)))
    width = min(K, longest)
    score = np.where(candidates, probabilities, -1.0)
    if width < K:
        top = np.argpartition(-score, width - 1, axis=1)[:, :width]
    else:
        top = np.broadcast_to(np.arange(K), score.shape)
    values = np.take_along_axis(score, top, axis=1)
    # equals by class number, so that the order does not depend on the partition
    order = np.lexsort((top, -values), axis=1)
    ranked, values = np.take_along_axis(top, order, axis=1), np.take_along_axis(values, order, axis=1)
    total = np.where(candidates, probabilities, 0).sum(axis=1, dtype=np.float64)[:, None]
    # a model that gives all candidates the probability 0 knows nothing about this item: they are equally likely
    flat = (values >= 0) / np.maximum(m, 1)[:, None]
    mass = np.where(total > 0, np.clip(values, 0, None) / np.where(total > 0, total, 1), flat)
    return ranked, mass.astype(np.float64)


def _sizes(policy: Policy, mass: FloatArray, m: NDArray[np.int64]) -> NDArray[np.int64]:
    """(B,) how many classes each list has: as the rule says (m - 1 at most if deduced), but at least floor * m."""
    rule = RULES[policy.kind]
    sizes = np.minimum(rule.sizes(mass[:, : policy.longest], policy), policy.longest)
    if policy.deduce and not rule.uniform:
        sizes = np.minimum(sizes, np.maximum(m - 1, 1))
    sizes = np.maximum(sizes, np.ceil(policy.floor * m - 1e-12).astype(np.int64))
    bounded: NDArray[np.int64] = np.minimum(sizes, m).astype(np.int64)
    return bounded


def _epsilon(policy: Policy, sizes: NDArray[np.int64], m: NDArray[np.int64]) -> FloatArray:
    """(B,) the probability of a uniform list: at least floor * m / l, so that epsilon l / m reaches the floor."""
    if RULES[policy.kind].uniform:
        return np.ones(len(m))
    needed = policy.floor * m / np.maximum(sizes, 1)
    # a list that holds every candidate needs no mixing
    return np.where(sizes == m, 0.0, np.clip(np.maximum(policy.epsilon, needed), 0, 1))


def _draw(
    candidates: BoolArray,
    probabilities: NDArray[np.floating],
    sizes: NDArray[np.int64],
    width: int,
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """(B, width) uniform lists of the given sizes from the candidates, shown in the order of probability."""
    K = candidates.shape[1]
    keys = np.where(candidates, rng.random(candidates.shape), 2.0)
    top = np.argpartition(keys, width - 1, axis=1)[:, :width] if width < K else np.argsort(keys, axis=1)
    order = np.argsort(np.take_along_axis(keys, top, axis=1), axis=1)
    drawn = np.take_along_axis(top, order, axis=1)
    kept = np.arange(width) < sizes[:, None]
    value = np.where(kept, np.take_along_axis(probabilities, drawn, axis=1).astype(np.float64), -np.inf)
    order = np.lexsort((drawn, -value), axis=1)
    drawn = np.where(np.take_along_axis(kept, order, axis=1), np.take_along_axis(drawn, order, axis=1), K)
    return drawn.astype(np.int32)

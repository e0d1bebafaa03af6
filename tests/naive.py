"""The formulas once more, as plain loops over Python floats, and the populations to enumerate: what the tests trust."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from shortlist.labels import NONE, StochasticLabels

Row = Sequence[float]
Rows = Sequence[Row]


# -- losses ------------------------------------------------------------------------------------------------------------


def softmax(f: Row) -> list[float]:
    top = max(f)
    powers = [math.exp(z - top) for z in f]
    return [power / sum(powers) for power in powers]


def log_softmax(f: Row) -> list[float]:
    top = max(f)
    return [z - top - math.log(sum(math.exp(other - top) for other in f)) for z in f]


def softplus(z: float) -> float:
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


PSI: dict[str, Callable[[float], float]] = {
    "ovr_square": lambda z: (1 - z) ** 2 / 4,
    "ovr_logistic": lambda z: softplus(-z),
    "ovr_sigmoid": lambda z: sigmoid(-z),
}


def loss(name: str, f: Row, j: int, normalisation: str = "sum") -> float:
    K = len(f)
    if name in PSI:
        psi = PSI[name]
        negatives = [psi(-f[k]) for k in range(K) if k != j]
        if normalisation == "negatives":
            return psi(f[j]) + sum(negatives) / (K - 1)
        return (psi(f[j]) + sum(negatives)) / (K if normalisation == "mean" else 1)
    if name == "cross_entropy":
        return -log_softmax(f)[j]
    p = softmax(f)
    if name == "mae":
        return sum(abs((k == j) - p[k]) for k in range(K))
    if name == "gce":
        return (1 - p[j] ** 0.7) / 0.7
    raise KeyError(name)


def losses(name: str, logits: Rows, normalisation: str = "sum") -> list[list[float]]:
    return [[loss(name, f, j, normalisation) for j in range(len(f))] for f in logits]


# -- risks: (losses, shown, answer, weight) ----------------------------------------------------------------------------


def total_value(L: Row, shown: Sequence[bool], answer: int) -> float:
    if answer != NONE:
        return L[answer]
    hidden = [L[j] for j in range(len(L)) if not shown[j]]
    return sum(hidden) / len(hidden)


def unbiased_terms(L: Row, shown: Sequence[bool], answer: int) -> list[float]:
    K, size = len(L), sum(shown)
    if answer != NONE:
        return [L[j] if j == answer else 0.0 for j in range(K)]
    return [-((K - 1 - size) / size) * L[j] if shown[j] else L[j] for j in range(K)]


def mean(values: Row, weight: Row) -> float:
    total = sum(weight)
    return sum(w * v for w, v in zip(weight, values, strict=True)) / total if total else 0.0


def total_risk(L: Rows, shown: Sequence[Sequence[bool]], answer: Sequence[int], weight: Row) -> float:
    return mean([total_value(*row) for row in zip(L, shown, answer, strict=True)], weight)


def unbiased_risk(L: Rows, shown: Sequence[Sequence[bool]], answer: Sequence[int], weight: Row) -> float:
    return mean([sum(unbiased_terms(*row)) for row in zip(L, shown, answer, strict=True)], weight)


def nonnegative_risk(
    L: Rows, shown: Sequence[Sequence[bool]], answer: Sequence[int], weight: Row, correction: str
) -> float:
    terms = [unbiased_terms(*row) for row in zip(L, shown, answer, strict=True)]
    by_class = [mean([row[j] for row in terms], weight) for j in range(len(L[0]))]
    keep = {"none": lambda g: g, "relu": lambda g: max(0.0, g), "abs": abs}[correction]
    return sum(keep(g) for g in by_class)


def paper_risk(L: Rows, shown: Sequence[Sequence[bool]], answer: Sequence[int], weight: Row, prior: Row) -> float:
    """Algorithm 1, line by line: r_i for every item of the batch, then their sum."""
    none_count = sum(w for w, s in zip(weight, answer, strict=True) if s == NONE)
    answered_count = sum(w for w, s in zip(weight, answer, strict=True) if s != NONE)
    risk = 0.0
    for w, row, mask, s in zip(weight, L, shown, answer, strict=True):
        if w == 0:
            continue
        if s == NONE:
            risk += w * prior[-1] * total_value(row, mask, s) / none_count
        else:
            risk += w * prior[s] * row[s] / answered_count
    return risk


def candidates(shown: Sequence[bool], answer: int) -> list[int]:
    return [answer] if answer != NONE else [j for j in range(len(shown)) if not shown[j]]


def log_of_candidates(f: Row, C: Sequence[int]) -> float:
    logs = [log_softmax(f)[k] for k in C]
    top = max(logs)
    return top + math.log(sum(math.exp(z - top) for z in logs))


# -- batches -----------------------------------------------------------------------------------------------------------


@dataclass
class Sample:
    """Some items: logits, and all that a risk or a method may see of their labels."""

    logits: Tensor
    shown: Tensor
    answer: Tensor
    prior: Tensor
    weight: Tensor | None = None
    confidence: Tensor | None = None
    inclusion: Tensor | None = None

    def at(self, rows: Tensor | slice) -> "Sample":
        """Some of the items."""
        weight = None if self.weight is None else self.weight[rows]
        confidence = None if self.confidence is None else self.confidence[rows]
        inclusion = None if self.inclusion is None else self.inclusion[rows]
        return replace(
            self,
            logits=self.logits[rows],
            shown=self.shown[rows],
            answer=self.answer[rows],
            weight=weight,
            confidence=confidence,
            inclusion=inclusion,
        )

    def labels(self) -> tuple[list[list[bool]], list[int]]:
        return self.shown.tolist(), self.answer.tolist()

    def weights(self) -> list[float]:
        return [1.0] * len(self.answer) if self.weight is None else self.weight.double().tolist()


def sample(
    seed: int = 0,
    items: int = 12,
    K: int = 5,
    size: int | None = None,
    keep: str = "all",
    dtype: torch.dtype = torch.float64,
    scale: float = 1.0,
) -> Sample:
    """A random batch; sizes are mixed (1..K) unless given. `keep` one group only: answered, none, or all."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, K + 1, 20 * items) if size is None else np.full(20 * items, size)
    labels = StochasticLabels.draw(rng.integers(0, K, 20 * items), num_classes=K, size=sizes, seed=seed)
    kept = {"all": slice(None), "answered": labels.answered, "none": ~labels.answered}[keep]
    labels = labels.subset(np.arange(len(labels))[kept][:items])
    confidence = rng.dirichlet(np.ones(K), items)
    return Sample(
        logits=torch.from_numpy(scale * rng.normal(size=(items, K))).to(dtype),
        shown=torch.from_numpy(labels.shown),
        answer=torch.from_numpy(labels.answer),
        prior=torch.from_numpy(rng.dirichlet(np.ones(K + 1))),
        confidence=torch.from_numpy(confidence),
        inclusion=torch.from_numpy(rng.uniform(0.2, 1, items)),
    )


DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
GROUPS = {
    "mixed sizes": sample(),
    "no None": sample(keep="answered"),
    "no answered": sample(keep="none"),
    "one answered item": sample(items=1, keep="answered"),
    "one None item": sample(items=1, keep="none"),
    "all shown": sample(size=5),
    "size 1": sample(size=1),
    "two classes": sample(K=2, size=1),
}


# -- every shortlist and every class -----------------------------------------------------------------------------------


@dataclass
class Population:
    """All that can happen: each point x, true class y and shortlist of l classes, with its probability."""

    logits: Tensor
    """(X, K) one row a point x."""
    posterior: Tensor
    """(X, K) P(y | x)."""
    share: Tensor
    """(X,) P(x)."""
    point: Tensor
    """(M,) the point of each outcome."""
    shown: Tensor
    answer: Tensor
    weight: Tensor
    """(M,) the probability of each outcome; they sum to 1."""

    @property
    def prior(self) -> Tensor:
        """(K + 1,) P(s), counted from the outcomes."""
        K = self.logits.shape[1]
        slots = torch.where(self.answer == NONE, K, self.answer)
        return torch.zeros(K + 1, dtype=torch.float64).index_add(0, slots, self.weight)


def population(K: int, size: int, points: int = 3, seed: int = 0) -> Population:
    rng = np.random.default_rng([seed, K, size])
    posterior = rng.dirichlet(np.full(K, 0.7), points)
    share = rng.dirichlet(np.ones(points))
    lists = list(itertools.combinations(range(K), size))
    point, shown, answer, weight = [], [], [], []
    for x, shortlist, y in itertools.product(range(points), lists, range(K)):
        point.append(x)
        shown.append([k in shortlist for k in range(K)])
        answer.append(y if y in shortlist else NONE)
        weight.append(share[x] * posterior[x, y] / len(lists))
    return Population(
        logits=torch.from_numpy(rng.normal(size=(points, K))),
        posterior=torch.from_numpy(posterior),
        share=torch.from_numpy(share),
        point=torch.tensor(point),
        shown=torch.tensor(shown),
        answer=torch.tensor(answer),
        weight=torch.tensor(weight, dtype=torch.float64),
    )


# -- processes that add up their sums ----------------------------------------------------------------------------------


def sharded(value: Callable[[Sample, Callable[[Tensor], Tensor]], Tensor], parts: Sequence[Sample]) -> list[Tensor]:
    """What each of several processes gets when `all_sum` adds the sums of all of them."""
    seen: list[Tensor] = []

    def listen(sums: Tensor) -> Tensor:
        seen.append(sums.detach())
        return sums

    for part in parts:
        value(part, listen)
    assert len(seen) == len(parts), "one call of all_sum each"
    total = torch.stack(seen).sum(0)
    # as a differentiable all-reduce: the value of the total, the gradient of one's own sums
    return [value(part, lambda sums: sums + (total - sums).detach()) for part in parts]

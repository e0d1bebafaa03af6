"""The interface of all methods, and what a method is fed.

A method is a small frozen dataclass: its fields are its options, and `objective` turns logits into one number. Methods
that keep a confidence for each item and class (RC, PRODEN, LW) say when it is renewed (`refresh`) and how
(`confidence`). The table of confidences itself lives in the `Feed`, beside the answers that its rows belong to.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shortlist.errors import InputError, unknown_name
from shortlist.internal.extras import named_extra
from shortlist.labels import StochasticLabels

with named_extra():
    import torch
    import torch.nn.functional as F
    from torch import Tensor

from shortlist.internal.tensors import AllSum, at_least_float32, single_process
from shortlist.losses import cross_entropy
from shortlist.risks import batch_mean, candidates

Protocol = Literal["paper", "fair"]
PROTOCOLS: tuple[Protocol, ...] = ("paper", "fair")

Refresh = Literal["never", "forward", "after"]
"""When confidences are renewed: never, from the forward pass of the step, or from a second pass after the update."""


@dataclass(frozen=True)
class Batch:
    """What a method sees of B items besides the logits; in a fleet everything has one more leading dimension."""

    shown: Tensor
    """(..., B, K) bool, the classes shown."""
    answer: Tensor
    """(..., B) the class picked, or NONE."""
    prior: Tensor
    """(..., K + 1) the share of each answer in the whole data, None last."""
    weight: Tensor | None = None
    """(..., B) how much each item counts; None: all the same."""
    confidence: Tensor | None = None
    """(..., B, K) the items' rows of the confidence table."""
    table: Tensor | None = None
    """(..., N, K) the whole confidence table. In a fleet, runs with fewer items than others have rows of zeros."""
    inclusion: Tensor | None = None
    """(..., B) the probability with which the class answered was shown, for methods that need it."""
    all_sum: AllSum = field(default=single_process, repr=False)
    """How a distributed run adds up sums; `mean` and `risk` take care of it."""
    teacher: Tensor | None = None
    """(..., B, K) the logits of the averaged weights that the method asked for (`Method.teacher`), without gradient."""
    progress: Tensor | None = None
    """(...) the share of the training that is done, from 0 to 1 (always 1 with lbfgs); None outside training."""
    own: Tensor | None = None
    """(...) where strong views are mixtures of an item and the one before it, the item's own share; None: unmixed."""

    @property
    def candidates(self) -> Tensor:
        """(..., B, K) the classes still possible."""
        return candidates(self.shown, self.answer)

    def before(self) -> Self:
        """The batch with every item replaced by the one before it; the first becomes the last."""
        return replace(
            self,
            shown=self.shown.roll(1, -2),
            answer=self.answer.roll(1, -1),
            weight=None if self.weight is None else self.weight.roll(1, -1),
            confidence=None if self.confidence is None else self.confidence.roll(1, -2),
            inclusion=None if self.inclusion is None else self.inclusion.roll(1, -1),
            teacher=None if self.teacher is None else self.teacher.roll(1, -2),
        )

    def mean(self, values: Tensor, counted: Tensor | None = None) -> Tensor:
        """(...) the weighted mean of (..., B) values; in a distributed run over the batch of all processes.

        Args:
            values: one number per item.
            counted: (..., B) which items count, or how much; by default all the same.
        """
        weight = self.weight
        if counted is not None:
            weight = counted.to(values.dtype) if weight is None else counted.to(values.dtype) * weight
        return batch_mean(values, weight, self.all_sum)

    def risk(self, risk: Callable[..., Tensor], values: Tensor, **options: Any) -> Tensor:
        """(...) a function of `shortlist.risks` on these items; in a distributed run on those of all processes.

        Args:
            risk: such as `risks.total_risk`.
            values: (..., B, K) what it takes, losses or logits.
            options: its other arguments.
        """
        return risk(values, self.shown, self.answer, weight=self.weight, all_sum=self.all_sum, **options)


class Method(ABC):
    """A way to train from stochastic labels; subclasses are frozen dataclasses."""

    name: ClassVar[str]
    title: ClassVar[str]
    """One line for tables and `shortlist methods`."""
    baseline: ClassVar[bool] = False
    """Whether protocol `paper` feeds it the None answers only."""
    refresh: Refresh = "never"
    """When confidences are renewed; an instance may set its own, depending on its options."""
    apart: bool = False
    """Whether the teacher sees a crop of its own instead of the network's weak view."""

    @property
    def teacher(self) -> float | None:
        """How much of the averaged weights a step keeps, if the method wants their logits in `Batch.teacher`.

        0 makes the network its own teacher: the logits of the step's own pass, on the weak view if there are two. None:
        there is no teacher.
        """
        return None

    @abstractmethod
    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """What is minimised: (..., B, K) logits -> (...), one number per run."""

    def objective_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        """What is minimised if the batch has several views of its items, the weak one first: the mean over them."""
        risks = [self.objective(view, batch) for view in views]
        return torch.stack(risks).mean(0) if len(risks) > 1 else risks[0]

    @classmethod
    def compares_views(cls) -> bool:
        """Whether it compares the views of an item, so that none may be mixed with another item's."""
        return cls.objective_of_views is not Method.objective_of_views

    def start(self, batch: Batch) -> Tensor:
        """(..., B, K) the first confidences, uniform on the candidates; not called if `refresh` is `never`."""
        return uniform(batch.candidates)

    def confidence(self, logits: Tensor, batch: Batch) -> Tensor:
        """(..., B, K) the renewed confidences, p on the candidates; not called if `refresh` is `never`."""
        return restricted_softmax(logits, batch.candidates)

    def confidence_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        """The renewed confidences if the batch has several views of its items: by the weak one, which comes first."""
        return self.confidence(views[0], batch)

    def probabilities(self, logits: Tensor) -> Tensor:
        """(..., K) the probabilities that logits trained by this method stand for, smoothed as it learns them."""
        return torch.softmax(at_least_float32(logits), -1)

    def class_probabilities(self, logits: Tensor, smoothing: float) -> Tensor:
        """(N, K) `probabilities` with the label smoothing undone: the estimate of P(y | x)."""
        p = self.probabilities(logits)
        return _unsmooth(p.double(), smoothing) if smoothing else p

    def smoothing(self, labels: StochasticLabels) -> float:
        """The label smoothing that this method amounts to on such labels; `predict_proba` undoes it."""
        return 0.0

    def rows(self, labels: StochasticLabels, protocol: Protocol) -> NDArray[np.int64]:
        """Which items the method is fed."""
        if self.baseline and protocol == "paper":
            return np.nonzero(~labels.answered)[0]
        return np.arange(len(labels))

    def feed(self, labels: StochasticLabels, protocol: Protocol = "fair", weight: ArrayLike | None = None) -> "Feed":
        """What this method trains on.

        Args:
            labels: one row per item.
            protocol: `fair`: every answer; `paper`: baselines see the None answers only, as in the paper's study.
            weight: (N,) how much each item counts.
        """
        if protocol not in PROTOCOLS:
            raise unknown_name("protocol", protocol, PROTOCOLS)
        if weight is not None:
            weight = _checked_weight(weight, len(labels))
        if not len(labels):
            raise InputError(f"method {self.name!r} cannot train without labels")
        rows = self._checked_rows(labels, protocol)
        if not len(rows):
            part = "None" if labels.answered.all() else "answered"
            raise InputError(f"method {self.name!r} under protocol {protocol!r} needs {part} items, and there are none")
        feed = Feed.of(labels, rows, weight)
        return feed if self.refresh == "never" else replace(feed, table=self._checked_start(feed))

    def _checked_start(self, feed: "Feed") -> Tensor:
        everything = feed.batch(torch.arange(len(feed)))
        table, expected = self.start(everything), tuple(everything.shown.shape)
        if not isinstance(table, Tensor) or table.shape != expected:
            got = f"shape {tuple(table.shape)}" if isinstance(table, Tensor) else type(table).__name__
            raise InputError(f"method {self.name!r}: start must give a tensor of shape {expected}, got {got}")
        return table.float()

    def _checked_rows(self, labels: StochasticLabels, protocol: Protocol) -> NDArray[np.int64]:
        rows = np.asarray(self.rows(labels, protocol))
        if len(rows) and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= len(labels)):
            expected, got = f"integers from 0 to {len(labels) - 1}", f"{rows.dtype} from {rows.min()} to {rows.max()}"
            raise InputError(f"method {self.name!r}: rows must give places of items, {expected}, got {got}")
        return rows.astype(np.int64)


@dataclass
class Feed:
    """The items that a method trains on: their shortlists, answers and confidences, on one device."""

    rows: Tensor
    """(M,) which rows of the data these are."""
    shortlist: Tensor
    """(M, longest) the classes shown; short rows are filled up with K."""
    answer: Tensor
    """(M,)."""
    prior: Tensor
    """(K + 1,) the paper's P(s), of all labels, also of those that this method is not fed."""
    weight: Tensor | None = None
    """(M,)."""
    table: Tensor | None = None
    """(M, K) the confidences, for methods that keep them."""
    inclusion: Tensor | None = None
    """(M,) see `Batch`."""
    all_sum: AllSum = field(default=single_process, repr=False)

    @classmethod
    def of(cls, labels: StochasticLabels, rows: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """The given rows of `labels`, without confidences."""
        index = np.asarray(rows)
        part = labels.subset(index)
        prior = labels.prior if weight is None else _weighted_prior(labels, np.asarray(weight, np.float64))
        return cls(
            rows=torch.from_numpy(index.astype(np.int64)),
            shortlist=torch.from_numpy(part.padded()),
            answer=torch.from_numpy(part.answer),
            prior=torch.from_numpy(prior).float(),
            weight=None if weight is None else torch.as_tensor(np.asarray(weight)[index], dtype=torch.float32),
        )

    def __len__(self) -> int:
        return len(self.answer)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.prior) - 1

    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""
        tensors: dict[str, Any] = {
            name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **tensors)

    def batch(self, index: Tensor) -> Batch:
        """What the method sees of the items at positions `index` of this feed."""
        lists = self.shortlist[index]
        # column K takes what short rows are filled up with
        shown = torch.zeros(len(lists), self.num_classes + 1, dtype=torch.bool, device=lists.device)
        return Batch(
            shown=shown.scatter_(1, lists, True)[:, :-1],
            answer=self.answer[index],
            prior=self.prior,
            weight=None if self.weight is None else self.weight[index],
            confidence=None if self.table is None else self.table[index],
            table=self.table,
            inclusion=None if self.inclusion is None else self.inclusion[index],
            all_sum=self.all_sum,
        )

    def renew(self, index: Tensor, confidence: Tensor) -> None:
        """Store renewed confidences for the items at positions `index`."""
        if self.table is not None:
            # detached: the table is data, and must not keep the graph of the step alive
            self.table[index] = confidence.detach().to(self.table.dtype)

    def state_dict(self) -> dict[str, Tensor]:
        """The state per item, to be saved with a checkpoint; empty for methods that keep none."""
        return {} if self.table is None else {"confidence": self.table}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state_dict` gave."""
        if self.table is None:
            return
        if "confidence" not in state or state["confidence"].shape != self.table.shape:
            raise InputError(f"the saved confidences do not fit: expected a table of {tuple(self.table.shape)}")
        self.table.copy_(state["confidence"])


def _checked_weight(weight: ArrayLike, count: int) -> NDArray[np.float64]:
    with suppress(TypeError, ValueError):  # texts, or lists of different lengths
        numbers = np.asarray(weight, np.float64)
        if numbers.shape == (count,) and (np.isfinite(numbers) & (numbers >= 0)).all():
            return numbers
    raise InputError(f"weight: expected {count} numbers of at least 0, one per item")


def _weighted_prior(labels: StochasticLabels, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """(K + 1,) `StochasticLabels.prior`, with every item counted as `weight` copies of itself."""
    slots = np.where(labels.answered, labels.answer, labels.num_classes)
    total = weight.sum()
    return np.bincount(slots, weight, labels.num_classes + 1) / (total if total else 1)


def _unsmooth(p: Tensor, epsilon: float) -> Tensor:
    """`theory.unsmooth` for tensors."""
    posterior = ((p - epsilon / p.shape[-1]) / (1 - epsilon)).clamp(min=0)
    total = posterior.sum(-1, keepdim=True)
    return torch.where(total > 0, posterior / torch.where(total > 0, total, 1), 1 / p.shape[-1])


def uniform(mask: Tensor) -> Tensor:
    """(..., K) equal shares over the classes of a mask."""
    return mask.float() / mask.sum(-1, keepdim=True).clamp(min=1)


def restricted_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """(..., K) p on the classes of a mask, renormalised: a softmax over these classes, so never 0/0."""
    return torch.softmax(at_least_float32(logits).masked_fill(~mask, -torch.inf), -1).masked_fill(~mask, 0)


def weighted_cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Mean of -sum_k w_k log p_k, with w the confidences."""
    assert batch.confidence is not None
    values = (batch.confidence * cross_entropy(logits)).sum(-1)
    return batch.mean(values)


def log_one_minus_softmax(logits: Tensor) -> Tensor:
    """(..., K) log(1 - p_k), finite for any finite logits.

    Only the largest p can round to 1. For that class, 1 - p is summed from the other classes.
    """
    log_p = F.log_softmax(logits, -1)
    top = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, logits.argmax(-1, keepdim=True), True)
    of_top = torch.logsumexp(log_p.masked_fill(top, -torch.inf), -1, keepdim=True)
    # gradients go through both branches of where(): keep the unused one away from log(0)
    of_others = torch.log1p(-torch.exp(log_p.masked_fill(top, -1.0)))
    return torch.where(top, of_top, of_others)

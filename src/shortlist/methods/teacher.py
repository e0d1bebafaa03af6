"""The likelihood with a teacher: consistency with what averaged weights believe."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.errors import InputError
from shortlist.internal.tensors import at_least_float32
from shortlist.losses import cross_entropy
from shortlist.methods.base import Batch, Method, restricted_softmax
from shortlist.risks import log_candidates


@dataclass(frozen=True)
class Teacher(Method):
    """Mean of (1 - a) (-log P_C) + a (-sum_k q_k log p_k), with P_C the probability of the candidates C.

    q is what a teacher, the averaged weights, believes of the same item: softmax(logits / temperature) on C. As
    -sum_k q_k log p_k = -log P_C + KL(q || p on C) + H(q), this is the likelihood plus a times a pull toward the
    teacher; with the network's own fresh beliefs as q and a temperature of 1 its gradient is the likelihood's.
    Answered items have one candidate, which q is sure of: they learn it as ever.

    With a memory the student learns w in place of q: a moving average over the epochs, w <- m w + (1 - m) q, which
    begins uniform on C. An item has another crop in every epoch, so that w averages over crops and over networks.
    The defaults are what held-out answers chose on CIFAR10 (docs/teacher.md).

    Args:
        temperature: below 1 the teacher is sharpened.
        pull: a, the weight of the consistency; above 1 it is stronger than in RC and PRODEN.
        confident: where the largest q (or w) is below this, a is 0; 0.7 where there are many classes and no views.
        ramp: the share of the training in which a rises to `pull`.
        decay: by step, of the averaged weights; 0: the network is its own teacher, by its pass on the weak view.
        memory: m; 0 for none.
        fresh: whether the w that is learned includes the q of the same step; else it is the one of the epoch before.
            Without a memory that is the q of the epoch before: with a decay of 0 and a temperature of 1, PRODEN.
        whole: the share of the teacher's belief in all classes, those ruled out among them, in what is learned.
        apart: whether the teacher sees a crop of its own, instead of the network's weak view.
        aligned: whether q is times the share of each class among the answers, divided by its share of all w, which
            keeps the w from favouring a class (Berthelot et al. 2020).
    """

    name = "teacher"
    title = "the likelihood with a teacher of averaged weights"
    temperature: float = 1.0
    pull: float = 1.0
    confident: float = 0.0
    ramp: float = 0.0
    decay: float = 0.99
    memory: float = 0.5
    fresh: bool = True
    whole: float = 0.0
    apart: bool = False
    aligned: bool = False

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise InputError(f"temperature of teacher: expected above 0, got {self.temperature}")
        for name in ("decay", "memory"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} of teacher: expected 0 to below 1, got {getattr(self, name)}")
        if not self.pull >= 0:
            raise InputError(f"pull of teacher: expected at least 0, got {self.pull}")
        for name in ("confident", "ramp", "whole"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} of teacher: expected 0 to 1, got {getattr(self, name)}")
        if self.aligned and not self.memory:
            raise InputError("aligned of teacher: needs a memory, whose w it adds up")
        if self.memory or not self.fresh:
            object.__setattr__(self, "refresh", "forward")

    @property
    def teacher(self) -> float:
        """As an option says."""
        return self.decay

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above; without a teacher in the batch the network is its own."""
        likely = -log_candidates(logits, batch.candidates)
        target = self.confidence(logits.detach(), batch) if self.fresh else batch.confidence
        assert target is not None
        q = target.to(likely.dtype)
        if self.whole:
            believed = torch.softmax(self._source(logits.detach(), batch), -1)
            q = torch.lerp(q, believed.to(q.dtype), self.whole)
        learned = (q * cross_entropy(logits)).sum(-1)
        return batch.mean(torch.lerp(likely, learned, self._pull_of(q, batch)))

    def confidence(self, logits: Tensor, batch: Batch) -> Tensor:
        """w, or q where there is no memory."""
        source = self._source(logits, batch)
        if self.aligned:
            source = source + _log_shares(batch).unsqueeze(-2)
        q = restricted_softmax(source, batch.candidates)
        if not self.memory:
            return q
        assert batch.confidence is not None
        return torch.lerp(q, batch.confidence.to(q.dtype), self.memory)

    def _source(self, logits: Tensor, batch: Batch) -> Tensor:
        """The teacher's logits, or the network's own, by the temperature."""
        return at_least_float32(logits if batch.teacher is None else batch.teacher) / self.temperature

    def _pull_of(self, q: Tensor, batch: Batch) -> Tensor:
        """(..., B) a of each item."""
        pull = self.pull * (q.amax(-1) >= self.confident).to(q.dtype)
        if self.ramp and batch.progress is not None:
            pull = pull * (batch.progress.to(q.dtype) / self.ramp).clamp(max=1).unsqueeze(-1)
        return pull


def _log_shares(batch: Batch) -> Tensor:
    """(..., K) of the share of each class among the answers, divided by its share of all confidences."""
    assert batch.table is not None
    return _share(batch.prior[..., :-1]).log() - _share(batch.table.sum(-2)).log()


def _share(counts: Tensor) -> Tensor:
    """(..., K) of the whole; a class that has none keeps a millionth, so that its logarithm is finite."""
    return (counts / counts.sum(-1, keepdim=True)).clamp(min=1e-6)

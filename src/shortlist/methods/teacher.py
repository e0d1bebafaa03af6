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
    """Mean of (1 - a) (-log P_C) + a (-sum_k w_k log p_k), with P_C the probability of the candidates C.

    w averages over the epochs what a teacher, the averaged weights, believes about the item: w <- m w + (1 - m) q with
    q = softmax(teacher's logits / temperature) on C, renormalised. w starts uniform on C. An item is cropped anew in
    every epoch, so w averages over crops and over networks. Without a memory (m = 0) w is q.

    As -sum_k w_k log p_k = -log P_C + KL(w || p on C) + H(w), this is the likelihood plus a times a pull toward the
    teacher. If w is what the network itself believes in the same pass, the pull has no gradient. Answered items have
    one candidate, so they learn their class. docs/teacher.md says how the defaults were chosen.

    Args:
        temperature: below 1 it sharpens the teacher.
        pull: a; at 1 it is as strong as in RC and PRODEN.
        confident: a is 0 for items whose largest w_k is below this; 0.7 is for many classes and no views.
        ramp: the share of the training in which a rises to `pull`.
        decay: how much of the averaged weights a step keeps; 0 makes the network its own teacher, by its pass on the
            weak view.
        memory: m.
        fresh: whether a step learns a w that includes its own q; otherwise it learns the w of the epoch before (with
            decay=0, temperature=1, memory=0 that is PRODEN).
        whole: the share of the teacher's belief in all classes, also in those ruled out, in what is learned.
        apart: whether the teacher sees a crop of its own instead of the network's weak view.
        aligned: whether q is multiplied by the share of each class among the answers and divided by its share of all w,
            which keeps w from favouring a class (Berthelot et al. 2020).
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
            raise InputError("aligned of teacher: needs a memory, as it sums the w of all items")
        if self.memory or not self.fresh:
            object.__setattr__(self, "refresh", "forward")

    @property
    def teacher(self) -> float:
        """The option `decay`."""
        return self.decay

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above; without a teacher in the batch the network is its own."""
        likely = -log_candidates(logits, batch.candidates)
        target = self.confidence(logits.detach(), batch) if self.fresh else batch.confidence
        assert target is not None
        w = target.to(likely.dtype)
        if self.whole:
            believed = torch.softmax(self._source(logits.detach(), batch), -1)
            w = torch.lerp(w, believed.to(w.dtype), self.whole)
        learned = (w * cross_entropy(logits)).sum(-1)
        return batch.mean(torch.lerp(likely, learned, self._pull_of(w, batch)))

    def confidence(self, logits: Tensor, batch: Batch) -> Tensor:
        """The new w."""
        source = self._source(logits, batch)
        if self.aligned:
            source = source + _log_shares(batch).unsqueeze(-2)
        q = restricted_softmax(source, batch.candidates)
        if not self.memory:
            return q
        assert batch.confidence is not None
        return torch.lerp(q, batch.confidence.to(q.dtype), self.memory)

    def _source(self, logits: Tensor, batch: Batch) -> Tensor:
        """The teacher's logits, or else the network's own, divided by the temperature."""
        return at_least_float32(logits if batch.teacher is None else batch.teacher) / self.temperature

    def _pull_of(self, w: Tensor, batch: Batch) -> Tensor:
        """(..., B) a of each item."""
        pull = self.pull * (w.amax(-1) >= self.confident).to(w.dtype)
        if self.ramp and batch.progress is not None:
            pull = pull * (batch.progress.to(w.dtype) / self.ramp).clamp(max=1).unsqueeze(-1)
        return pull


def _log_shares(batch: Batch) -> Tensor:
    """(..., K) log of the share of each class among the answers, divided by its share of all confidences."""
    assert batch.table is not None
    return _share(batch.prior[..., :-1]).log() - _share(batch.table.sum(-2)).log()


def _share(counts: Tensor) -> Tensor:
    """(..., K) shares that sum to 1; an empty class gets a millionth, so that its logarithm is finite."""
    return (counts / counts.sum(-1, keepdim=True)).clamp(min=1e-6)

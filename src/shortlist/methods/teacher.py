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

    Args:
        temperature: below 1 the teacher is sharpened.
        pull: a, the share of the consistency.
        confident: where the largest q is below this, a is 0.
        ramp: the share of the training in which a rises to `pull`.
        decay: by step, of the averaged weights.
    """

    name = "teacher"
    title = "the likelihood with a teacher of averaged weights"
    temperature: float = 0.5
    pull: float = 1.0
    confident: float = 0.0
    ramp: float = 0.0
    decay: float = 0.999

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise InputError(f"temperature of teacher: expected above 0, got {self.temperature}")
        if not 0 < self.decay < 1:
            raise InputError(f"decay of teacher: expected above 0 and below 1, got {self.decay}")
        for name in ("pull", "confident", "ramp"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} of teacher: expected 0 to 1, got {getattr(self, name)}")

    @property
    def teacher(self) -> float:
        """As an option says."""
        return self.decay

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above; without a teacher in the batch the network is its own."""
        source = logits.detach() if batch.teacher is None else batch.teacher
        possible = batch.candidates
        likely = -log_candidates(logits, possible)
        q = restricted_softmax(at_least_float32(source) / self.temperature, possible).to(likely.dtype)
        learned = (q * cross_entropy(logits)).sum(-1)
        return batch.mean(torch.lerp(likely, learned, self._share(q, batch)))

    def _share(self, q: Tensor, batch: Batch) -> Tensor:
        """(..., B) a of each item."""
        share = self.pull * (q.amax(-1) >= self.confident).to(q.dtype)
        if self.ramp and batch.progress is not None:
            share = share * (batch.progress.to(q.dtype) / self.ramp).clamp(max=1).unsqueeze(-1)
        return share

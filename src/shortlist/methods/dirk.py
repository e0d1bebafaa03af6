"""DIRK: distilling reliable knowledge for partial labels (Wu et al. 2024), without its contrastive part."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.errors import InputError
from shortlist.internal.tensors import at_least_float32
from shortlist.losses import cross_entropy
from shortlist.methods.base import Batch, Method, restricted_softmax


@dataclass(frozen=True)
class DIRK(Method):
    """Mean of -sum_k r_k log p_k, with r the rectified beliefs of a teacher, the averaged weights.

    Let q be the teacher's p on C, renormalised, q' the same outside C, and P_C its probability of C. Then

        r_k = b q_k on C,   (1 - b) q'_k outside,   b = max q' / (max q' + P_C min_{k in C} q_k)

    so that no class ruled out is above a candidate; the least candidate is level with the highest class ruled out if
    P_C = 1, and above it otherwise. The authors' teacher sees the student's strong view, with the statistics of the
    batch; ours sees the weak view, with running statistics. Their candidate sets have at least two classes. Here an
    item with one candidate, an answer, learns that class: b = 1.

    Args:
        decay: how much of the averaged weights a step keeps.
    """

    name = "dirk"
    title = "distilling reliable knowledge (Wu et al. 2024)"
    baseline = True
    decay: float = 0.99

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise InputError(f"decay of dirk: expected 0 to below 1, got {self.decay}")

    @property
    def teacher(self) -> float:
        """The option `decay`."""
        return self.decay

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above; without a teacher in the batch the network is its own."""
        source = logits.detach() if batch.teacher is None else batch.teacher
        losses = cross_entropy(logits)
        return batch.mean((rectified(source, batch.candidates).to(losses.dtype) * losses).sum(-1))


def rectified(logits: Tensor, candidates: Tensor) -> Tensor:
    """(..., K) r, from the teacher's logits and the mask of the candidates."""
    z = at_least_float32(logits)
    inside, outside = restricted_softmax(z, candidates), restricted_softmax(z, ~candidates)
    share = (torch.softmax(z, -1) * candidates).sum(-1, keepdim=True)
    highest = outside.amax(-1, keepdim=True)
    least = inside.masked_fill(~candidates, torch.inf).amin(-1, keepdim=True)
    alone = (highest == 0) | (candidates.sum(-1, keepdim=True) == 1)
    b = torch.where(alone, 1.0, highest / (highest + share * least))
    return b * inside + (1 - b) * outside

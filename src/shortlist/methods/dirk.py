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
    """Mean of -sum_k r_k log p_k, with r the rectified beliefs of a teacher of averaged weights.

    Beliefs are rectified so that no class ruled out is above a candidate: r = b on C and 1 - b outside, spread there as
    the teacher does, with b such that the least candidate is level with the highest class ruled out where C has all of
    the teacher's probability, and larger where it has less. The authors' teacher sees the same strong view as the
    student, by the statistics of the batch; ours the weak view, by running statistics. Their candidate sets have two
    classes at least; one candidate, an answer, is learned as it is.

    Args:
        decay: by step, of the averaged weights.
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
        """As the option says."""
        return self.decay

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above; without a teacher in the batch the network is its own."""
        source = logits.detach() if batch.teacher is None else batch.teacher
        losses = cross_entropy(logits)
        return batch.mean((rectified(source, batch.candidates).to(losses.dtype) * losses).sum(-1))


def rectified(logits: Tensor, candidates: Tensor) -> Tensor:
    """(..., K) a teacher's beliefs with no class ruled out above a candidate."""
    z = at_least_float32(logits)
    inside, outside = restricted_softmax(z, candidates), restricted_softmax(z, ~candidates)
    share = (torch.softmax(z, -1) * candidates).sum(-1, keepdim=True)
    highest = outside.amax(-1, keepdim=True)
    least = inside.masked_fill(~candidates, torch.inf).amin(-1, keepdim=True)
    b = highest / (highest + share * least)
    alone = (highest == 0) | (candidates.sum(-1, keepdim=True) == 1)
    b = torch.where(alone, 1.0, b)
    return b * inside + (1 - b) * outside

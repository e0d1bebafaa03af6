"""RC: risk-consistent partial-label learning (Feng et al. 2020)."""

from dataclasses import dataclass

from torch import Tensor

from shortlist.losses import cross_entropy
from shortlist.methods.base import Batch, Method
from shortlist.risks import batch_mean


@dataclass(frozen=True)
class RC(Method):
    """Mean of -sum_k w_k log p_k; w is p on C, renormalised, from a second forward pass after every update."""

    name = "rc"
    title = "risk-consistent partial labels (Feng et al. 2020)"
    baseline = True
    refresh = "after"

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above."""
        return weighted_cross_entropy(logits, batch)


def weighted_cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Mean of -sum_k w_k log p_k with w the confidences."""
    assert batch.confidence is not None
    values = (batch.confidence * cross_entropy(logits)).sum(-1)
    return batch_mean(values, batch.weight, batch.all_sum)

"""PRODEN: progressive identification of true labels (Lv et al. 2020)."""

from dataclasses import dataclass

from torch import Tensor

from shortlist.methods.base import Batch, Method, weighted_cross_entropy


@dataclass(frozen=True)
class PRODEN(Method):
    """Mean of -sum_k w_k log p_k; the new w is p on C, renormalised, from the same forward pass.

    An item comes once per epoch, so the new w is used from the next epoch on.
    """

    name = "proden"
    title = "progressive identification (Lv et al. 2020)"
    baseline = True
    refresh = "forward"

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above."""
        return weighted_cross_entropy(logits, batch)

"""PRODEN: progressive identification of true labels (Lv et al. 2020)."""

from dataclasses import dataclass

from torch import Tensor

from shortlist.methods.base import Batch, Method, weighted_cross_entropy


@dataclass(frozen=True)
class PRODEN(Method):
    """Mean of -sum_k w_k log p_k. w starts uniform on C; the new w is p on C, renormalised.

    It is computed from the step's own forward pass. An item comes once per epoch, so its new w is used in the next one.
    """

    name = "proden"
    title = "progressive identification (Lv et al. 2020)"
    baseline = True
    refresh = "forward"

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above."""
        return weighted_cross_entropy(logits, batch)

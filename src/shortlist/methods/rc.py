"""RC: risk-consistent partial-label learning (Feng et al. 2020)."""

from dataclasses import dataclass

from torch import Tensor

from shortlist.methods.base import Batch, Method, weighted_cross_entropy


@dataclass(frozen=True)
class RC(Method):
    """Mean of -sum_k w_k log p_k. w starts uniform on C; the new w is p on C, renormalised.

    It is computed after every update, from a second forward pass.
    """

    name = "rc"
    title = "risk-consistent partial labels (Feng et al. 2020)"
    baseline = True
    refresh = "after"

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above."""
        return weighted_cross_entropy(logits, batch)

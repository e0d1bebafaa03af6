"""The likelihood of the answers."""

from dataclasses import dataclass

from torch import Tensor

from shortlist.methods.base import Batch, Method
from shortlist.risks import likelihood_risk


@dataclass(frozen=True)
class Likelihood(Method):
    """Mean of -log p_s where answered, -log sum over not shown of p_j where None."""

    name = "likelihood"
    title = "exact negative log likelihood of the answers"

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """`risks.likelihood_risk`."""
        return batch.risk(likelihood_risk, logits)

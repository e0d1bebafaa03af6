"""The likelihood of the answers."""

from dataclasses import dataclass

from torch import Tensor

from shortlist.methods.base import Batch, Method
from shortlist.risks import likelihood_risk


@dataclass(frozen=True)
class Likelihood(Method):
    """-log p_s where answered, -log of the probability of all classes not shown where None."""

    name = "likelihood"
    title = "exact negative log likelihood of the answers"

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """`risks.likelihood_risk`."""
        return batch.risk(likelihood_risk, logits)

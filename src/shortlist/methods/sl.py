"""SL: learning from stochastic labels (Wei et al. 2023), the paper's own method."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from shortlist import losses, theory
from shortlist.errors import unknown_name
from shortlist.labels import StochasticLabels
from shortlist.methods.base import Batch, Method
from shortlist.risks import paper_risk, total_risk


@dataclass(frozen=True)
class SL(Method):
    """The paper's risk with an OVR square loss.

    Args:
        form: `total` (Theorem 3.2 by total expectation) or `paper` (Algorithm 1 to the letter).
        loss: any of `losses.LOSSES`.
    """

    name = "sl"
    title = "the paper's risk: label smoothing in effect"
    form: Literal["total", "paper"] = "total"
    loss: str = "ovr_square"

    def __post_init__(self) -> None:
        if self.form not in ("total", "paper"):
            raise unknown_name("form of sl", self.form, ("total", "paper"))
        losses.get(self.loss)

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """`risks.total_risk` or `risks.paper_risk`."""
        values = losses.get(self.loss)(logits)
        if self.form == "total":
            return total_risk(values, batch.shown, batch.answer, weight=batch.weight, all_sum=batch.all_sum)
        return paper_risk(values, batch.shown, batch.answer, batch.prior, weight=batch.weight, all_sum=batch.all_sum)

    def probabilities(self, logits: Tensor) -> Tensor:
        """By the link of the loss; still smoothed."""
        return losses.probabilities(self.loss, logits)

    def smoothing(self, labels: StochasticLabels) -> float:
        """The mean over the items' sizes of what the form amounts to (for `paper` with classes equally frequent)."""
        K = labels.num_classes
        sizes, counts = np.unique(labels.sizes, return_counts=True)
        of_size = theory.smoothing if self.form == "total" else theory.paper_smoothing
        return float(np.average([of_size(K, size) for size in sizes.tolist()], weights=counts))

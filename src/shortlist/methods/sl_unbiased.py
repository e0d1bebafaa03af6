"""SL with an unbiased risk, and its corrections."""

from dataclasses import dataclass
from typing import get_args

from torch import Tensor

from shortlist import losses
from shortlist.errors import unknown_name
from shortlist.methods.base import Batch, Method
from shortlist.risks import Correction, nonnegative_risk


@dataclass(frozen=True)
class SLUnbiased(Method):
    """`risks.unbiased_risk`, corrected class by class (`risks.nonnegative_risk`).

    Args:
        correction: `relu` or `abs`; `none` is unbiased, and overfits.
        loss: any of `losses.LOSSES`.
    """

    name = "sl_unbiased"
    title = "an unbiased risk, kept from going negative"
    correction: Correction = "relu"
    loss: str = "ovr_square"

    def __post_init__(self) -> None:
        if self.correction not in get_args(Correction):
            raise unknown_name("correction", self.correction, get_args(Correction))
        losses.get(self.loss)

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """`risks.nonnegative_risk`."""
        return batch.risk(nonnegative_risk, losses.get(self.loss)(logits), correction=self.correction)

    def probabilities(self, logits: Tensor) -> Tensor:
        """By `losses.probabilities`."""
        return losses.probabilities(self.loss, logits)

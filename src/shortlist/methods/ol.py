"""OL: ordinary labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from shortlist import losses
from shortlist.labels import NONE, StochasticLabels
from shortlist.methods.base import Batch, Method, Protocol
from shortlist.risks import picked_loss


@dataclass(frozen=True)
class OL(Method):
    """Mean of L_s over the answered items.

    With every class shown (`StochasticLabels.ordinary`) this is ordinary supervised learning. With real shortlists it
    is what one would do without any method: throw the None answers away.

    Args:
        loss: any of `losses.LOSSES`.
    """

    name = "ol"
    title = "ordinary labels (None answers dropped)"
    loss: str = "cross_entropy"

    def __post_init__(self) -> None:
        losses.get(self.loss)

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above; a None among the items counts nothing."""
        values = picked_loss(losses.get(self.loss)(logits), batch.answer)
        return batch.mean(values, counted=batch.answer != NONE)

    def rows(self, labels: StochasticLabels, protocol: Protocol) -> NDArray[np.int64]:
        """The answered items."""
        return np.nonzero(labels.answered)[0]

    def probabilities(self, logits: Tensor) -> Tensor:
        """By `losses.probabilities`."""
        return losses.probabilities(self.loss, logits)

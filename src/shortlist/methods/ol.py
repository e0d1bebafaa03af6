"""OL: ordinary labels."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from shortlist import losses
from shortlist.labels import NONE, StochasticLabels
from shortlist.methods.base import Batch, Method, Protocol
from shortlist.risks import picked_loss


@dataclass(frozen=True)
class OL(Method):
    """Mean of L[f(x), answer] over the answered items.

    With every class shown (`StochasticLabels.ordinary`) that is ordinary supervised learning; with real shortlists it
    is what one would do without any method: throw the None answers away.
    """

    name = "ol"
    title = "ordinary labels (None answers dropped)"
    loss: str = "cross_entropy"

    def __post_init__(self) -> None:
        losses.get(self.loss)

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """Mean loss of the answer, over the answered items; a None counts nothing (and does not pass for class 0)."""
        values = picked_loss(losses.get(self.loss)(logits), batch.answer)
        return batch.mean(values, counted=batch.answer != NONE)

    def rows(self, labels: StochasticLabels, protocol: Protocol) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """The answered items."""
        return np.nonzero(labels.answered)[0]

    def probabilities(self, logits: Tensor) -> Tensor:
        """By the link of the loss."""
        return losses.probabilities(self.loss, logits)

"""SL: learning from stochastic labels (Wei et al. 2023), the paper's own method."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from shortlist import losses, theory
from shortlist.errors import InputError, unknown_name
from shortlist.internal.tensors import at_least_float32
from shortlist.labels import StochasticLabels
from shortlist.methods.base import Batch, Method
from shortlist.risks import paper_risk, total_risk


@dataclass(frozen=True)
class SL(Method):
    """The paper's risk with an OVR square loss.

    Args:
        form: `total` (Theorem 3.2, Eq. (12), by total expectation) or `paper` (Algorithm 1, Eq. (13), to the letter).
        loss: any of `losses.LOSSES`.
        normalisation: of `losses.ovr_square`, see there. `mean` is `sum` at lr / K and weight decay * K.
    """

    name = "sl"
    title = "the paper's risk: label smoothing in effect"
    form: Literal["total", "paper"] = "total"
    loss: str = "ovr_square"
    normalisation: losses.Normalisation = "sum"

    def __post_init__(self) -> None:
        if self.form not in ("total", "paper"):
            raise unknown_name("form of sl", self.form, ("total", "paper"))
        losses.get(self.loss)
        if self.normalisation not in get_args(losses.Normalisation):
            raise unknown_name("normalisation of sl", self.normalisation, get_args(losses.Normalisation))
        if self.normalisation != "sum" and self.loss != "ovr_square":
            raise InputError(f"normalisation of sl: only the loss 'ovr_square' has one, got {self.loss!r}")

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """`risks.total_risk` or `risks.paper_risk`."""
        if self.normalisation == "sum":
            values = losses.get(self.loss)(logits)
        else:
            values = losses.ovr_square(logits, self.normalisation)
        if self.form == "total":
            return batch.risk(total_risk, values)
        return batch.risk(paper_risk, values, prior=batch.prior)

    def probabilities(self, logits: Tensor) -> Tensor:
        """By the link of the loss; still smoothed."""
        if self.normalisation == "negatives":  # a negative counts 1 / (K - 1): the odds are that much too high
            yes = ((1 + at_least_float32(logits)) / 2).clamp(0, 1)
            logits = 2 * yes / (yes + (logits.shape[-1] - 1) * (1 - yes)) - 1
        return losses.probabilities(self.loss, logits)

    def smoothing(self, labels: StochasticLabels) -> float:
        """The mean over the items' sizes of what the form amounts to (for `paper` with classes equally frequent)."""
        K = labels.num_classes
        sizes, counts = np.unique(labels.sizes, return_counts=True)
        of_size = theory.smoothing if self.form == "total" else theory.paper_smoothing
        return float(np.average([of_size(K, size) for size in sizes.tolist()], weights=counts))

"""SL: learning from stochastic labels (Wei et al. 2023), the paper's own method."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from shortlist import losses, theory
from shortlist.errors import InputError, unknown_name
from shortlist.internal.tensors import at_least_float32
from shortlist.labels import StochasticLabels
from shortlist.methods.base import Batch, Method
from shortlist.risks import paper_risk, total_risk

Form = Literal["total", "paper", "equal"]


@dataclass(frozen=True)
class SL(Method):
    """The paper's risk, with the OVR square loss.

    Args:
        form: `total`: Theorem 3.2, Eq. (12), by total expectation (`risks.total_risk`). `paper`: Algorithm 1, Eq. (13),
            to the letter (`risks.paper_risk`). `equal`: as in the authors' later code, the mean over answered items
            plus the mean over None items (`paper_risk` without P(s)).
        loss: any of `losses.LOSSES`.
        normalisation: of `losses.ovr_square`. With SGD, `mean` is `sum` at lr / K and weight decay * K.
    """

    name = "sl"
    title = "the paper's risk: label smoothing in effect"
    form: Form = "total"
    loss: str = "ovr_square"
    normalisation: losses.Normalisation = "sum"

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise unknown_name("form of sl", self.form, get_args(Form))
        losses.get(self.loss)
        if self.normalisation not in get_args(losses.Normalisation):
            raise unknown_name("normalisation of sl", self.normalisation, get_args(losses.Normalisation))
        if self.normalisation != "sum" and self.loss != "ovr_square":
            raise InputError(f"normalisation of sl: only the loss 'ovr_square' has one, got {self.loss!r}")

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """As `form` says."""
        square = self.loss == "ovr_square"
        values = losses.ovr_square(logits, self.normalisation) if square else losses.get(self.loss)(logits)
        if self.form == "total":
            return batch.risk(total_risk, values)
        prior = batch.prior if self.form == "paper" else torch.ones_like(batch.prior)
        return batch.risk(paper_risk, values, prior=prior)

    def probabilities(self, logits: Tensor) -> Tensor:
        """By `losses.probabilities`; still smoothed."""
        if self.normalisation == "negatives":  # each counts 1 / (K - 1), which makes the odds K - 1 times too high
            yes = ((1 + at_least_float32(logits)) / 2).clamp(0, 1)
            logits = 2 * yes / (yes + (logits.shape[-1] - 1) * (1 - yes)) - 1
        return losses.probabilities(self.loss, logits)

    def smoothing(self, labels: StochasticLabels) -> float:
        """The mean of what the form amounts to over the items' list sizes.

        For `paper` and `equal` this takes all classes as equally frequent.
        """
        K = labels.num_classes
        sizes, counts = np.unique(labels.sizes, return_counts=True)
        return float(np.average([self._smoothing(K, size) for size in sizes.tolist()], weights=counts))

    def _smoothing(self, K: int, size: int) -> float:
        if self.form == "total":
            return theory.smoothing(K, size)
        return theory.paper_smoothing(K, size, equal=self.form == "equal")

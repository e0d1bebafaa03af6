"""EXP: multiple complementary labels with the exponential upper bound (Feng et al. 2020)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.methods.base import Batch, Method
from shortlist.methods.log import complementary_factor
from shortlist.risks import log_candidates


@dataclass(frozen=True)
class EXP(Method):
    """Mean of ((K - 1)/s) exp(-sum_{k in C} p_k), s = K - |C| the number of classes ruled out."""

    name = "exp"
    title = "multiple complementary labels, exp loss (Feng et al. 2020)"
    baseline = True

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above."""
        inside = torch.exp(log_candidates(logits, batch.candidates))
        values = torch.exp(-inside) * complementary_factor(batch.candidates, logits.dtype)
        return batch.mean(values)

"""LOG: multiple complementary labels with the logarithmic upper bound (Feng et al. 2020)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.methods.base import Batch, Method
from shortlist.risks import log_candidates


@dataclass(frozen=True)
class LOG(Method):
    """Mean of -((K - 1)/s) log sum_{k in C} p_k, s = K - |C| the number of classes ruled out."""

    name = "log"
    title = "multiple complementary labels, log loss (Feng et al. 2020)"
    baseline = True

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above, in log space."""
        values = -log_candidates(logits, batch.candidates) * complementary_factor(batch.candidates, logits.dtype)
        return batch.mean(values)


def complementary_factor(possible: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """(..., B) (K - 1)/s, with s the number of classes ruled out; in double if `dtype` is, else in float32."""
    ruled_out = (~possible).sum(-1).clamp(min=1)
    return (possible.shape[-1] - 1) / ruled_out.to(torch.float64 if dtype == torch.float64 else torch.float32)

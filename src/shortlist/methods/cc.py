"""CC: classifier-consistent partial-label learning (Feng et al. 2020)."""

from dataclasses import dataclass

from torch import Tensor

from shortlist.methods.base import Batch, Method
from shortlist.risks import log_candidates


@dataclass(frozen=True)
class CC(Method):
    """Mean of -log sum_{k in C} p_k. Fed with every answer it is `likelihood`."""

    name = "cc"
    title = "classifier-consistent partial labels (Feng et al. 2020)"
    baseline = True

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above, in log space."""
        return batch.mean(-log_candidates(logits, batch.candidates))

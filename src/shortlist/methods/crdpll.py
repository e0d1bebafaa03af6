"""CRDPLL: consistency regularisation for deep partial-label learning (Wu et al. 2022)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from shortlist.errors import InputError
from shortlist.internal.tensors import at_least_float32
from shortlist.losses import cross_entropy
from shortlist.methods.base import Batch, Method, log_one_minus_softmax, restricted_softmax


@dataclass(frozen=True)
class CRDPLL(Method):
    """Mean of -sum_{k in S} log(1 - p_k) + a sum over the views of KL(w || p).

    S are the classes ruled out, and the first p is of the weak view. w starts uniform on C; the new w is the geometric
    mean of p over the views, on C and renormalised, and is used from the next epoch on. The authors have one weak and
    two strong views; here sum and mean go over the views that there are.

    Args:
        pull: what a rises to, the authors' lambda.
        ramp: the share of the training in which a rises, step by step: their first 100 of 200 epochs.
    """

    name = "crdpll"
    title = "consistency regularisation (Wu et al. 2022)"
    baseline = True
    refresh = "forward"
    pull: float = 1.0
    ramp: float = 0.5

    def __post_init__(self) -> None:
        if not self.pull >= 0:
            raise InputError(f"pull of crdpll: expected at least 0, got {self.pull}")
        if not 0 <= self.ramp <= 1:
            raise InputError(f"ramp of crdpll: expected 0 to 1, got {self.ramp}")

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above, for one view."""
        return self.objective_of_views([logits], batch)

    def objective_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        """The formula above."""
        assert batch.confidence is not None
        w = batch.confidence
        ruled_out = -log_one_minus_softmax(at_least_float32(views[0])).masked_fill(batch.candidates, 0).sum(-1)
        apart = torch.stack([(torch.xlogy(w, w) + w * cross_entropy(view)).sum(-1) for view in views]).sum(0)
        if self.ramp and batch.progress is not None:
            apart = apart * (batch.progress.to(apart.dtype) / self.ramp).clamp(max=1).unsqueeze(-1)
        return batch.mean(ruled_out + self.pull * apart)

    def confidence_of_views(self, views: Sequence[Tensor], batch: Batch) -> Tensor:
        """The geometric mean of softmaxes, renormalised, is the softmax of the mean logits."""
        return restricted_softmax(torch.stack([at_least_float32(view) for view in views]).mean(0), batch.candidates)

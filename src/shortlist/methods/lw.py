"""LW: leveraged weighted loss (Wen et al. 2021)."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from shortlist.errors import InputError, unknown_name
from shortlist.internal.tensors import at_least_float32
from shortlist.methods.base import Batch, Method, log_one_minus_softmax, restricted_softmax


@dataclass(frozen=True)
class LW(Method):
    """Mean of sum_{k in C} w_k l(f_k) + beta sum_{k not in C} w_k l(-f_k).

    w starts at 1/K. After every update, from a second forward pass, it is p renormalised on C and, separately, outside.

    Args:
        form: `sigmoid`: l(z) = 1/(1 + exp(z)); `cross_entropy`: -log p_k on C and -log(1 - p_k) outside.
        beta: the weight of the classes ruled out, the authors' leverage.
    """

    name = "lw"
    title = "leveraged weighted loss (Wen et al. 2021)"
    baseline = True
    refresh = "after"
    form: Literal["sigmoid", "cross_entropy"] = "sigmoid"
    beta: float = 1.0

    def __post_init__(self) -> None:
        if self.form not in ("sigmoid", "cross_entropy"):
            raise unknown_name("form of lw", self.form, ("sigmoid", "cross_entropy"))
        if not self.beta >= 0:
            raise InputError(f"beta of lw: expected at least 0, got {self.beta}")

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above."""
        assert batch.confidence is not None
        logits = at_least_float32(logits)
        if self.form == "sigmoid":
            inside, outside = torch.sigmoid(-logits), torch.sigmoid(logits)
        else:
            inside, outside = -F.log_softmax(logits, -1), -log_one_minus_softmax(logits)
        terms = batch.confidence * torch.where(batch.candidates, inside, self.beta * outside)
        return batch.mean(terms.sum(-1))

    def start(self, batch: Batch) -> Tensor:
        """1/K everywhere."""
        return torch.full(batch.shown.shape, 1 / batch.shown.shape[-1], device=batch.shown.device)

    def confidence(self, logits: Tensor, batch: Batch) -> Tensor:
        """Softmax on C plus softmax outside C, each of which sums to 1."""
        possible = batch.candidates
        return restricted_softmax(logits, possible) + restricted_softmax(logits, ~possible)

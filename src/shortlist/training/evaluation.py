"""Logits of many items, and the scores made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shortlist.internal.tensors import at_least_float32
from shortlist.labels import StochasticLabels
from shortlist.training.inputs import Inputs

EVALUATION_BATCH = 2000


@torch.no_grad()
def predict_logits(model: nn.Module, inputs: Inputs, rows: Tensor | None = None, amp: bool = False) -> Tensor:
    """(N, K) logits in evaluation mode, on the device: float32, or float64 where the model is."""
    rows = torch.arange(len(inputs)) if rows is None else rows
    was_training = model.training
    model.eval()
    parts = []
    with torch.autocast(inputs.device.type, torch.bfloat16, enabled=amp):
        for part in torch.split(rows, EVALUATION_BATCH):
            parts.append(at_least_float32(model(inputs.gather(part))))
    model.train(was_training)
    return torch.cat(parts)


def logits_of(model: nn.Module, x: Any, device: str) -> Tensor:
    """(N, K) the model's logits of items that are not on a device yet: images, features or a CSR matrix."""
    return predict_logits(model, Inputs(x, device))


@dataclass(frozen=True)
class Scores:
    """How well a model does on held-out items, from their answers alone."""

    accuracy: float
    """On the answered items. Their answers are true labels, and under uniform, mistake-free shortlists they are a fair
    sample, so this is an unbiased estimate of the test accuracy."""
    log_likelihood: float
    """Mean log probability of the answers, None answers included."""

    @property
    def known_accuracy(self) -> float | None:
        """The accuracy, or None where no item was answered: what is stored, as JSON has no NaN."""
        return None if np.isnan(self.accuracy) else self.accuracy


def score_answers(
    logits: Tensor,
    labels: StochasticLabels,
    probabilities: Callable[[Tensor], Tensor],
    weight: Tensor | None = None,
) -> Scores:
    """Score logits by the answers of the same items.

    Args:
        logits: (N, K).
        labels: N rows.
        probabilities: what the method makes of logits (its link, smoothing undone).
        weight: (N,) how much each item counts; 1 / inclusion probability of the answer makes the accuracy fair where
            shortlists were not drawn uniformly.
    """
    counts = torch.ones(len(labels), dtype=torch.float64) if weight is None else weight.cpu().double()
    answered = torch.from_numpy(labels.answered)
    right = logits.argmax(-1).cpu() == torch.from_numpy(labels.answer)
    possible = torch.from_numpy(labels.candidates)
    share = (probabilities(logits).cpu().double() * possible).sum(-1)
    # an impossible answer costs as much as one at the limit of float32
    surprise = share.clamp(min=float(np.finfo(np.float32).tiny)).log()
    # 0/0 where nothing was answered: NaN, not a score
    return Scores(
        accuracy=((counts * right)[answered].sum() / counts[answered].sum()).item(),
        log_likelihood=((counts * surprise).sum() / counts.sum()).item(),
    )


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """The share of right classes, over all items at once (not a mean of batch means), still on the device."""
    return (logits.argmax(-1) == y.to(logits.device)).double().mean()


def calibration_error(probabilities: NDArray[np.float64], y: NDArray[np.int64], bins: int = 15) -> float:
    """Expected calibration error: |accuracy - confidence| in equal-width bins of confidence, by their items."""
    confidence = probabilities.max(1)
    right = probabilities.argmax(1) == y
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = np.bincount(place, right - confidence, minlength=bins)
    return float(np.abs(gap).sum() / max(len(y), 1))

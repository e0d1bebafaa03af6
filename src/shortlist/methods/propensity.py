"""Ordinary losses weighted by inverse propensity: for lists that a policy chose."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shortlist import losses
from shortlist.errors import InputError, unknown_name
from shortlist.labels import StochasticLabels
from shortlist.methods.base import Batch, Feed, Method, Protocol
from shortlist.risks import picked_loss, propensity_loss, propensity_weight

Form = Literal["plain", "clipped", "normalised"]


@dataclass(frozen=True)
class Propensity(Method):
    """Mean over all items of L_s / pi_s where answered, 0 where None; pi_s is the probability with which s was shown.

    It is unbiased for the ordinary risk under any policy whose inclusion probabilities are known, and positive for
    every class. Of several questions on an item only the first counts. `likelihood` also learns from None answers and
    needs no probabilities: prefer it unless you need another loss.

    Args:
        form: `plain`: unbiased. `clipped`: weights 1 / pi_s of at most `clip`, which bounds the variance and biases
            downwards. `normalised`: weights divided by their mean in the batch, consistent for large batches.
        clip: the largest weight in the form `clipped`.
        loss: any of `losses.LOSSES`.
    """

    name = "propensity"
    title = "answers weighted by 1 / the probability of being shown"
    form: Form = "plain"
    clip: float = 20.0
    loss: str = "cross_entropy"

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise unknown_name("form of propensity", self.form, get_args(Form))
        if not self.clip > 0:
            raise InputError(f"clip of propensity: expected above 0, got {self.clip}")
        losses.get(self.loss)

    def objective(self, logits: Tensor, batch: Batch) -> Tensor:
        """The formula above."""
        assert batch.inclusion is not None
        values = losses.get(self.loss)(logits)
        if self.form == "normalised":
            weight = propensity_weight(batch.answer, batch.inclusion)
            return batch.mean(picked_loss(values, batch.answer), counted=weight)
        clip = self.clip if self.form == "clipped" else torch.inf
        return batch.mean(propensity_loss(values, batch.answer, batch.inclusion, clip=clip))

    def feed(self, labels: StochasticLabels, protocol: Protocol = "fair", weight: ArrayLike | None = None) -> Feed:
        """Every item, with the inclusion probability of its answer.

        Raises:
            InputError: the labels do not state the probabilities.
        """
        feed = super().feed(labels, protocol, weight)
        return replace(feed, inclusion=_inclusion_of_answers(labels)[feed.rows])

    def probabilities(self, logits: Tensor) -> Tensor:
        """By `losses.probabilities`."""
        return losses.probabilities(self.loss, logits)


def _inclusion_of_answers(labels: StochasticLabels) -> Tensor:
    """(N,) the probability with which the first question showed the class answered; infinite if it did not show it."""
    if labels.inclusion is None:
        raise InputError(
            "method 'propensity' needs to know how likely each class was to be shown, and these labels do not say: "
            "an annotation export has it in its column 'probabilities'"
        )
    rows = np.repeat(np.arange(len(labels)), labels.sizes)
    stated = np.zeros(len(labels), np.bool_)
    stated[rows[~np.isnan(labels.inclusion)]] = True
    missing = np.nonzero(labels.answered & ~stated)[0]
    if len(missing):
        raise InputError(
            f"method 'propensity': the labels do not say how likely each class was to be shown for {len(missing)} of "
            f"{len(labels)} items, first {labels.item_ids[missing[0]]!r}"
        )
    picked = labels.classes == labels.answer[rows]
    chances = np.full(len(labels), np.inf)
    # NaN on a list with known probabilities: a class that only a later question on the item showed
    chances[rows[picked]] = np.where(np.isnan(labels.inclusion[picked]), np.inf, labels.inclusion[picked])
    return torch.from_numpy(chances).float()

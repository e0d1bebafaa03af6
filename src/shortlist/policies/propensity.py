"""Risks weighted by inverse propensity: unbiased under any policy whose inclusion probabilities are known and positive.

One question an item, its shortlist S drawn without looking at y, pi_j = P(j in S). An answered item shows its class y
with probability pi_y, so for any number A that depends neither on y nor on S

    value = A + [answered] (L_y - A) / pi_y,     E[value] = L_y.

A = 0 is the plain form (None items contribute nothing); A = sum_j q_j L_j with a model's probabilities q lowers the
variance (doubly robust). Later questions on the same item have no such simple form; `round_weight` gives one.
"""

from typing import TYPE_CHECKING, Literal

from shortlist.errors import InputError, unknown_name

if TYPE_CHECKING:
    from torch import Tensor

Form = Literal["plain", "clipped", "normalised"]


def propensity_risk(
    losses: "Tensor",
    answer: "Tensor",
    inclusion: "Tensor",
    *,
    baseline: "Tensor | None" = None,
    form: Form = "plain",
    clip: float = 20.0,
) -> "Tensor":
    """(..., B, K) losses, (..., B) answers, (..., B) inclusion probability of the answer -> (...).

    Args:
        losses: L.
        answer: a class or NONE.
        inclusion: pi of the class answered, as stored with the question; ignored where None.
        baseline: (..., B, K) probabilities q made without the item's own answer: A = sum_j q_j L_j; A = 0 otherwise.
        form: `plain`: unbiased. `clipped`: weights 1 / pi cut at `clip`, biased towards A, of bounded variance.
            `normalised`: weights divided by their mean, consistent, for batches that are large.
        clip: the largest weight of the form `clipped`.
    """
    import torch

    from shortlist.labels import NONE
    from shortlist.losses import at_least_float32
    from shortlist.risks import picked_loss

    losses = at_least_float32(losses)
    answered = answer != NONE
    if bool((answered & (inclusion <= 0)).any()):
        raise InputError("inclusion: an answered class must have had a chance above 0 to be shown")
    picked = picked_loss(losses, answer)
    level = torch.zeros_like(picked) if baseline is None else (baseline.detach() * losses).sum(-1)
    weight = torch.where(answered, 1 / torch.where(answered, inclusion, 1).to(losses.dtype), 0)
    match form:
        case "plain":
            pass
        case "clipped":
            weight = weight.clamp(max=clip)
        case "normalised":
            weight = weight / weight.mean(-1, keepdim=True).clamp(min=torch.finfo(losses.dtype).tiny)
        case _:
            raise unknown_name("form", form, ("plain", "clipped", "normalised"))
    # select, not multiply: a loss may be infinite where nothing was answered
    return (level + torch.where(answered, weight * (picked - level), 0)).mean(-1)


def round_weight(inclusions: "list[float]", rounds: int) -> float:
    """The weight of L_y when an item is asked up to `rounds` times and y is answered in the last round given.

    inclusions holds pi_1(y), ..., pi_t(y): the inclusion probability that the class answered had in every round, each
    given the rounds before. 1 / (rounds pi_t prod_{s<t} (1 - pi_s)) makes the mean over the rounds unbiased, provided
    that a class preferred in an early round is not certain to be shown (epsilon > 0). Items that were never answered
    contribute 0.
    """
    if not inclusions or len(inclusions) > rounds:
        raise InputError(f"inclusions: expected 1 to {rounds} of them, got {len(inclusions)}")
    *earlier, last = inclusions
    chance = last
    for inclusion in earlier:
        chance *= 1 - inclusion
    if not chance > 0:
        raise InputError("inclusions: the class answered had no chance to be first shown in that round")
    return 1 / (rounds * chance)

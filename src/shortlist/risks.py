r"""Risks: losses and answers -> one number per run.

All take the same arguments:

    losses    (..., B, K) from `shortlist.losses`; the likelihood takes logits instead
    shown     (..., B, K) bool, the classes on each shortlist; l of the K classes, and l may differ by item
    answer    (..., B) the class picked, or NONE = -1
    weight    (..., B) optional; an item counts like `weight` copies of itself
    all_sum   for distributed runs: adds up sums over the batch from all processes

The result is (...): only the batch is reduced, so a fleet of runs is one more leading dimension. Half precision is
raised to float32; double stays double. A risk is a function of sums over the batch, and `all_sum` sees these before
anything nonlinear happens to them, so every process gets the risk of the whole batch.
"""

import math
from typing import Literal

from shortlist.errors import unknown_name
from shortlist.internal.extras import named_extra
from shortlist.labels import NONE

with named_extra():
    import torch
    import torch.nn.functional as F
    from torch import Tensor

from shortlist.internal.tensors import AllSum, at_least_float32, single_process

__all__ = [
    "Correction",
    "batch_mean",
    "candidates",
    "likelihood_risk",
    "log_candidates",
    "nonnegative_risk",
    "paper_risk",
    "picked_loss",
    "propensity_loss",
    "propensity_weight",
    "total_risk",
    "unbiased_risk",
    "unseen_loss",
]

Correction = Literal["none", "relu", "abs"]


def paper_risk(
    losses: Tensor,
    shown: Tensor,
    answer: Tensor,
    prior: Tensor,
    *,
    weight: Tensor | None = None,
    all_sum: AllSum = single_process,
) -> Tensor:
    """Algorithm 1 of the paper to the letter, Eq. (13).

        1/(n - N_s)  sum over answered items of  P(s = s_i) L_{s_i}
        + 1/N_s      sum over None items of      P(s = None) (mean over not shown of L_j)

    with n items in the batch and N_s None answers among them. A part without items contributes nothing. An answered
    item is weighted by P(s = s_i) once more than in `total_risk`; `theory.paper_smoothing` says what that amounts to.

    Args:
        losses: (..., B, K).
        shown: (..., B, K).
        answer: (..., B).
        prior: (..., K + 1) P(s), None last (`StochasticLabels.prior`).
        weight: (..., B).
        all_sum: see the module.
    """
    losses = at_least_float32(losses)
    answered = answer != NONE
    prior = prior.to(losses.dtype)
    p_answer = prior[..., :-1].unsqueeze(-2).expand_as(losses).gather(-1, _index(answer)).squeeze(-1)
    picked, unseen = picked_loss(losses, answer), unseen_loss(losses, shown)
    counts = _counts(picked, weight)
    sums = torch.stack(
        [
            torch.where(answered, counts * p_answer * picked, 0).sum(-1),
            torch.where(answered, counts, 0).sum(-1),
            torch.where(answered, 0, counts * unseen).sum(-1),
            torch.where(answered, 0, counts).sum(-1),
        ]
    )
    picked_sum, picked_count, unseen_sum, unseen_count = all_sum(sums).unbind()
    return _ratio(picked_sum, picked_count) + prior[..., -1] * _ratio(unseen_sum, unseen_count)


def total_risk(
    losses: Tensor,
    shown: Tensor,
    answer: Tensor,
    *,
    weight: Tensor | None = None,
    all_sum: AllSum = single_process,
) -> Tensor:
    """Theorem 3.2 of the paper, Eq. (12), read as a total expectation: the mean over all items of

        answered:  L_s
        None:      mean over not shown of L_j

    For uniform shortlists of size l <= K - 1 its expectation is the ordinary risk under labels smoothed by
    epsilon = 1 - l/(K - 1) (`theory.smoothing`): the best classifier stays the best, its probabilities are shrunk.

    Example:
        >>> losses = torch.tensor([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
        >>> shown = torch.tensor([[True, True, False], [True, False, False]])
        >>> total_risk(losses, shown, torch.tensor([1, -1]))  # (2 + (2 + 4) / 2) / 2
        tensor(2.5000)
    """
    losses = at_least_float32(losses)
    values = torch.where(answer != NONE, picked_loss(losses, answer), unseen_loss(losses, shown))
    return batch_mean(values, weight, all_sum)


def unbiased_risk(
    losses: Tensor,
    shown: Tensor,
    answer: Tensor,
    *,
    weight: Tensor | None = None,
    all_sum: AllSum = single_process,
) -> Tensor:
    """An unbiased form: the mean over all items of

        answered:  L_s
        None:      sum over not shown of L_j  -  (K - 1 - l)/l  sum over shown of L_j

    For uniform shortlists of size 1 <= l <= K - 1 its expectation is exactly the ordinary risk. It can fall below zero
    and then overfits badly; `nonnegative_risk` corrects that.
    """
    losses = at_least_float32(losses)
    return batch_mean((_unbiased_weights(losses, shown, answer) * losses).sum(-1), weight, all_sum)


def nonnegative_risk(
    losses: Tensor,
    shown: Tensor,
    answer: Tensor,
    *,
    correction: Correction = "relu",
    weight: Tensor | None = None,
    all_sum: AllSum = single_process,
) -> Tensor:
    """`unbiased_risk` corrected class by class: sum_j max(0, g_j) (`relu`) or sum_j |g_j| (`abs`).

    g_j is the part of class j in the unbiased form: the batch mean of its terms with L_j. The part of a class in the
    ordinary risk cannot be negative, so an estimate below zero is overfitted. `none` leaves the correction out.
    """
    losses = at_least_float32(losses)
    terms = _unbiased_weights(losses, shown, answer) * losses
    counts = _counts(terms[..., 0], weight)
    sums = torch.cat([(counts.unsqueeze(-1) * terms).sum(-2), counts.sum(-1, keepdim=True)], -1)
    sums = all_sum(sums)
    means = _ratio(sums[..., :-1], sums[..., -1:])
    match correction:
        case "none":
            return means.sum(-1)
        case "relu":
            return means.relu().sum(-1)
        case "abs":
            return means.abs().sum(-1)
    raise unknown_name("correction", correction, ("none", "relu", "abs"))


def likelihood_risk(
    logits: Tensor,
    shown: Tensor,
    answer: Tensor,
    *,
    weight: Tensor | None = None,
    all_sum: AllSum = single_process,
) -> Tensor:
    """The exact negative log likelihood: the mean over all items of

        answered:  -log p_s
        None:      -log sum over not shown of p_j

    with p = softmax(logits). It is valid for any shortlist chosen without looking at the true class, also for one that
    a model chose from x and earlier answers.
    """
    return batch_mean(-log_candidates(logits, candidates(shown, answer)), weight, all_sum)


# -- parts that methods share ------------------------------------------------------------------------------------------


def candidates(shown: Tensor, answer: Tensor) -> Tensor:
    """(..., B, K) mask of the classes still possible: the answer alone, or all that were not shown."""
    picked = torch.zeros_like(shown).scatter(-1, _index(answer), True)
    return torch.where((answer != NONE).unsqueeze(-1), picked, ~shown)


def log_candidates(logits: Tensor, possible: Tensor) -> Tensor:
    """(..., B) log P_C, with P_C = sum_{k in C} softmax(f)_k the probability of the candidates C = `possible`."""
    # log p first: the difference of two logsumexps of logits near 1e4 would have three correct digits
    log_p = F.log_softmax(at_least_float32(logits), -1)
    return torch.logsumexp(log_p.masked_fill(~possible, -torch.inf), -1)


def picked_loss(losses: Tensor, answer: Tensor) -> Tensor:
    """(..., B) the loss of the answer; for None that of class 0, which is to be masked."""
    return losses.gather(-1, _index(answer)).squeeze(-1)


def unseen_loss(losses: Tensor, shown: Tensor) -> Tensor:
    """(..., B) the mean of L_j over the classes not shown, Eq. (11) of the paper; 0 if all were shown."""
    hidden = ~shown
    # select, not multiply: 0 * inf would be NaN
    return torch.where(hidden, losses, 0).sum(-1) / hidden.sum(-1).clamp(min=1)


def propensity_weight(answer: Tensor, inclusion: Tensor) -> Tensor:
    """(..., B) 1 / inclusion where answered, 0 where None.

    Args:
        answer: (..., B).
        inclusion: (..., B) the probability with which the class answered was put on the list; ignored where None,
            infinite for an answer that is not to count.
    """
    answered = answer != NONE
    return torch.where(answered, 1 / torch.where(answered, at_least_float32(inclusion), 1), 0)


def propensity_loss(
    losses: Tensor,
    answer: Tensor,
    inclusion: Tensor,
    *,
    baseline: Tensor | None = None,
    clip: float = math.inf,
) -> Tensor:
    """(..., B) the loss weighted by inverse propensity, whose expectation over the lists is L_y:

        A + [answered] (L_s - A) / pi_s

    pi_j > 0 is the probability of class j to be on the list, which was drawn without looking at the true class y; an
    item has one question. It is then answered with probability pi_y, so the expectation is L_y under any policy, for
    any A that depends neither on y nor on the list. A is 0 (None items contribute nothing) or, with a model's
    probabilities q, sum_j q_j L_j, which lowers the variance (doubly robust).

    Args:
        losses: (..., B, K).
        answer: (..., B).
        inclusion: (..., B) pi_s, as in `propensity_weight`.
        baseline: (..., B, K) q, made without the item's own answer; None: A = 0.
        clip: the largest weight 1 / pi_s; a finite one bounds the variance and biases towards A.
    """
    losses = at_least_float32(losses)
    picked = picked_loss(losses, answer)
    level = torch.zeros_like(picked) if baseline is None else (baseline.detach() * losses).sum(-1)
    weight = propensity_weight(answer, inclusion).to(losses.dtype).clamp(max=clip)
    # select, not multiply: 0 * inf would be NaN
    return level + torch.where(weight > 0, weight * (picked - level), 0)


def batch_mean(values: Tensor, weight: Tensor | None = None, all_sum: AllSum = single_process) -> Tensor:
    """(...) the weighted mean of (..., B) values over the batch of all processes."""
    counts = _counts(values, weight)
    total, count = all_sum(torch.stack([(counts * values).sum(-1), counts.sum(-1)])).unbind()
    return _ratio(total, count)


def _unbiased_weights(losses: Tensor, shown: Tensor, answer: Tensor) -> Tensor:
    """(..., B, K) what `unbiased_risk` multiplies each L_j by."""
    K = losses.shape[-1]
    size = shown.sum(-1, keepdim=True).to(losses.dtype)
    none_weights = torch.where(shown, -(K - 1 - size) / size.clamp(min=1), 1)
    picked = torch.zeros_like(losses).scatter(-1, _index(answer), 1)
    return torch.where((answer != NONE).unsqueeze(-1), picked, none_weights)


def _index(answer: Tensor) -> Tensor:
    """Answers as an index for gather and scatter; None becomes class 0, to be masked afterwards."""
    return answer.clamp(min=0).long().unsqueeze(-1)


def _counts(values: Tensor, weight: Tensor | None) -> Tensor:
    """(..., B) how often each value counts."""
    return torch.ones_like(values) if weight is None else weight.to(values.dtype)


def _ratio(total: Tensor, count: Tensor) -> Tensor:
    """total / count; 0 where count is 0."""
    return total / torch.where(count == 0, 1, count)

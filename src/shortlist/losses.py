r"""Multi-class losses: (..., K) logits -> (..., K) losses. Entry j is L[f, j], the loss if the class is j.

One-versus-rest (OVR) losses are built from a binary loss psi on margins:

    L[f, j] = psi(f_j) + sum over k != j of psi(-f_k)

The others speak of p = softmax(f). Half precision is raised to float32, since the square of a logit of 1e4 does not fit
into a half; double stays double.
"""

from collections.abc import Callable
from typing import Literal

from shortlist.errors import InputError, unknown_name
from shortlist.internal.extras import named_extra

with named_extra():
    import torch
    import torch.nn.functional as F
    from torch import Tensor

from shortlist.internal.tensors import at_least_float32

__all__ = [
    "LOSSES",
    "Normalisation",
    "cross_entropy",
    "get",
    "ovr_square",
    "probabilities",
]

Loss = Callable[[Tensor], Tensor]
Normalisation = Literal["sum", "mean", "negatives"]


def ovr_square(logits: Tensor, normalisation: Normalisation = "sum") -> Tensor:
    """OVR with the square loss psi(z) = (1 - z)^2 / 4, the paper's choice of L in Eq. (11) to Eq. (13).

    Args:
        logits: (..., K).
        normalisation: `sum` is the formula above; `mean` divides it by K; `negatives` divides the sum over k != j by
            K - 1, so that all negative terms together weigh as much as the positive one.

    Example:
        >>> ovr_square(torch.tensor([1.0, -1.0]))
        tensor([0., 2.])
    """
    z = at_least_float32(logits)
    return _one_versus_rest((1 - z) ** 2 / 4, (1 + z) ** 2 / 4, normalisation)


def ovr_logistic(logits: Tensor, normalisation: Normalisation = "sum") -> Tensor:
    """OVR with the logistic loss psi(z) = log(1 + exp(-z))."""
    z = at_least_float32(logits)
    return _one_versus_rest(F.softplus(-z), F.softplus(z), normalisation)


def ovr_sigmoid(logits: Tensor, normalisation: Normalisation = "sum") -> Tensor:
    """OVR with the sigmoid loss psi(z) = 1 / (1 + exp(z)), bounded and symmetric: psi(z) + psi(-z) = 1."""
    z = at_least_float32(logits)
    return _one_versus_rest(torch.sigmoid(-z), torch.sigmoid(z), normalisation)


def cross_entropy(logits: Tensor) -> Tensor:
    """L[f, j] = -log p_j."""
    return -F.log_softmax(at_least_float32(logits), dim=-1)


def mae(logits: Tensor) -> Tensor:
    """Mean absolute error: L[f, j] = sum_k |1[k = j] - p_k| = 2 (1 - p_j). Its sum over j is constant."""
    return 2 * (1 - F.softmax(at_least_float32(logits), dim=-1))


def gce(logits: Tensor, q: float = 0.7) -> Tensor:
    """Generalised cross entropy: L[f, j] = (1 - p_j^q) / q. Cross entropy as q -> 0, half of MAE at q = 1."""
    if not 0 < q <= 1:
        raise InputError(f"q of gce: expected 0 < q <= 1, got {q}")
    return -torch.expm1(q * F.log_softmax(at_least_float32(logits), dim=-1)) / q


def _one_versus_rest(positive: Tensor, negative: Tensor, normalisation: Normalisation) -> Tensor:
    """The OVR loss from positive_k = psi(f_k) and negative_k = psi(-f_k)."""
    K = positive.shape[-1]
    others = negative.sum(-1, keepdim=True) - negative  # entry j: the sum over k != j
    match normalisation:
        case "sum":
            return positive + others
        case "mean":
            return (positive + others) / K
        case "negatives":
            return positive + others / max(K - 1, 1)
    raise unknown_name("normalisation", normalisation, ("sum", "mean", "negatives"))


LOSSES: dict[str, Loss] = {
    "ovr_square": ovr_square,
    "ovr_logistic": ovr_logistic,
    "ovr_sigmoid": ovr_sigmoid,
    "cross_entropy": cross_entropy,
    "mae": mae,
    "gce": gce,
}

# From logits to shares proportional to p_k. The minimisers of the square and the logistic loss give exactly p_k; that
# of the sigmoid loss only says whether p_k > 1/2. All others go by softmax: exact for cross entropy, while for the
# bounded losses it keeps the order of the classes.
_LINKS: dict[str, Loss] = {
    "ovr_square": lambda z: ((1 + z) / 2).clamp(0, 1),
    "ovr_logistic": torch.sigmoid,
    "ovr_sigmoid": torch.sigmoid,
}


def probabilities(name: str, logits: Tensor) -> Tensor:
    """(..., K) the class probabilities that logits trained with a loss stand for.

    >>> probabilities("ovr_square", torch.tensor([0.6, -0.2, -1.4]))
    tensor([0.6667, 0.3333, 0.0000])
    """
    get(name)  # refuses a misspelt name, which would get a softmax below
    logits = at_least_float32(logits)
    if name not in _LINKS:
        return torch.softmax(logits, -1)
    shares = _LINKS[name](logits)
    total = shares.sum(-1, keepdim=True)
    # where every share is 0, the order of the logits is all there is
    return torch.where(total > 0, shares / torch.where(total > 0, total, 1), torch.softmax(logits, -1))


def get(name: str) -> Loss:
    """A loss by its name."""
    if name not in LOSSES:
        raise unknown_name("loss", name, LOSSES)
    return LOSSES[name]

"""Logits of many items, and scores computed from them.

If lists of l of the K classes are drawn uniformly and answered without mistakes, answered items are a fair sample, and
the share of right predictions among them estimates the accuracy. None items estimate it, too: a right prediction is
never among the classes shown, and a wrong one is with probability l / (K - 1), so

    accuracy = 1 - ((K - 1) / l) P(prediction among the shown | None)

Both estimates are unbiased. With an error rate of p an answered item has the variance p (1 - p), and a None item
p ((K - 1) / l - p); `estimate` weights them by the inverse.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from shortlist.internal.tensors import at_least_float32
from shortlist.labels import StochasticLabels
from shortlist.methods import Method
from shortlist.risks import log_candidates
from shortlist.training.inputs import Inputs, Normalise

EVALUATION_BATCH = 2000
TEMPERATURES = (0.05, 20.0)
"""The range of temperatures that are tried."""
STEADY = 10.0
"""How strongly the log of a temperature is pulled to 0, in answers: a few answers say little."""
HIGHEST = 0.9
"""Weights do not follow the error rate above this: those of answered items would grow without bound."""


@torch.no_grad()
def predict_logits(model: nn.Module, inputs: Inputs, rows: Tensor | None = None, amp: bool = False) -> Tensor:
    """(N, K) logits in evaluation mode, on the device: float32, or float64 where the model is."""
    rows = torch.arange(len(inputs)) if rows is None else rows
    layer = linear_layer(model) if inputs.device.type == "cpu" else None
    if layer is not None and inputs.sparse is not None and _as_it_is(next(iter(model.children()))):
        weight = layer.weight.T.contiguous().numpy()
        return torch.from_numpy(np.asarray(inputs.sparse[rows.numpy()] @ weight)) + layer.bias
    was_training = model.training
    model.eval()
    parts = []
    with torch.autocast(inputs.device.type, torch.bfloat16, enabled=amp):
        for part in torch.split(rows, EVALUATION_BATCH):
            parts.append(at_least_float32(model(inputs.gather(part))))
    model.train(was_training)
    return torch.cat(parts)


def linear_layer(model: nn.Module) -> nn.Linear | None:
    """The one layer, which has a bias, of a linear model behind its normalisation; None for any other model."""
    parts = list(model) if isinstance(model, nn.Sequential) else []
    inner = list(parts[1]) if len(parts) == 2 and isinstance(parts[1], nn.Sequential) else []
    if len(inner) != 2 or not isinstance(inner[0], nn.Flatten) or type(inner[1]) is not nn.Linear:
        return None
    return None if inner[1].bias is None else inner[1]


def _as_it_is(first: nn.Module) -> bool:
    """Whether a normalisation changes nothing, like that of sparse features."""
    return isinstance(first, Normalise) and not first.mean.any() and bool((first.deviation == 1).all())


def logits_of(model: nn.Module, x: Any, device: str) -> Tensor:
    """(N, K) the model's logits of items that are not on a device yet: images, features or a CSR matrix."""
    return predict_logits(model, Inputs(x, device))


class Estimate(NamedTuple):
    """An accuracy and its standard error."""

    accuracy: float
    error: float


def estimate(right: float, answered: int, missed: float, none: int, ratio: float) -> Estimate | None:
    """The accuracy by inverse-variance weights (see above); None if nothing was held out.

    Args:
        right: how many of the answered items are predicted right.
        answered: how many there are.
        missed: the sum of (K - 1) / l over the None items whose prediction was among the classes shown.
        none: how many None items there are.
        ratio: the mean of (K - 1) / l over them.
    """
    if not answered + none:
        return None
    wrong = 0.0
    for _ in range(2):  # first with weights for few errors, then with those for the error rate found
        level = min(max(wrong, 0.0), HIGHEST)
        by_answer, by_none = 1 / (1 - level), 1 / (ratio - level) if none else 0.0
        weight = by_answer * answered + by_none * none
        wrong = (by_answer * (answered - right) + by_none * missed) / weight
    rate = min(max(wrong, 1 / (answered + none)), HIGHEST)
    return Estimate(1 - wrong, (rate / weight) ** 0.5)


@dataclass(frozen=True)
class Scores:
    """How well a model does on held-out items, from their answers alone."""

    accuracy: float
    """On the answered items. Their answers are true labels, and under uniform, mistake-free shortlists they are a fair
    sample, so this is an unbiased estimate of the test accuracy."""
    log_likelihood: float
    """Mean log probability of the answers, None answers included."""

    estimate: Estimate | None = None
    """The accuracy estimated from all answers, None included; only if lists were uniform."""

    @property
    def validation(self) -> dict[str, float | None]:
        """As `EpochScores` has them. The accuracy is None if no item was answered, as JSON has no NaN."""
        scores = {
            "validation_accuracy": None if np.isnan(self.accuracy) else self.accuracy,
            "validation_log_likelihood": self.log_likelihood,
        }
        if self.estimate is not None:
            scores |= {"validation_estimate": self.estimate.accuracy, "validation_error": self.estimate.error}
        return scores


@dataclass(frozen=True)
class HeldAnswers:
    """The answers of held-out items on a device, for scoring logits epoch after epoch."""

    answer: Tensor
    """(N,)."""
    answered: Tensor
    """(N,) bool."""
    candidates: Tensor
    """(N, K) bool."""
    ratio: Tensor
    """(N,) (K - 1) / l of None items, 0 of the others."""
    counts: tuple[int, int]
    """How many are answered, and how many None."""
    mean_ratio: float
    uniform: bool
    """Whether lists were drawn uniformly, so that None items say something about the accuracy."""

    @classmethod
    def of(cls, labels: StochasticLabels, uniform: bool, device: torch.device | str = "cpu") -> Self:
        """The labels of the held-out items."""
        none = ~labels.answered
        ratio = np.where(none, (labels.num_classes - 1) / np.maximum(labels.sizes, 1), 0.0)
        return cls(
            answer=torch.from_numpy(labels.answer).to(device),
            answered=torch.from_numpy(labels.answered).to(device),
            candidates=torch.from_numpy(labels.candidates).to(device),
            ratio=torch.from_numpy(ratio).to(device),
            counts=(int((~none).sum()), int(none.sum())),
            mean_ratio=float(ratio[none].mean()) if none.any() else 0.0,
            uniform=uniform,
        )

    def sums(self, logits: Tensor, p: Tensor, weight: Tensor | None = None) -> Tensor:
        """(5,) still on the device: the weights of answered items that are right, of all answered, of all, the sum of
        the weighted log probabilities of the answers, and of `ratio` over the None items whose prediction was shown.

        Args:
            logits: (N, K).
            p: (N, K) the probabilities that the method makes of them.
            weight: (N,).
        """
        counts = torch.ones_like(self.ratio) if weight is None else weight.to(self.ratio)
        said = logits.argmax(-1, keepdim=True)
        share = (p.to(counts.device).double() * self.candidates).sum(-1)
        # an impossible answer costs as much as one at the limit of float32
        surprise = share.clamp(min=float(np.finfo(np.float32).tiny)).log()
        answered = torch.where(self.answered, counts, 0)
        missed = self.ratio * ~self.candidates.gather(1, said).squeeze(1)
        values = (answered * (said.squeeze(1) == self.answer), answered, counts, counts * surprise, missed)
        return torch.stack([value.sum() for value in values])

    def scores(self, sums: Sequence[float]) -> Scores:
        """The scores, from the numbers that `sums` gave."""
        right, answered, total, log_probability, missed = sums
        return Scores(
            accuracy=right / answered if answered else np.nan,
            log_likelihood=log_probability / total if total else np.nan,
            estimate=estimate(right, self.counts[0], missed, self.counts[1], self.mean_ratio) if self.uniform else None,
        )


def score_answers(
    logits: Tensor,
    labels: StochasticLabels,
    probabilities: Callable[[Tensor], Tensor],
    weight: Tensor | None = None,
    *,
    uniform: bool = False,
) -> Scores:
    """Score logits by the answers of the same items.

    Args:
        logits: (N, K).
        labels: N rows.
        probabilities: turns logits into the method's probabilities (its link, smoothing undone).
        weight: (N,) how much each item counts; 1 / inclusion probability of the answer makes the accuracy fair if
            shortlists were not drawn uniformly.
        uniform: whether they were, so that None answers can be scored, too; not together with weights.
    """
    held = HeldAnswers.of(labels, uniform)
    return held.scores(held.sums(logits.cpu(), probabilities(logits).cpu(), weight).tolist())


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """The share of right classes over all items (not a mean of batch means), still on the device."""
    return (logits.argmax(-1) == y.to(logits.device)).double().mean()


def calibration_error(probabilities: NDArray[np.float64], y: NDArray[np.int64], bins: int = 15) -> float:
    """Expected calibration error: |accuracy - confidence| in equal-width bins of confidence, by their items."""
    p, classes = (torch.tensor(np.ascontiguousarray(values)) for values in (probabilities, y))
    return float(miscalibration(p, classes, bins))


def miscalibration(p: Tensor, y: Tensor, bins: int = 15) -> Tensor:
    """`calibration_error`, still on the device; NaN where a probability is."""
    confidence, said = p.double().max(-1)
    place = (confidence.nan_to_num() * bins).long().clamp(max=bins - 1)  # a wrong place would end a GPU's process
    gap = torch.zeros(bins, dtype=torch.float64, device=p.device)
    gap.index_add_(0, place, (said == y.to(said.device)).double() - confidence)
    return gap.abs().sum() / max(len(y), 1)


def fit_temperature(logits: Tensor, candidates: Tensor) -> float:
    """The temperature, a divisor of the logits, that makes the answers likeliest (after Guo et al. 2017).

    It changes the probabilities but not which classes are likeliest. It maximises the probability of the classes that
    each answer leaves, so None answers count, too, and lists need not be uniform.

    Args:
        logits: (N, K) of items that it was not trained on.
        candidates: (N, K) bool: the classes that their answers leave.
    """
    possible = candidates.any(-1)  # if no class is left, no temperature makes the answer likelier
    z, left = logits[possible].double(), candidates[possible]

    def surprise(log_temperature: float) -> float:
        found = log_candidates(z / math.exp(log_temperature), left).sum()
        return STEADY / 2 * log_temperature**2 - float(found)

    low, high = map(math.log, TEMPERATURES)
    return math.exp(minimize_scalar(surprise, bounds=(low, high), method="bounded", options={"xatol": 1e-3}).x)


def is_softmax(method: Method, num_classes: int) -> bool:
    """Whether a method's probabilities are the softmax of its logits, so that a temperature makes sense."""
    probe = torch.linspace(-1, 1, num_classes)
    return torch.allclose(method.probabilities(probe), torch.softmax(probe, -1))

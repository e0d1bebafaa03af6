"""The objectives of a fleet's runs and their gradients by the logits: one call per method."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from shortlist.methods import Batch, Method
from shortlist.training.views import objective_of


def risks_and_slopes(method: Method, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """(R,) the objective of each run, and (R, B, K), or (R, 2 B, K) of two views, its gradient by the logits."""

    def total(z: Tensor) -> tuple[Tensor, Tensor]:
        risks = objective_of(method, z, batch)
        return risks.sum(), risks

    slopes, (_, risks) = torch.func.grad_and_value(total, has_aux=True)(logits)
    return risks, slopes


def compiled_slopes() -> Callable[[Method, Tensor, Batch], tuple[Tensor, Tensor]]:
    """`risks_and_slopes`, compiled once per method, whatever the number of runs."""
    import torch._dynamo

    # a study has dozens of these; past its limit (8) torch would fall back on the slow path without a word
    torch._dynamo.config.cache_size_limit = max(256, torch._dynamo.config.cache_size_limit)
    compiled = torch.compile(risks_and_slopes)

    def slopes(method: Method, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        for tensor in (logits, *(value for value in vars(batch).values() if isinstance(value, Tensor))):
            torch._dynamo.maybe_mark_dynamic(tensor, 0)
        return compiled(method, logits, batch)

    return slopes


def groups_of(methods: Sequence[Method]) -> list[tuple[slice, Method]]:
    """Ranges of neighbouring runs with equal methods: one call computes their objectives."""
    groups: list[tuple[slice, Method]] = []
    start = 0
    for run in range(1, len(methods) + 1):
        if run == len(methods) or methods[run] != methods[start]:
            groups.append((slice(start, run), methods[start]))
            start = run
    return groups

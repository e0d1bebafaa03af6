"""Learning rates by step."""

import math
from functools import lru_cache

import torch
from torch import Tensor

from shortlist.training.config import RunConfig, Schedule


def learning_rates(config: RunConfig, steps: int) -> Tensor:
    """(epochs * steps,) the learning rate of every step.

    `constant`; `step`: a tenth from half of the epochs on and a hundredth from three quarters; `cosine`: from lr down
    to nearly 0, step by step.
    """
    return _factors(config.schedule, config.epochs * steps).mul(config.lr).float()


@lru_cache(16)
def _factors(schedule: Schedule, total: int) -> Tensor:
    """Kept: the runs of a fleet have few schedules."""
    if schedule == "cosine":
        factors = [(1 + math.cos(math.pi * t / total)) / 2 for t in range(total)]
    elif schedule == "step":
        factors = [0.1 ** ((2 * t >= total) + (4 * t >= 3 * total)) for t in range(total)]
    else:
        factors = [1.0] * total
    return torch.tensor(factors, dtype=torch.float64)

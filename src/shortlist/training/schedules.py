"""Learning rates by step."""

import math

import torch
from torch import Tensor

from shortlist.training.config import RunConfig


def learning_rates(config: RunConfig, steps: int) -> Tensor:
    """(epochs * steps,) the learning rate of every step.

    `constant`; `step`: a tenth from half of the epochs on and a hundredth from three quarters; `cosine`: from lr down
    to nearly 0, step by step.
    """
    total = config.epochs * steps
    if config.schedule == "cosine":
        factors = [(1 + math.cos(math.pi * t / total)) / 2 for t in range(total)]
    elif config.schedule == "step":
        factors = [0.1 ** ((2 * t >= total) + (4 * t >= 3 * total)) for t in range(total)]
    else:
        factors = [1.0] * total
    return torch.tensor(factors, dtype=torch.float64).mul_(config.lr).float()

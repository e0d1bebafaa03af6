"""torch's global random numbers on every device."""

from typing import Any

import torch


def states() -> list[Any]:
    """What the global generators hold; those of GPUs not used so far: the seeds that wait for their first use."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else torch.cuda._lazy_seed_tracker.get_calls()
    return [state.tolist() if isinstance(state, torch.Tensor) else state for state in (torch.get_rng_state(), *gpus)]

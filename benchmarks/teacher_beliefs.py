"""How often the belief about a None item is right: of items that were trained on, and of held-out ones.

A network learns from its own beliefs. If it confirmed its mistakes, it would be wrong more often about the items that
it was trained on than about those that it has not seen. The true classes are used to tell, never to choose.
"""

import torch

from shortlist.data import Dataset
from shortlist.methods import Feed
from shortlist.training import FleetResult, logits_of
from shortlist.training.task import build_task


def right_of_none(data: Dataset, result: FleetResult, device: str) -> dict[str, float] | None:
    """The shares of None items whose likeliest candidate is their class; None for a run that broke or has no None."""
    if result.state is None or result.config.size is None:
        return None
    assert data.train.y is not None
    task = build_task(data, result.config)
    task.model.load_state_dict(result.state)
    logits = logits_of(task.model.to(device), data.train.x, device).cpu()
    everything = Feed.of(task.labels, range(len(task.labels))).batch(torch.arange(len(task.labels)))
    right = logits.masked_fill(~everything.candidates, -torch.inf).argmax(-1) == torch.from_numpy(data.train.y)
    none = torch.from_numpy(~task.labels.answered)
    held = torch.zeros(len(right), dtype=torch.bool)
    held[task.held_rows] = True
    return {
        "trained": right[none & ~held].double().mean().item(),
        "held": right[none & held].double().mean().item(),
    }

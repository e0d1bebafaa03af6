"""The networks: `build` makes one by name, or from your own function.

Every model takes float input, (N, C, H, W) or (N, D), and returns (N, K) logits.

>>> from shortlist import models
>>> models.names()
('linear', 'mlp', 'lenet', 'resnet32')
>>> model = models.build("mlp", (1, 8, 8), 10, seed=0)
>>> sum(p.numel() for p in model.parameters())
19210
"""

from shortlist.models.registry import build, describe, names

__all__ = ["build", "describe", "names"]

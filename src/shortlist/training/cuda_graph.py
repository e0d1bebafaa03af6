"""A step as a CUDA graph: one launch instead of hundreds."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

WARM_UP = 3
"""Steps before a capture, as CUDA graphs need them (cuDNN picks its algorithms, buffers are made)."""


def captured(step: Callable[[], None], state: Sequence[Tensor], device: torch.device) -> Callable[[], None]:
    """What replays `step`; capturing leaves `state`, all that a step changes, as it was."""
    saved = [tensor.clone() for tensor in state]
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for tensor, value in zip(state, saved, strict=True):
        tensor.copy_(value)
    return graph.replay

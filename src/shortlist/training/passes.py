"""One more pass over newly arrived answers, starting from a trained network."""

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shortlist import methods
from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.training.config import Engine, RunConfig
from shortlist.training.inputs import Inputs
from shortlist.training.method_check import check_method
from shortlist.training.run import Run, part_of


def one_pass(
    network: nn.Module,
    optimiser: Mapping[str, Tensor],
    passes: int,
    config: RunConfig,
    x: Any,
    labels: StochasticLabels,
    weight: NDArray[np.float64] | None,
    device: str,
) -> tuple[Run, float]:
    """Train once on every item; return the run and its mean risk.

    Args:
        network: where to start; a copy of it is trained.
        optimiser: the optimiser's state so far; empty at first.
        passes: how many passes came before: each shuffles in its own way.
        config: the settings; the learning rate stays constant.
        x: the items.
        labels: their answers.
        weight: how much each counts.
        device: where to compute.
    """
    engine = Engine(device=device).resolve(len(labels))
    method = methods.get(config.method, **config.method_options)
    feed = method.feed(labels, config.protocol, weight)
    check_method(method, feed)
    # a run leaves out incomplete batches, but these items come only once: fill the batches up with items of weight 0
    steps = math.ceil(len(feed) / config.batch_size)
    size = math.ceil(len(feed) / steps)
    spare = steps * size - len(feed)
    if spare:
        counted = torch.ones(len(feed)) if feed.weight is None else feed.weight
        filled = part_of(feed, torch.arange(steps * size) % len(feed))
        feed = replace(filled, weight=torch.cat([counted, torch.zeros(spare)]))
    by = "adam" if config.optimiser == "lbfgs" else config.optimiser
    now = replace(config, epochs=1, optimiser=by, schedule="constant", batch_size=size, holdout=0.0)
    run = Run(now, copy.deepcopy(network), method, feed, Inputs(x, engine.device), engine)
    for name, tensor in run.optimiser.state().items():
        if name in optimiser:
            tensor.copy_(optimiser[name])
    run.epoch = passes
    risk = run.train_epoch().item()
    if not math.isfinite(risk):
        raise InputError(f"the risk is {risk}: try a smaller lr")
    return run, risk

"""A single run on the kernels hands over what it has (after training: the check `run` of kernel_check.py)."""

import importlib.util

import numpy as np
import pytest
import torch

from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet.single import VELOCITIES, KernelRun
from shortlist.training.inputs import Inputs
from shortlist.training.task import build_task

from ..conftest import blobs

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.parametrize(("model", "shape"), [("lenet", (1, 8, 8)), ("resnet32", (3, 8, 8))])
def test_the_momentum_lies_as_the_parameters_do(model, shape):
    """Where the kernels' velocity is put equal to their parameters, what is handed over is the module's parameters."""
    data = blobs(count=20, shape=shape)
    config = RunConfig(size=2, model=model, epochs=1, batch_size=10)
    run = KernelRun(build_task(data, config), Inputs(data.train.x, "cpu"), Engine(device="cpu").resolve(1))
    assert not run.optimiser_state()["velocity"].any()
    for name, velocity in VELOCITIES.items():
        if hasattr(run.net, name):
            getattr(run.net, velocity).copy_(getattr(run.net, name))
    assert torch.equal(run.optimiser_state()["velocity"], run.flat.value)
    assert np.unique(run.flat.value).size > 1000

"""A single run on the kernels hands over what it has: the momentum that `partial_fit` goes on with."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from shortlist.training.config import Engine, RunConfig
from shortlist.training.fleet.single import VELOCITIES, KernelRun
from shortlist.training.inputs import Inputs
from shortlist.training.task import build_task

from .conftest import blobs

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


TRAINED = """
import json
from shortlist import ShortlistClassifier
from shortlist.data import load
from shortlist.data import Dataset
from shortlist.training.config import Engine, RunConfig
from shortlist.training.inputs import Inputs
from shortlist.training.fleet.single import KernelRun
from shortlist.training.prepared import prepare
from shortlist.training.task import build_task

digits = load("digits")
data = Dataset("digits", digits.train.take(range(32)), None, digits.class_names, "image")
engine = Engine(device="cpu").resolve(1)
config = RunConfig(size=5, model="lenet", epochs=1, batch_size=16, lr=0.02, seed=3)
kernels = KernelRun(build_task(data, config), Inputs(data.train.x, "cpu"), engine)
kept = []
for run in (prepare(data, config, engine=engine).run, kernels):
    run.train_epoch()
    kept.append(ShortlistClassifier()._keep(run)._optimiser["velocity"].double())
print(json.dumps([float((kept[1] - kept[0]).norm()), float(kept[0].norm())]))
"""


def test_a_classifier_keeps_the_momentum_of_the_kernels():
    """In a process of its own: Triton's interpreter is chosen when Triton is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", TRAINED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    error, size = json.loads(done.stdout)
    assert size > 0.01
    assert error < 2e-5 * size

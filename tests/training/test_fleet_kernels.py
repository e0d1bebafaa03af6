"""The fleets' kernels against the plain modules, in float32, by Triton's interpreter on the CPU.

They run in a process of their own: the interpreter is chosen when Triton is imported.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kernel_check.py")

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.parametrize("network", ["lenet", "resnet", "run", "sets", "sums"])
def test_equal_to_the_module(network: str) -> None:
    errors = check(network)
    assert len(errors) > 3
    assert max(errors.values()) < 2e-5, {name: error for name, error in errors.items() if error >= 2e-5}


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not there to compile the kernels for the CPU")
def test_cuda_kernels_in_their_places() -> None:
    """In bf16, whose rounding turns some ReLUs over; a kernel given the wrong tensor would be off by as much as 1."""
    errors = check("cuda")
    assert len(errors) > 30
    assert max(errors.values()) < 0.2, {name: error for name, error in errors.items() if error >= 0.2}
    assert max(errors["logits"], errors["evaluation"]) < 0.01


def check(what: str) -> dict[str, float]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SCRIPT), what], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, float] = json.loads(done.stdout)
    return found

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

from .checked import unless_checked

SCRIPT = Path(__file__).with_name("kernel_check.py")

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def errors_of(check: str) -> dict[str, float]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SCRIPT), check], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    errors: dict[str, float] = json.loads(done.stdout)
    assert len(errors) > 3
    return errors


LONG = ["lenet", "lenet_moved", "resnet", "resnet_some", "run", "sets", "views"]


@pytest.mark.parametrize("check", ["sums", *(pytest.param(check, marks=unless_checked) for check in LONG)])
def test_equal_to_the_module(check: str) -> None:
    errors = errors_of(check)
    assert max(errors.values()) < 2e-5, {name: error for name, error in errors.items() if error >= 2e-5}


@unless_checked
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not there to compile the kernels for the CPU")
@pytest.mark.parametrize(("check", "most", "most_of_logits"), [("cuda", 0.2, 0.01), ("resnet_cuda", 0.3, 0.03)])
def test_cuda_kernels_in_their_places(check: str, most: float, most_of_logits: float) -> None:
    """In bf16, whose rounding turns some ReLUs over; a kernel given the wrong tensor would be off by as much as 1."""
    errors = errors_of(check)
    assert len(errors) > 30
    assert max(errors.values()) < most, {name: error for name, error in errors.items() if error >= most}
    scores = {name: error for name, error in errors.items() if name.startswith(("logits", "evaluation"))}
    assert len(scores) > 1
    assert max(scores.values()) < most_of_logits, scores

"""The fleets' kernels against the plain modules, in float32, by Triton's interpreter on the CPU.

They run in a process of their own: the interpreter is chosen when Triton is imported.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kernel_check.py")

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.parametrize("network", ["lenet", "resnet", "run", "sets"])
def test_equal_to_the_module(network: str) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SCRIPT), network], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    errors = json.loads(done.stdout)
    assert len(errors) > 3
    assert max(errors.values()) < 2e-5, {name: error for name, error in errors.items() if error >= 2e-5}

"""Two gloo processes under torchrun end where a single process ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from shortlist.errors import InputError
from shortlist.training.config import RunConfig
from shortlist.training.distributed import Processes
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs
from .two_processes import METHODS, train

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def environment():
    paths = [str(ROOT / "src"), str(ROOT / "tests")]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    out = tmp_path_factory.mktemp("two")
    script = Path(__file__).with_name("two_processes.py")
    done = subprocess.run(
        [*TORCHRUN, str(script), str(out)], capture_output=True, text=True, env=environment(), timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return out


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_two_processes_are_one(ended, method, options):
    state, risks, scores = train(method, options)
    for rank in (0, 1):
        with safe_open(ended / f"{method}-{rank}.safetensors", framework="pt") as file:
            assert json.loads(file.metadata()["risks"]) == pytest.approx(risks, rel=1e-4, abs=1e-5)
            assert json.loads(file.metadata()["scores"]) == pytest.approx(scores, rel=1e-4, abs=1e-5)
            for name, tensor in state.items():
                torch.testing.assert_close(file.get_tensor(name), tensor, rtol=1e-5, atol=1e-5, msg=name)
    if method in ("rc", "proden", "lw"):
        assert "feed.confidence" in state


def test_batches_must_be_cut_equally():
    with pytest.raises(InputError, match="batch size 15 cannot be cut into 2 equal parts"):
        prepare(blobs(), RunConfig(batch_size=15), engine=CPU, group=Processes(0, 2))


def test_the_command_under_torchrun(shortlist, tmp_path):
    """Both processes train, the first alone prints and writes; the result is the single process's."""
    data = blobs(count=200, shape=(1, 8, 8))
    np.savez(tmp_path / "own.npz", x=data.train.x, y=data.train.y, x_test=data.test.x, y_test=data.test.y)
    words = ["train", str(tmp_path / "own.npz"), "--size", "2", "--method", "rc", "--epochs", "2"]
    words += ["--device", "cpu", "--batch-size", "64", "--json", "--out"]
    command = [*TORCHRUN, "-m", "shortlist", *words, str(tmp_path / "two")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    printed = (done.stdout, shortlist(*words, tmp_path / "one").out)
    runs = [json.loads(out) for out in printed]  # one object: one process printed
    assert runs[0]["risk"] == pytest.approx(runs[1]["risk"], rel=1e-4)
    assert sorted(p.name for p in (tmp_path / "two").iterdir()) == sorted(p.name for p in (tmp_path / "one").iterdir())
    with (
        safe_open(tmp_path / "one" / "weights.safetensors", framework="pt") as one,
        safe_open(tmp_path / "two" / "weights.safetensors", framework="pt") as two,
    ):
        for name in one.keys():  # noqa: SIM118 (no mapping)
            torch.testing.assert_close(two.get_tensor(name), one.get_tensor(name), rtol=1e-4, atol=1e-5)

"""What other rooms import from `shortlist.training`, and what must not come along."""

import subprocess
import sys

import pytest

import shortlist.training as facade


def test_every_name_is_there_and_no_other():
    assert set(facade._WHERE) == set(facade.__all__)
    for name in facade.__all__:
        assert getattr(facade, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = facade.nothing


def loaded_by(code, folder):
    """The modules that a process of its own has imported in the end."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('loaded', *sys.modules)"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_simulating_needs_no_torch(tmp_path):
    code = """
import sys
from shortlist.cli import app
sys.argv = ["shortlist", "simulate", "digits", "--size", "3", "--out", "labels.csv"]
app(standalone_mode=False)
"""
    assert "torch" not in loaded_by(code, tmp_path)
    assert (tmp_path / "labels.csv").exists()


def test_training_needs_little_but_torch(tmp_path):
    """The machines with a GPU have neither the annotation app's libraries nor those that download."""
    code = """
from pathlib import Path
from shortlist.training import DataSource, Job, train
train(Job(DataSource("digits"), Path("run"), {"size": 5, "epochs": 1}, device="cpu"))
"""
    assert not {"pooch", "pydantic", "sqlalchemy", "fastapi", "ray", "skactiveml"} & loaded_by(code, tmp_path)
    assert (tmp_path / "run" / "weights.safetensors").exists()

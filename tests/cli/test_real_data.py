"""Small versions of benchmarks/real_data.py, whose results/real_data.json holds the full figures."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from shortlist.data import load

from .conftest import ROOT


def needs(name):
    if not (Path(os.environ.get("SHORTLIST_DATA", "/nonexistent")) / name).is_dir():
        pytest.skip(f"needs the real {name} under SHORTLIST_DATA")


@pytest.mark.slow
def test_a_part_of_mnist(shortlist, tmp_path):
    needs("mnist")
    data = load("mnist")
    np.savez(
        tmp_path / "part.npz",
        x=data.train.x[:5000],
        y=data.train.y[:5000],
        x_test=data.test.x[:1000],
        y_test=data.test.y[:1000],
    )
    words = ["--size", "3", "--method", "likelihood", "--epochs", "1", "--json", "--out", tmp_path / "run"]
    done = shortlist("train", tmp_path / "part.npz", *words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["model"] == "lenet"
    assert json.loads(done.out)["test_accuracy"] > 0.8


def test_banking77_for_two_epochs(shortlist, tmp_path):
    needs("banking77")
    done = shortlist("train", "banking77", "--method", "ol", "--epochs", "2", "--json", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert json.loads(done.out)["test_accuracy"] > 0.8
    done = shortlist("predict", tmp_path / "run", "banking77", "--top-k", "1")
    assert done.out.count("\n") == 3081


def test_the_committed_figures_hold_the_claims():
    claims = json.loads((ROOT / "results" / "real_data.json").read_text())["claims"]
    assert claims["mnist"]["test_accuracy"] > 0.975
    assert claims["mnist"]["seconds"] < 120
    assert claims["banking77"]["test_accuracy"] >= 0.75
    assert claims["banking77 full"]["test_accuracy"] >= 0.87


def test_no_method_is_at_chance():
    runs = json.loads((ROOT / "results" / "methods_digits.json").read_text())["runs"]
    assert len({run["method"] for run in runs}) == 10
    assert len(runs) == 30
    assert min(run["test_accuracy"] for run in runs) > 0.5

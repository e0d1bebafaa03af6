"""Numbers that must not change unnoticed: a stored result is only found again by a key if the same key gives it again.

Whoever changes them raises `RESULTS_VERSION`, so that the study is run again, and writes the new ones beside the old.
"""

from typing import Any

import numpy as np
import pytest
import torch

from shortlist.internal.streams import generator, stream_seed
from shortlist.labels import StochasticLabels
from shortlist.study.plan.run_keys import RESULTS_VERSION
from shortlist.training.answers import draw_labels
from shortlist.training.config import RunConfig
from shortlist.training.loop import fit
from shortlist.training.prepared import prepare
from shortlist.training.task import hold_out

from .conftest import CPU, blobs

BY_VERSION: dict[int, dict[str, Any]] = {
    1: {
        "streams": {
            (0, "shortlists"): 4147001500484967411,
            (0, "weights"): 5584960043810496561,
            (0, "holdout"): 6422586532743594532,
            (7, "shuffle", 0): 3639415553282766918,
            (7, "shuffle", 1): 6749180992172157521,
            (7, "augment", 3): 1364725056012194808,
            (7, "layers", 2): 1201336735922651701,
        },
        "shuffle": [5, 1, 2, 6, 3, 0, 4, 7],
        "lists": [1, 3, 0, 1, 2, 3, 0, 2, 0, 1, 1, 2],
        "answers": [1, -1, 3, -1, 1, -1, 3, 3, 1, -1, 3, 2],
        "held": [10, 11, 13, 14],
        "risks": {"likelihood": [1.0253875, 0.8259324], "rc": [1.4297595, 1.1187279]},
        "parameters": {
            "likelihood": [-0.303203, 0.150118, 0.510959, -0.035659],
            "rc": [-0.305585, 0.150461, 0.498731, -0.036324],
        },
    }
}
GOLDEN = BY_VERSION[RESULTS_VERSION]


def test_streams():
    assert {purpose: stream_seed(*purpose) for purpose in GOLDEN["streams"]} == GOLDEN["streams"]
    assert torch.randperm(8, generator=generator(7, "shuffle", 1)).tolist() == GOLDEN["shuffle"]


def test_shortlists():
    labels = draw_labels(blobs(), 2, 5)
    assert labels.classes[:12].tolist() == GOLDEN["lists"]
    assert labels.answer[:12].tolist() == GOLDEN["answers"]


def test_held_out_items():
    labels = StochasticLabels.draw(np.arange(20) % 4, num_classes=4, size=2, seed=0)
    kept, held = hold_out(labels, 0.25, 3)
    assert held.tolist() == GOLDEN["held"]
    assert sorted([*kept, *held]) == list(range(20))


@pytest.mark.parametrize("method", ["likelihood", "rc"])
def test_a_tiny_run(method):
    config = RunConfig(method=method, size=2, epochs=2, batch_size=16, holdout=0.2, seed=5, model="linear")
    prepared = prepare(blobs(), config, engine=CPU)
    history = fit(prepared)
    assert [row.risk for row in history] == pytest.approx(GOLDEN["risks"][method], rel=1e-5)
    assert prepared.run.flat.value[:4].tolist() == pytest.approx(GOLDEN["parameters"][method], abs=5e-6)

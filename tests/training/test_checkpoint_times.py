"""When the loop saves, scores and stops: at the end, a second apart before that, and anew unless it is to go on."""

import os
import signal
import time
from types import SimpleNamespace

import pytest
import torch

from shortlist.internal.checkpoint import read_checkpoint
from shortlist.training import loop
from shortlist.training.config import RunConfig
from shortlist.training.loop import Interrupted, fit
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs


def prepared(**settings):
    torch.manual_seed(7)
    config = RunConfig(**{"size": 2, "epochs": 3, "batch_size": 16, "holdout": 0.2, **settings})
    return prepare(blobs(), config, engine=CPU)


def test_checkpoints_are_a_second_apart_and_the_last_epoch_is_saved(tmp_path, monkeypatch):
    """On a clock by which an epoch takes 0.4 s."""
    path, now, saved = tmp_path / "c.safetensors", [0.0], []
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=time.perf_counter)
    monkeypatch.setattr(loop, "time", clock)

    def look(scores):
        saved.append(read_checkpoint(path)[1]["epoch"] if path.exists() else None)  # before this epoch is saved
        now[0] += 0.4

    fit(prepared(epochs=8), checkpoint=path, on_epoch=look)
    assert saved == [None, None, None, 3, 3, 3, 6, 6]
    assert read_checkpoint(path)[1]["epoch"] == 8


def test_a_run_begins_anew_unless_it_is_to_go_on(tmp_path):
    path, epochs = tmp_path / "c.safetensors", []
    fit(prepared(), checkpoint=path)
    fit(prepared(), checkpoint=path, on_epoch=lambda scores: epochs.append(scores.epoch))
    assert epochs == [1, 2, 3]
    fit(prepared(), checkpoint=path, resume=True, on_epoch=lambda scores: epochs.append(scores.epoch))
    assert epochs == [1, 2, 3]


def test_ctrl_c_in_the_last_epoch_ends_the_run_as_it_should(tmp_path):
    path = tmp_path / "c.safetensors"

    def press_at(epoch):
        return lambda scores: os.kill(os.getpid(), signal.SIGINT) if scores.epoch == epoch else None

    assert len(fit(prepared(), checkpoint=path, on_epoch=press_at(3))) == 3
    with pytest.raises(Interrupted, match="stopped after epoch 2"):
        fit(prepared(), on_epoch=press_at(2))


def test_every_epoch_is_scored_unless_told_otherwise():
    """Of more epochs than the last ten, which always are; all of them where the best is kept."""
    for history in (fit(prepared(epochs=13)), fit(prepared(epochs=13, keep="best"), score_every=13)):
        assert all(row.test_accuracy is not None for row in history)


def test_the_seconds_of_the_epochs_are_those_that_went_by():
    began = time.perf_counter()
    history = fit(prepared(epochs=13), score_every=2)
    assert 0 < sum(row.seconds for row in history) < time.perf_counter() - began

"""Checkpoints, going on, stopping, and what is refused."""

import os
import signal

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from shortlist.errors import InputError
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint
from shortlist.labels import NONE, StochasticLabels
from shortlist.training import loop
from shortlist.training.config import RunConfig
from shortlist.training.history import mean_of_last
from shortlist.training.loop import DivergedError, Interrupted, fit
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs
from .test_run import Dropping, same

EPOCHS = 5


@pytest.fixture(autouse=True)
def _always_save(monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)


def prepared(model=None, data=None, **settings):
    torch.manual_seed(7)
    data = data or blobs(shape=(1, 8, 8), flips=True)
    config = RunConfig(**{"size": 2, "epochs": EPOCHS, "batch_size": 16, "holdout": 0.2, **settings})
    return prepare(data, config, engine=CPU, model=model() if model else None)


@pytest.mark.parametrize(("optimiser", "ema"), [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.0)])
@pytest.mark.parametrize("method", ["likelihood", "rc", "proden", "lw"])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, method, optimiser, ema):
    settings = {"method": method, "optimiser": optimiser, "ema": ema, "augment": True}
    whole = prepared(**settings)
    history = fit(whole)
    path = tmp_path / "checkpoint.safetensors"
    for stop in (2, 4):
        part = prepared(**settings)

        def interrupt(scores, stop=stop):
            if scores.epoch == stop:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(Interrupted) as stopped:
            fit(part, checkpoint=path, resume=True, on_epoch=interrupt)
        assert stopped.value.epoch == stop
    last = prepared(**settings)
    resumed = fit(last, checkpoint=path, resume=True)
    assert same(whole.run.state_dict(), last.run.state_dict())
    ended = prepared(**settings)
    fit(ended, checkpoint=path, resume=True)  # nothing left to train: the model is there all the same
    assert same(whole.run.model.state_dict(), ended.run.model.state_dict())
    assert [row.epoch for row in resumed] == list(range(1, EPOCHS + 1))
    for a, b in zip(history, resumed, strict=True):
        assert (a.risk, a.test_accuracy, a.validation_log_likelihood) == (
            b.risk,
            b.test_accuracy,
            b.validation_log_likelihood,
        )


@pytest.mark.parametrize("model", ["dropout", "batchnorm"])
def test_layers_with_a_state_go_on_too(tmp_path, model):
    """Dropout draws from the epoch's own stream; BatchNorm's running statistics are in the checkpoint."""
    data = blobs()
    make = (
        Dropping if model == "dropout" else lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    )
    whole = prepared(make, data)
    fit(whole)
    path = tmp_path / "c.safetensors"
    part = prepared(make, data)
    with pytest.raises(Interrupted):
        fit(part, checkpoint=path, on_epoch=lambda scores: os.kill(os.getpid(), signal.SIGINT))
    rest = prepared(make, data)
    fit(rest, checkpoint=path, resume=True)
    assert same(whole.run.state_dict(), rest.run.state_dict())


def test_the_second_ctrl_c_stops_at_once_and_the_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    told = []

    def twice(scores):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(prepared(), on_epoch=twice, on_stop=lambda: told.append("stopping"))
    assert told == ["stopping"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_checkpoint_older_than_a_setting_goes_on_with_its_default(tmp_path):
    path = tmp_path / "c.safetensors"
    fit(prepared(epochs=1), checkpoint=path)
    tensors, content = read_checkpoint(path)
    del content["config"]["ema"]
    write_checkpoint(path, tensors, content)
    assert len(fit(prepared(epochs=1), checkpoint=path, resume=True)) == 1
    with pytest.raises(InputError, match=r"a run with ema = 0.0, this one has 0.9"):
        fit(prepared(epochs=1, ema=0.9), checkpoint=path, resume=True)


def test_a_checkpoint_of_other_settings_or_labels_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    fit(prepared(epochs=1), checkpoint=path)
    with pytest.raises(InputError, match=r"a run with lr = 0.05, this one has 0.2"):
        fit(prepared(epochs=1, lr=0.2), checkpoint=path, resume=True)
    with pytest.raises(InputError, match="other data or other labels"):
        fit(prepared(epochs=1, data=blobs(shape=(1, 8, 8), seed=9)), checkpoint=path, resume=True)


def test_a_checkpoint_that_cannot_be_written_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"no/c\.safetensors: cannot be written: No such file or directory"):
        fit(prepared(epochs=1), checkpoint=tmp_path / "no" / "c.safetensors")


def test_a_checkpoint_may_be_named_by_text(tmp_path):
    path = str(tmp_path / "c.safetensors")
    assert fit(prepared(epochs=1), checkpoint=path) == fit(prepared(epochs=1), checkpoint=path, resume=True)


@pytest.mark.parametrize("settings", [{"classes": (0, 2, 3)}, {"model_options": {"hidden": (8, 4)}}])
def test_settings_that_json_keeps_as_lists_are_the_same_settings(tmp_path, settings):
    path = tmp_path / "c.safetensors"
    history = fit(prepared(epochs=1, **settings), checkpoint=path)
    assert fit(prepared(epochs=1, **settings), checkpoint=path, resume=True) == history


@pytest.mark.parametrize("content", [b"", b"no checkpoint", None])
def test_a_damaged_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "c.safetensors"
    fit(prepared(epochs=1), checkpoint=path)
    path.write_bytes(path.read_bytes()[:-20] if content is None else content)
    with pytest.raises(InputError, match=r"c\.safetensors: cannot be read as a checkpoint"):
        fit(prepared(epochs=1), checkpoint=path, resume=True)


@pytest.mark.parametrize("lacking", ["config", "epoch", "history"])
def test_what_is_no_checkpoint_of_a_run_is_refused(tmp_path, lacking):
    path = tmp_path / "c.safetensors"
    fit(prepared(epochs=1), checkpoint=path)
    tensors, content = read_checkpoint(path)
    del content[lacking]
    write_checkpoint(path, tensors, content)
    with pytest.raises(InputError, match=r"c\.safetensors: damaged, or not the checkpoint of a run"):
        fit(prepared(epochs=1), checkpoint=path, resume=True)
    save_file(tensors, path, metadata={"shortlist": "[]"})
    with pytest.raises(InputError, match="not a checkpoint of this version"):
        fit(prepared(epochs=1), checkpoint=path, resume=True)


def test_checkpoints_keep_dtypes_and_views(tmp_path):
    path = tmp_path / "c.safetensors"
    flat = torch.arange(12.0)
    tensors = {"view": flat[2:8].view(2, 3).t(), "bool": torch.tensor([True]), "count": torch.tensor(3)}
    write_checkpoint(path, tensors, {"epoch": 3})
    read, content = read_checkpoint(path)
    assert content == {"epoch": 3}
    for name, tensor in tensors.items():
        assert torch.equal(read[name], tensor)
        assert read[name].dtype == tensor.dtype


def test_a_risk_that_is_not_finite_is_one_line(tmp_path):
    path = tmp_path / "c.safetensors"
    with pytest.raises(InputError, match=r"the risk is (inf|nan) after epoch 1: try a smaller lr"):
        fit(prepared(method="sl", lr=1e30), checkpoint=path)
    assert not path.exists()


def test_a_last_step_into_nowhere_is_one_line():
    """The risk is of before it: what was saved said nothing, or broke the scores after the training."""
    run = prepared(batch_size=1000, epochs=1, optimiser="sgd", lr=1e38, holdout=0.0)
    with pytest.raises(DivergedError, match="the outputs are no numbers after epoch 1: try a smaller lr"):
        fit(run)


def test_scores_by_epoch():
    history = fit(prepared(epochs=12), score_every=5)
    scored = [row.epoch for row in history if row.test_accuracy is not None]
    assert scored == list(range(3, 13))  # the last ten are always scored
    assert mean_of_last(history) == pytest.approx(sum(row.test_accuracy for row in history[-10:]) / 10)
    with pytest.raises(InputError, match="score_every: expected at least 1, got 0"):
        fit(prepared(), score_every=0)


def test_no_accuracy_where_nobody_answered():
    labels = StochasticLabels.from_lists([[0, 1]] * 96, [NONE] * 96, 4)
    config = RunConfig(epochs=1, batch_size=16, holdout=0.2)
    [scores] = fit(prepare(blobs(), config, labels=labels, engine=CPU))
    assert scores.validation_accuracy is None
    assert scores.validation_log_likelihood < 0

"""`keep="best"`: the weights of the epoch that did best on the held-out items, in the loop and in the fleet."""

import copy
import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from shortlist.data import load
from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.training import loop
from shortlist.training.config import RunConfig
from shortlist.training.evaluation import accuracy, predict_logits
from shortlist.training.fleet.packs import packs, train_pack
from shortlist.training.history import EpochScores, saved_epoch
from shortlist.training.loop import Interrupted, fit
from shortlist.training.prepared import prepare

from .conftest import CPU, blobs
from .test_run import same

OVERFITS = RunConfig(
    method="sl", size=2, epochs=8, batch_size=16, lr=0.3, schedule="constant", holdout=0.3, keep="best", seed=2
)


@pytest.mark.parametrize("ema", [0.0, 0.8])
def test_the_weights_are_those_of_the_best_epoch(ema):
    data, config = blobs(count=200), replace(OVERFITS, ema=ema)
    states = []
    plain = prepare(data, replace(config, keep="last"), engine=CPU)
    last = fit(plain, on_epoch=lambda _: states.append(copy.deepcopy(plain.run.model.state_dict())))
    kept = prepare(data, config, engine=CPU)
    history = fit(kept, score_every=100)  # every epoch is scored all the same
    best = int(np.argmax([row.validation_estimate for row in last]))
    assert 0 < best < config.epochs - 1  # or this would show nothing
    assert same(kept.run.model.state_dict(), states[best])
    assert saved_epoch(history, "best").epoch == best + 1
    again = accuracy(predict_logits(kept.run.model, kept.test), kept.test_y).item()
    assert again == history[best].test_accuracy


def test_no_epoch_is_chosen_by_no_items():
    """It was the first one, whatever came after."""
    with pytest.raises(InputError, match=r"keep best: a holdout of 0.1 holds out none of 4 items to choose by"):
        prepare(blobs(count=4), replace(OVERFITS, holdout=0.1), engine=CPU)


def test_a_stopped_run_keeps_its_best_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    data, path = blobs(count=200), tmp_path / "checkpoint.safetensors"
    whole = prepare(data, OVERFITS, engine=CPU)
    best = saved_epoch(fit(whole), "best").epoch
    assert best <= 7

    def interrupt(scores):
        if scores.epoch == 7:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        fit(prepare(data, OVERFITS, engine=CPU), checkpoint=path, on_epoch=interrupt)
    resumed = prepare(data, OVERFITS, engine=CPU)
    assert saved_epoch(fit(resumed, checkpoint=path, resume=True), "best").epoch == best
    assert same(resumed.run.model.state_dict(), whole.run.model.state_dict())


def test_a_fleet_keeps_each_runs_own_best_epoch():
    """Beside runs that keep the last, and as others end before them."""
    digits = load("digits")
    small = replace(digits, train=digits.train.take(range(300)), test=digits.test.take(range(60)))
    base = replace(OVERFITS, size=3, model="mlp", epochs=5, lr=0.1)
    configs = [
        replace(base, seed=3, epochs=3, ema=0.8),  # the first ends first: the others move up
        base,
        replace(base, seed=4, keep="last"),
        replace(base, seed=5, classes=(0, 1, 2, 3), size=2),
        replace(base, seed=5, classes=(3, 4, 5, 6), size=2, holdout=0.2),
        replace(base, seed=6, method="likelihood", lr=0.02),
    ]
    engine, found, saved = CPU.resolve(1), {}, set()
    for pack in packs(configs):
        found |= train_pack(small, configs, pack, engine, 2, None)
    for i, config in enumerate(configs):
        alone, states = prepare(small, config, engine=CPU), []
        keep = partial(lambda run, kept, _: kept.append(copy.deepcopy(run.model.state_dict())), alone.run, states)
        history, mine = fit(alone, on_epoch=keep, score_every=2), found[i].history
        # a processor may round the products of a whole fleet otherwise than those of one run
        assert [row.epoch for row in mine] == [row.epoch for row in history]
        for score, most in (("risk", 1e-4), ("validation_log_likelihood", 1e-4), ("validation_estimate", 0.1)):
            ours, theirs = ([getattr(row, score) for row in rows] for rows in (mine, history))
            assert ours == pytest.approx(theirs, abs=most)
        saved.add(best := saved_epoch(mine, config.keep).epoch)
        assert found[i].saved.epoch == best
        assert [e for e, state in enumerate(states, 1) if _near(state, found[i].state)] == [best], i
    assert len(saved) > 2


def _near(state, other):
    return all(torch.allclose(tensor, other[name], rtol=0, atol=1e-4) for name, tensor in state.items())


def test_lists_that_were_given_are_compared_by_their_likelihood():
    """They may have been chosen by a model: then the accuracy of answered items is no fair score."""
    data = blobs(count=200)
    labels = StochasticLabels.draw(data.train.y, num_classes=4, size=2, seed=0)
    kept = prepare(data, replace(OVERFITS, size=None), labels=labels, engine=CPU)
    history = fit(kept)
    assert all(row.validation_estimate is None for row in history)
    assert saved_epoch(history, "best").epoch == 1 + int(np.argmax([row.validation_log_likelihood for row in history]))


def test_of_equal_epochs_the_first():
    rows = [EpochScores(e, 0.0, 0.0, validation_estimate=v) for e, v in enumerate([0.5, 0.7, 0.7, None, float("nan")])]
    assert saved_epoch(rows, "best").epoch == 1
    assert saved_epoch(rows, "last").epoch == 4


def test_without_held_out_items_there_is_no_best():
    with pytest.raises(InputError, match="keep best: expected a holdout above 0"):
        RunConfig(keep="best")
    with pytest.raises(InputError, match="unknown keep 'beste': did you mean 'best'"):
        RunConfig(keep="beste", holdout=0.1)

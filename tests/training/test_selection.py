"""Model selection sees held-out answers only, the same for every point, and says how ties are broken."""

import signal
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from shortlist import NONE, StochasticLabels
from shortlist.data import Dataset, Split, load
from shortlist.errors import InputError
from shortlist.methods import METHODS
from shortlist.methods.likelihood import Likelihood
from shortlist.training import loop, selection
from shortlist.training.answers import draw_labels
from shortlist.training.config import RunConfig
from shortlist.training.evaluation import predict_logits
from shortlist.training.prepared import prepare
from shortlist.training.selection import TuneRow, grid_of, tune
from shortlist.training.task import hold_out

CONFIG = RunConfig(size=5, epochs=4, batch_size=64, lr=0.05, seed=3)
GRID = {"lr": [1e-5, 0.05], "weight_decay": [0.0, 1e-4]}


@pytest.fixture(scope="module")
def digits() -> Dataset:
    whole = load("digits")
    return replace(whole, train=whole.train.take(np.arange(600)))


@pytest.fixture(scope="module")
def tuned(digits):
    return tune(digits, CONFIG, GRID)


def test_it_picks_the_learning_rate_that_learns(tuned):
    assert [row.settings for row in tuned.rows] == [
        {"lr": lr, "weight_decay": decay} for lr in GRID["lr"] for decay in GRID["weight_decay"]
    ]
    assert tuned.best.lr == tuned.best_row.settings["lr"] == 0.05
    assert min(row.accuracy for row in tuned.rows[2:]) > max(row.accuracy for row in tuned.rows[:2]) + 0.3
    assert tuned.best == replace(CONFIG, **tuned.best_row.settings)  # its holdout is the caller's, 0
    assert tuned.held_items == pytest.approx(60, abs=1)


def test_the_scores_are_those_of_the_held_out_items_by_hand(digits, tuned):
    """Train on what is not held out, count right answers and None probabilities in plain loops."""
    labels = draw_labels(digits, CONFIG.size, CONFIG.seed)
    _, held = hold_out(labels, 0.1, CONFIG.seed)
    prepared = prepare(digits, replace(tuned.best, holdout=0.1), labels=labels)
    assert not set(prepared.run.feed.rows.tolist()) & set(held.tolist())
    loop.fit(prepared)
    p = torch.softmax(predict_logits(prepared.run.model, prepared.run.inputs, torch.from_numpy(held)), -1).double()
    right, logs = [], []
    for row, item in enumerate(held.tolist()):
        answer = labels.answer[item]
        if answer == NONE:
            logs.append(sum(p[row, k].item() for k in range(10) if k not in labels.shortlist(item)))
        else:
            right.append(p[row].argmax().item() == answer)
            logs.append(p[row, answer].item())
    assert tuned.best_row.accuracy == pytest.approx(np.mean(right), abs=1e-12)
    assert tuned.best_row.log_likelihood == pytest.approx(np.log(logs).mean(), abs=1e-6)
    assert tuned.held_answered == len(right)


def test_a_run_on_some_classes_is_tuned_on_these_alone(digits):
    some = replace(CONFIG, classes=(3, 5, 8), size=2, epochs=2)
    chosen = tune(digits, some, {"lr": [0.01, 0.1]})
    part = tune(digits.only_classes((3, 5, 8)), replace(some, classes=None), {"lr": [0.01, 0.1]})
    assert [row.accuracy for row in chosen.rows] == [row.accuracy for row in part.rows]
    assert chosen.best == replace(part.best, classes=(3, 5, 8))
    with pytest.raises(InputError, match="draws its own labels, and labels were given"):
        tune(digits, some, GRID, labels=StochasticLabels.draw(digits.train.y, num_classes=10, size=2, seed=0))


def test_it_is_deterministic(digits, tuned):
    again = tune(digits, CONFIG, GRID)
    scores = [[(row.accuracy, row.log_likelihood) for row in result.rows] for result in (tuned, again)]
    assert scores[0] == scores[1]
    assert again.best == tuned.best


def test_test_data_is_never_looked_at(digits, tuned):
    assert digits.test is not None
    for test in (None, Split(digits.test.x * 0, np.zeros(len(digits.test), int))):
        other = tune(replace(digits, test=test), CONFIG, GRID)
        assert [row.accuracy for row in other.rows] == [row.accuracy for row in tuned.rows]


def test_the_true_classes_behind_none_are_never_looked_at(digits, tuned):
    labels = draw_labels(digits, CONFIG.size, CONFIG.seed)
    y = np.where(labels.answered, labels.answer, 0)  # what a cheat could read is wrong
    blind = replace(digits, train=Split(digits.train.x, y))
    other = tune(blind, CONFIG, GRID, labels=labels)
    assert [row.log_likelihood for row in other.rows] == [row.log_likelihood for row in tuned.rows]


def test_every_point_has_the_same_held_out_items(digits, monkeypatch):
    seen = []
    original = selection.prepare

    def spy(*args, **kwargs):
        prepared = original(*args, **kwargs)
        assert prepared.test is None  # not even scored on the way
        seen.append((prepared.held_rows.tolist(), prepared.labels.answer.tolist()))
        return prepared

    monkeypatch.setattr(selection, "prepare", spy)
    tune(digits, replace(CONFIG, epochs=1, holdout=0.3), {"lr": [0.01, 0.02], "batch_size": [32, 64]})
    assert len(seen) == 4
    assert all(point == seen[0] for point in seen)
    assert len(seen[0][0]) == pytest.approx(180, abs=1)


def test_the_likelihood_uses_none_answers(digits):
    """All held-out answers None: no accuracy to be had, but a likelihood."""
    labels = StochasticLabels.draw(digits.train.y, num_classes=10, size=1, seed=0)
    rows = np.flatnonzero(~labels.answered)
    with pytest.raises(InputError, match="score the log likelihood"):
        tune(digits, CONFIG, {"lr": [0.05]}, labels=labels.subset(rows), rows=rows)
    result = tune(
        digits,
        replace(CONFIG, epochs=1),
        {"lr": [10.0, 0.05]},
        labels=labels.subset(rows),
        rows=rows,
        score="log_likelihood",
    )
    assert np.isnan(result.best_row.accuracy)
    assert result.best_row.log_likelihood == max(row.log_likelihood for row in result.rows if not row.problem)


def test_weights_correct_a_sample_that_is_not_fair(digits):
    """Answers to some classes count more: the score is the weighted share, and doubling all changes nothing."""
    labels = draw_labels(digits, CONFIG.size, CONFIG.seed)
    weight = np.where(labels.answer == 1, 50.0, 1.0)
    plain = tune(digits, CONFIG, {"lr": [0.003]}, labels=labels).best_row
    first = tune(digits, CONFIG, {"lr": [0.003]}, labels=labels, weight=weight).best_row
    second = tune(digits, CONFIG, {"lr": [0.003]}, labels=labels, weight=2 * weight).best_row
    assert first.accuracy == pytest.approx(second.accuracy)
    assert first.accuracy != plain.accuracy
    with pytest.raises(InputError, match="weight: expected 600 numbers"):
        tune(digits, CONFIG, {"lr": [0.003]}, labels=labels, weight=weight[:10])


def test_ties_go_to_the_other_score_and_then_to_the_first(digits, monkeypatch):
    made = iter([(0.8, -1.0), (0.9, -3.0), (0.9, -2.0), (0.9, -2.0)])

    def train(prepared, settings, weight):
        return TuneRow(settings, *next(made), seconds=0.0)

    monkeypatch.setattr(selection, "_train", train)
    assert tune(digits, CONFIG, {"lr": [0.1, 0.2, 0.3, 0.4]}).best.lr == 0.3


def test_a_point_that_diverges_loses_and_is_reported(digits):
    seen = []
    result = tune(digits, replace(CONFIG, epochs=1), {"lr": [1e30, 0.01]}, on_point=seen.append)
    assert result.best.lr == 0.01
    assert "smaller lr" in result.rows[0].problem
    assert seen == list(result.rows)
    with pytest.raises(InputError, match="every point of the grid failed"):
        tune(digits, replace(CONFIG, epochs=1), {"lr": [1e30]})


def test_names_as_on_the_command_line(digits):
    assert list(grid_of("lr,wd")) == ["lr", "weight_decay"]
    assert tune(digits, replace(CONFIG, epochs=1), {"wd": [0.5]}).best.weight_decay == 0.5
    with pytest.raises(InputError, match="did you mean 'lr'"):
        grid_of("lrr")


@pytest.mark.parametrize(
    ("grid", "kwargs", "line"),
    [
        ({}, {}, "the grid is empty"),
        ({"lr": []}, {}, "no values for lr"),
        ({"lr": 0.1}, {}, "the grid needs a list of values for lr, got 0.1"),
        ({"method": "sl"}, {}, "the grid needs a list of values for method, got 'sl'"),
        ({"wd": [0.0], "weight_decay": [0.1]}, {}, "the grid names weight_decay twice"),
        ({"learning": [1]}, {}, "unknown setting 'learning'"),
        ({"seed": [1, 2]}, {}, "seed cannot be tuned"),
        ({"lr": [0.1, -1]}, {}, "lr: expected a number of at least 0"),
        ({"lr": [0.1]}, {"score": "acuracy"}, "did you mean 'accuracy'"),
        ({"method": ["likelyhood"]}, {}, "did you mean 'likelihood'"),
    ],
)
def test_a_wrong_grid_is_one_line(digits, grid, kwargs, line):
    with pytest.raises(InputError, match=line) as caught:
        tune(digits, CONFIG, grid, **kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("optimisers", "grid", "named"),
    [
        (["lbfgs"], {"lr": [0.1, 0.2]}, "lr cannot be tuned: optimiser lbfgs has no use for it"),
        (["lbfgs"], {"weight_decay": [0.0], "batch_size": [8, 16]}, "batch_size cannot be tuned: optimiser lbfgs"),
        (["adam", "lbfgs"], {"momentum": [0.0, 0.9]}, "momentum cannot be tuned: optimiser adam and lbfgs"),
    ],
)
def test_a_setting_without_effect_is_not_tuned(digits, optimisers, grid, named):
    """Every point would be the same run, and the choice among them none."""
    linear = replace(CONFIG, model="linear", epochs=1)
    with pytest.raises(InputError, match=named):
        tune(digits, linear, {**grid, "optimiser": optimisers})
    tune(digits, linear, {"lr": [0.1], "optimiser": ["lbfgs", "sgd"]})  # of use to one of them


@dataclass(frozen=True)
class Pressed(Likelihood):
    """Presses Ctrl-C in the second step of its training."""

    name = "pressed"

    def objective(self, logits, batch):
        if batch.progress > 0:
            signal.raise_signal(signal.SIGINT)
        return super().objective(logits, batch)


def test_ctrl_c_in_the_last_epoch_of_a_point_ends_the_tuning(digits, monkeypatch):
    monkeypatch.setitem(METHODS, "pressed", Pressed)
    points: list[TuneRow] = []
    few = replace(CONFIG, method="pressed", epochs=1, batch_size=270)  # an epoch of two steps
    with pytest.raises(loop.Interrupted):
        tune(digits, few, {"lr": [0.1, 0.2]}, on_point=points.append)
    assert not points


def test_too_few_items_to_hold_out(digits):
    few = replace(digits, train=digits.train.take(np.arange(3)))
    with pytest.raises(InputError, match="holdout"):
        tune(few, CONFIG, {"lr": [0.1]})

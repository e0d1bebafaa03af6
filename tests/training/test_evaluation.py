"""Scores over all items at once."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from shortlist.data import UNLABELLED, Split
from shortlist.labels import StochasticLabels
from shortlist.training import evaluation
from shortlist.training.config import RunConfig
from shortlist.training.inputs import Inputs
from shortlist.training.loop import calibration_on_test, fit
from shortlist.training.many import train_fleet
from shortlist.training.prepared import prepare
from shortlist.training.saved.measures import measure
from shortlist.training.task import with_known_test

from .conftest import CPU, blobs


def test_accuracy_is_no_mean_of_batch_means(monkeypatch):
    monkeypatch.setattr(evaluation, "EVALUATION_BATCH", 4)
    # batches of 4, 4 and 1: all right, all wrong, right; a mean of batch means would be 2/3
    x = torch.eye(2)[torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 0])].numpy()
    logits = evaluation.predict_logits(nn.Identity(), Inputs(x, "cpu"))
    assert evaluation.accuracy(logits, torch.zeros(9, dtype=torch.int64)).item() == pytest.approx(5 / 9)


def test_scoring_leaves_the_mode_of_the_model_alone():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)).train()
    inputs = Inputs(np.ones((5, 3), np.float32), "cpu")
    first, second = (evaluation.predict_logits(model, inputs) for _ in range(2))
    assert torch.equal(first, second)  # dropout is off while scoring
    assert model.training


def test_held_out_scores_by_naive_loop():
    rng = np.random.default_rng(0)
    labels = StochasticLabels.draw(rng.integers(0, 5, 60), num_classes=5, size=2, seed=1)
    logits = torch.from_numpy(rng.normal(size=(60, 5)))
    scores = evaluation.score_answers(logits, labels, lambda z: torch.softmax(z, -1))
    right, logs = [], []
    for i in range(60):
        p = np.exp(logits[i].numpy()) / np.exp(logits[i].numpy()).sum()
        shown = set(labels.shortlist(i).tolist())
        if labels.answer[i] >= 0:
            right.append(int(p.argmax()) == labels.answer[i])
            logs.append(np.log(p[labels.answer[i]]))
        else:
            logs.append(np.log(sum(p[k] for k in range(5) if k not in shown)))
    assert scores.accuracy == pytest.approx(np.mean(right))
    assert scores.log_likelihood == pytest.approx(np.mean(logs))


def test_held_out_accuracy_is_the_test_accuracy_on_average():
    """Answered items are a fair sample: over seeds, held-out accuracy and test accuracy agree."""
    data = blobs(count=600, shape=(2,), seed=3, test=600)
    gaps = []
    for seed in range(5):
        config = RunConfig(size=2, model="linear", epochs=3, holdout=0.4, seed=seed, lr=0.1, batch_size=64)
        prepared = prepare(data, config, engine=CPU)
        last = fit(prepared)[-1]
        gaps.append(last.validation_accuracy - last.test_accuracy)
    assert abs(np.mean(gaps)) < 0.06


def test_measures_by_naive_loop():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 50)
    y = rng.integers(-1, 3, 50)
    y[y == 2] = 0  # no item of the last class
    got = measure(p, y, ("a", "b", "c"))
    known = [i for i in range(50) if y[i] >= 0]
    assert got.items == len(known)
    assert got.accuracy == pytest.approx(np.mean([p[i].argmax() == y[i] for i in known]))
    assert got.by_class["c"] is None
    assert got.by_class["a"] == pytest.approx(np.mean([p[i].argmax() == 0 for i in known if y[i] == 0]))
    assert got.log_loss == pytest.approx(-np.mean([np.log(p[i, y[i]]) for i in known]))
    assert got.items_by_class.tolist() == [sum(y[i] == k for i in known) for k in range(3)]
    assert sum(map(len, got.taken_for().values())) == len(got.confusion) <= 6  # the last class has no item
    confusion = {("abc"[i], "abc"[j]): items for i, j, items in got.confusion.tolist()}
    assert confusion == {(i, j): items for i, of in got.taken_for().items() for j, items in of.items()}
    for a in range(3):
        for b in range(3):
            assert confusion.get(("abc"[a], "abc"[b]), 0) == sum(y[i] == a and p[i].argmax() == b for i in known)
    error = 0.0
    for low in range(15):
        inside = [i for i in known if low / 15 <= p[i].max() < (low + 1) / 15]
        error += abs(sum(float(p[i].argmax() == y[i]) - p[i].max() for i in inside)) / len(known)
    assert got.calibration_error == pytest.approx(error)


def test_test_items_of_unknown_class_are_left_out_of_the_scores():
    data, config = blobs(test=40), RunConfig(size=2, epochs=1)
    y = data.test.y.copy()
    y[::2] = UNLABELLED
    in_part = replace(data, test=Split(data.test.x, y))
    expected = prepare(replace(data, test=data.test.take(y != UNLABELLED)), config, engine=CPU)
    accuracy = fit(expected)[-1].test_accuracy
    assert fit(prepare(in_part, config, engine=CPU))[-1].test_accuracy == accuracy > 0
    (result,) = train_fleet(in_part, [config], engine=CPU)
    assert (result.history[-1].test_accuracy, result.calibration_error) == (accuracy, calibration_on_test(expected))


@pytest.mark.parametrize("y", [None, np.full(40, UNLABELLED), np.zeros(0, np.int64)])
def test_without_a_known_test_class_there_is_no_test_accuracy(y):
    data = blobs(test=40)
    test = Split(data.test.x[: 40 if y is None else len(y)], y)
    config = RunConfig(size=2, epochs=1)
    assert fit(prepare(replace(data, test=test), config, engine=CPU))[-1].test_accuracy is None


def test_known_test_items_leave_the_dataset_itself():
    """A fleet keeps the items of each dataset object once: a copy would take their room again."""
    data = blobs()
    assert with_known_test(data) is data

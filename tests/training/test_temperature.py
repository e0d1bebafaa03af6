"""The temperature is where held-out answers surprise least, and only probabilities follow it."""

import json

import numpy as np
import pytest
import torch

from shortlist import ShortlistClassifier, StochasticLabels, methods
from shortlist.training import prepared as prepared_module
from shortlist.training.config import RunConfig
from shortlist.training.evaluation import STEADY, calibration_error, fit_temperature, is_softmax
from shortlist.training.job.job import Job, train
from shortlist.training.loop import fit
from shortlist.training.prepared import prepare
from shortlist.training.saved.folder import CONFIG, load_folder
from shortlist.training.saved.source import DataSource

from .conftest import CPU, blobs


def answers(sharpness, count=3000, K=6, size=2, seed=0):
    """Logits whose truth is softmax(sharpness x logits), and what uniform lists say of it."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (count, K))
    p = np.exp(sharpness * logits)
    y = (p.cumsum(1) > rng.random((count, 1)) * p.sum(1, keepdims=True)).argmax(1)
    labels = StochasticLabels.draw(y, num_classes=K, size=size, seed=seed)
    return torch.from_numpy(logits), labels


def surprise(logits, labels, temperature):
    """A loop over the items, and what holds the temperature at 1."""
    total = STEADY / 2 * np.log(temperature) ** 2
    for row, candidates in zip(logits.numpy(), labels.candidates, strict=True):
        p = np.exp(row / temperature)
        total -= np.log(p[candidates].sum() / p.sum())
    return total


@pytest.mark.parametrize("sharpness", [0.4, 1.0, 2.5])
def test_it_is_found_again_from_answers_most_of_which_are_none(sharpness):
    logits, labels = answers(sharpness)
    assert 0.5 < labels.none_share < 0.8
    assert fit_temperature(logits, torch.from_numpy(labels.candidates)) == pytest.approx(1 / sharpness, rel=0.1)


def test_no_other_temperature_surprises_less():
    logits, labels = answers(2.0, count=60)
    found = fit_temperature(logits, torch.from_numpy(labels.candidates))
    tried = np.exp(np.linspace(-2, 2, 81))
    assert surprise(logits, labels, found) <= min(surprise(logits, labels, t) for t in tried) + 1e-4


def test_a_few_answers_move_it_a_little_and_impossible_ones_not_at_all():
    logits, labels = answers(2.5, count=2000)
    candidates = torch.from_numpy(labels.candidates)
    few, all_of_them = fit_temperature(logits[:5], candidates[:5]), fit_temperature(logits, candidates)
    assert all_of_them < few < 1.2
    none_left = torch.zeros(7, 6, dtype=torch.bool)
    assert fit_temperature(torch.cat([logits, logits[:7]]), torch.cat([candidates, none_left])) == all_of_them
    assert fit_temperature(logits[:7], none_left) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [("likelihood", {}, True), ("teacher", {}, True), ("sl", {}, False), ("ol", {"loss": "ovr_square"}, False)],
)
def test_only_a_softmax_has_a_temperature(name, options, expected):
    assert is_softmax(methods.get(name, **options), 5) is expected


def overfitted(**settings):
    data = blobs(count=400, K=8, test=400)
    noisy = np.random.default_rng(1).integers(0, 8, 400)
    data.train.y[:] = np.where(np.random.default_rng(2).random(400) < 0.3, noisy, data.train.y)
    usual = {"size": 3, "epochs": 30, "batch_size": 32, "model": "mlp", "holdout": 0.25}
    prepared = prepare(data, RunConfig(**{**usual, **settings}), engine=CPU)
    fit(prepared, score_every=100)
    return prepared


def test_a_run_that_learned_wrong_labels_by_heart_is_less_sure():
    assert overfitted(size=None, epochs=60).calibrate() > 1.2


@pytest.mark.parametrize("settings", [{"holdout": 0.0}, {"method": "sl"}])
def test_without_held_out_answers_or_a_softmax_it_is_1(settings):
    assert overfitted(epochs=1, **settings).calibrate() == 1


def test_a_part_of_many_items_does_as_well(monkeypatch):
    prepared = overfitted()
    whole = prepared.calibrate()
    monkeypatch.setattr(prepared_module, "PLENTY", 400)  # 50 of 100 items
    assert prepared.calibrate() != whole
    assert prepared.calibrate() == pytest.approx(whole, rel=0.5)


def test_a_trained_folder_keeps_it(tmp_path):
    job = Job(DataSource("digits"), tmp_path / "run", {"size": 3, "epochs": 30, "holdout": 0.3, "seed": 1})
    finished = train(job)
    temperature = finished.trained.temperature
    assert temperature != 1
    loaded = load_folder(tmp_path / "run", "cpu")
    assert loaded.temperature == temperature
    assert f"temperature | {temperature:.3g}" in (tmp_path / "run" / "card.md").read_text()
    x = job.source.read().test.x
    logits = loaded.logits(x) / temperature
    np.testing.assert_allclose(loaded.predict(x), torch.softmax(logits.double(), 1).numpy(), atol=1e-6)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert scores["calibration_error"] == pytest.approx(
        calibration_error(loaded.predict(x), job.source.read().test.y), abs=1e-6
    )


def test_a_folder_from_before_has_none(tmp_path):
    train(Job(DataSource("digits"), tmp_path / "run", {"size": 3, "epochs": 1}))
    path = tmp_path / "run" / CONFIG
    content = json.loads(path.read_text())
    assert content.pop("temperature") == 1
    path.write_text(json.dumps(content))
    assert load_folder(tmp_path / "run", "cpu").temperature == 1


def test_the_classifier_has_it_where_it_holds_items_out(tmp_path):
    data = blobs(count=600, K=8)
    labels = StochasticLabels.draw(data.train.y, num_classes=8, size=3, seed=0)
    plain = ShortlistClassifier(random_state=0, epochs=20).fit(data.train.x, shown=labels)
    clf = ShortlistClassifier(random_state=0, epochs=20, holdout=0.3).fit(data.train.x, shown=labels)
    assert plain.temperature_ == 1
    assert clf.temperature_ != 1
    p = np.exp(clf.decision_function(data.test.x) / clf.temperature_)
    np.testing.assert_allclose(clf.predict_proba(data.test.x), p / p.sum(1, keepdims=True), rtol=1e-6)
    clf.save(tmp_path)
    again = ShortlistClassifier.load(tmp_path)
    assert again.temperature_ == clf.temperature_
    np.testing.assert_array_equal(again.predict_proba(data.test.x), clf.predict_proba(data.test.x))
    assert again.partial_fit(data.train.x, shown=labels).temperature_ == clf.temperature_

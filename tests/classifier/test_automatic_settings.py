"""What is chosen automatically (batch size, optimiser), and what continues from call to call."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from shortlist import ShortlistClassifier, StochasticLabels, methods


def data(count, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    x = (rng.normal(0, 1, (3, 6))[y] + rng.normal(0, 0.7, (count, 6))).astype(np.float32)
    return x, StochasticLabels.draw(y, num_classes=3, size=2, seed=seed)


def decisions(x, labels, **settings):
    classifier = ShortlistClassifier(**{"model": "linear", "epochs": 1, "random_state": 0, **settings})
    return classifier.fit(x, shown=labels).decision_function(x[:20])


@pytest.mark.parametrize(("count", "batch_size"), [(640, 32), (1600, 50), (9000, 256)])
def test_a_batch_is_a_32nd_of_the_items_but_32_to_256(count, batch_size):
    x, labels = data(count)
    automatic = decisions(x, labels)
    assert np.array_equal(automatic, decisions(x, labels, batch_size=batch_size))
    assert not np.array_equal(automatic, decisions(x, labels, batch_size=batch_size - 1))


@pytest.mark.parametrize(
    ("sparse", "settings", "optimiser"),
    [
        (True, {}, "lbfgs"),
        (True, {"method": "sl"}, "adam"),
        (True, {"dtype": "float64"}, "adam"),
        (True, {"model": "mlp"}, "adam"),
        (False, {}, "adam"),
    ],
)
def test_linear_models_of_sparse_features_are_solved_by_the_likelihood_and_others_stepped(sparse, settings, optimiser):
    x, labels = data(200)
    x = csr_array(x) if sparse else x
    assert np.array_equal(decisions(x, labels, **settings), decisions(x, labels, optimiser=optimiser, **settings))


def test_a_seed_is_a_seed_in_any_type_of_whole_number():
    x, labels = data(100)
    assert np.array_equal(decisions(x, labels), decisions(x, labels, random_state=np.int64(0)))
    assert not np.array_equal(decisions(x, labels), decisions(x, labels, random_state=1))


def test_calls_of_partial_fit_are_counted_and_leave_the_probabilities_as_the_network_has_them():
    x, labels = data(120)
    classifier = ShortlistClassifier(random_state=0, classes=[0, 1, 2])
    for start in (0, 40, 80):
        classifier.partial_fit(x[start : start + 40], shown=labels.subset(range(start, start + 40)))
    assert [row["epoch"] for row in classifier.history_] == [1, 2, 3]
    z = classifier.decision_function(x)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(x), p, rtol=1e-9)


def test_probabilities_go_by_the_options_of_the_method():
    x, labels = data(120)
    classifier = ShortlistClassifier("sl", method_options={"loss": "cross_entropy"}, random_state=0, epochs=2)
    classifier.fit(x, shown=labels)
    z = torch.from_numpy(classifier.decision_function(x))
    own, usual = (
        methods.get("sl", **options).class_probabilities(z, classifier.smoothing_).numpy()
        for options in ({"loss": "cross_entropy"}, {})
    )
    np.testing.assert_allclose(classifier.predict_proba(x), own)
    assert not np.allclose(own, usual)

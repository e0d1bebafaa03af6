"""ShortlistClassifier on digits: it learns, takes every kind of input, and says in one line what it cannot take."""

import functools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

import shortlist
from shortlist import NONE, ShortlistClassifier, StochasticLabels, methods
from shortlist.errors import InputError

X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)
TRAIN, TEST = slice(0, 1300), slice(1300, None)
LABELS = StochasticLabels.draw(Y[TRAIN], num_classes=10, size=5, seed=0)


QUICK = functools.partial(ShortlistClassifier, random_state=0, epochs=10)


def assert_learned(predicted: np.ndarray, least: float = 0.9) -> None:
    assert (predicted == Y[TEST]).mean() > least


@pytest.fixture(scope="module")
def fitted() -> ShortlistClassifier:
    return QUICK().fit(X[TRAIN], LABELS.answer, shown=LABELS.shown)


def test_it_learns_digits_from_five_of_ten_classes(fitted):
    assert (LABELS.answer == NONE).mean() > 0.4
    assert_learned(fitted.predict(X[TEST]))


def test_a_predict_that_always_says_class_0_is_caught(fitted, monkeypatch):
    monkeypatch.setattr(ShortlistClassifier, "predict", lambda self, x: np.zeros(len(x), int))
    with pytest.raises(AssertionError):
        assert_learned(fitted.predict(X[TEST]))
    assert fitted.score(X[TEST], Y[TEST]) < 0.2  # score goes by predict


def test_none_answers_are_used():
    """Of 300 items shown 3 of 10 classes two thirds are answered None: without those the accuracy must be lower."""
    labels = StochasticLabels.draw(Y[:300], num_classes=10, size=3, seed=1)
    kept = labels.answered
    means = []
    for rows in (np.arange(300), np.flatnonzero(kept)):
        scores = [
            QUICK(random_state=seed).fit(X[rows], shown=labels.subset(rows)).score(X[TEST], Y[TEST])
            for seed in range(3)
        ]
        means.append(np.mean(scores))
    assert means[0] > means[1] + 0.02


@pytest.mark.parametrize("method", sorted(methods.METHODS))
def test_every_method_beats_chance_by_far(method):
    clf = QUICK(method).fit(X[TRAIN], shown=LABELS)
    assert_learned(clf.predict(X[TEST]), 0.8)
    assert np.allclose(clf.predict_proba(X[TEST]).sum(1), 1)


def test_mask_lists_and_labels_are_the_same_thing(fitted):
    lists = [LABELS.shortlist(i).tolist() for i in range(len(LABELS))]
    for shown, y in ((lists, LABELS.answer), (LABELS, None), (scipy.sparse.csr_array(LABELS.shown), LABELS.answer)):
        other = QUICK().fit(X[TRAIN], y, shown=shown)
        assert np.array_equal(other.predict_proba(X[TEST]), fitted.predict_proba(X[TEST]))


def test_random_state_decides_everything(fitted):
    again = QUICK().fit(X[TRAIN], shown=LABELS)
    other = QUICK(random_state=1).fit(X[TRAIN], shown=LABELS)
    assert np.array_equal(again.decision_function(X[TEST]), fitted.decision_function(X[TEST]))
    assert not np.array_equal(other.decision_function(X[TEST]), fitted.decision_function(X[TEST]))


def test_the_same_run_as_training_gives_for_that_seed(fitted):
    from shortlist.data import Dataset, Split
    from shortlist.training import loop
    from shortlist.training.config import RunConfig
    from shortlist.training.prepared import prepare

    data = Dataset("digits", Split(X[TRAIN]), None, tuple("0123456789"), "features")
    prepared = prepare(
        data,
        RunConfig(optimiser="adam", lr=0.003, weight_decay=1e-5, epochs=10, batch_size=1300 // 32, seed=0),
        labels=LABELS,
    )
    history = loop.fit(prepared)
    assert [row.risk for row in history] == [row["risk"] for row in fitted.history_]


def test_strong_views_and_a_teacher_are_the_run_that_training_gives():
    from shortlist.data import Dataset, Split
    from shortlist.training import Engine, RunConfig, fit, prepare

    images, labels = X[:200].reshape(-1, 1, 8, 8).astype(np.uint8), LABELS.subset(np.arange(200))
    shared = {"augment": True, "strong": True, "epochs": 2, "batch_size": 32, "optimiser": "adam", "lr": 0.003}
    clf = ShortlistClassifier("teacher", **shared, random_state=4, device="cpu").fit(images, shown=labels)
    data = Dataset("digits", Split(images), None, tuple("0123456789"), "image")
    config = RunConfig("teacher", **shared, weight_decay=1e-5, seed=4)
    history = fit(prepare(data, config, labels=labels, engine=Engine(device="cpu")))
    assert [row.risk for row in history] == [row["risk"] for row in clf.history_]
    with pytest.raises(InputError, match="augmentation is for images"):
        ShortlistClassifier(strong=True).fit(X[:200], shown=labels)


def test_params_and_clone():
    clf = ShortlistClassifier("sl", "linear", method_options={"form": "paper"}, classes=["a", "b"], lr=0.1)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert copy.set_params(lr=0.2, model="mlp").lr == 0.2
    assert clf.lr == 0.1
    assert shortlist.ShortlistClassifier is ShortlistClassifier


def test_pandas_keeps_feature_names():
    frame = pd.DataFrame(X[TRAIN], columns=[f"pixel {i}" for i in range(64)])
    clf = ShortlistClassifier(random_state=0, epochs=3).fit(frame, pd.Series(LABELS.answer), shown=LABELS.shown)
    assert clf.n_features_in_ == 64
    assert clf.feature_names_in_[3] == "pixel 3"
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"pixel 3": "other"}))


def test_sparse_input_is_the_dense_input():
    part = X[TRAIN] / 16
    clf = QUICK().fit(scipy.sparse.csr_matrix(part), shown=LABELS)
    dense, sparse = X[TEST] / 16, scipy.sparse.coo_array(X[TEST] / 16)
    assert np.array_equal(clf.predict_proba(dense), clf.predict_proba(sparse))
    assert_learned(clf.predict(sparse))


def test_images_stay_images():
    images = X.reshape(-1, 1, 8, 8).astype(np.uint8)
    clf = QUICK().fit(images[TRAIN], shown=LABELS)
    assert clf.in_shape_ == (1, 8, 8)
    assert clf.n_features_in_ == 64
    assert_learned(clf.predict(images[TEST]))
    for bad, line in ((images[:2, :, 1:], "shape"), (images[:2].astype(float), "uint8"), (X[:2], "images")):
        with pytest.raises(InputError, match=line):
            clf.predict(bad)


def test_zero_weight_is_absence_and_weights_count():
    wrong = Y[TRAIN].copy()
    wrong[650:] = (wrong[650:] + 1) % 10
    weight = np.where(np.arange(1300) < 650, 1.0, 0.0)
    clf = QUICK()
    unweighted = clone(clf).fit(X[TRAIN], wrong).score(X[TEST], Y[TEST])
    assert clf.fit(X[TRAIN], wrong, sample_weight=weight).score(X[TEST], Y[TEST]) > max(0.85, unweighted + 0.2)


def test_history_has_the_scores_of_held_out_items():
    clf = ShortlistClassifier(random_state=0, epochs=4, holdout=0.2).fit(X[TRAIN], shown=LABELS)
    assert [row["epoch"] for row in clf.history_] == [1, 2, 3, 4]
    assert clf.history_[-1]["risk"] < clf.history_[0]["risk"]
    assert 0.5 < clf.history_[-1]["validation_accuracy"] <= 1
    assert clf.history_[-1]["validation_log_likelihood"] < 0


BAD = {
    "NaN": (lambda: (_with(X[:50], np.nan), Y[:50], {}), {}, "X: row 7, feature 3 is NaN, expected finite numbers"),
    "sparse NaN": (lambda: (scipy.sparse.csr_array(_with(X[:50], np.nan)), Y[:50], {}), {}, "row 7, feature 3 is NaN"),
    "huge": (lambda: (_with(X[:50].astype(float), 1e300), Y[:50], {}), {}, "row 7, feature 3 is infinite or too large"),
    "one class": (lambda: (X[:50], np.ones(50, int), {}), {}, "at least 2 classes, got 1 class"),
    "method": (lambda: (X[:50], Y[:50], {}), {"method": "likelyhood"}, "did you mean 'likelihood'"),
    "model": (lambda: (X[:50], Y[:50], {}), {"model": "lennet"}, "did you mean 'lenet'"),
    "option": (lambda: (X[:50], Y[:50], {}), {"method_options": {"from": "paper"}}, "option of likelihood 'from'"),
    "optimiser": (lambda: (X[:50], Y[:50], {}), {"optimiser": "adamm"}, "did you mean 'adam'"),
    "no optimiser": (
        lambda: (X[:50], Y[:50], {}),
        {"optimiser": None},
        r"optimiser None \(known: adam, lbfgs, sgd",
    ),
    "a method itself": (lambda: (X[:50], Y[:50], {}), {"method": methods.get("cc")}, r"CC\(\): expected its name"),
    "text for an option": (
        lambda: (X[:50], Y[:50], {}),
        {"method": "lw", "method_options": {"beta": "x"}},
        "beta of lw: expected a number, got 'x'",
    ),
    "text for a number": (lambda: (X[:50], Y[:50], {}), {"lr": "fast"}, "lr: expected a number, got 'fast'"),
    "how many classes": (lambda: (X[:50], Y[:50], {}), {"classes": 10}, "classes: expected a list .* got 10"),
    "all held out": (lambda: (X[:50], Y[:50], {}), {"holdout": 0.999}, "0.999 of 50 items leaves none to train on"),
    "dtype": (lambda: (X[:50], Y[:50], {}), {"dtype": "float16"}, "unknown dtype"),
    "epochs": (lambda: (X[:50], Y[:50], {}), {"epochs": 2.5}, "epochs: expected a whole number"),
    "lr": (lambda: (X[:50], Y[:50], {}), {"lr": 1e30}, "try a smaller lr"),
    "weights": (lambda: (X[:50], Y[:50], {"sample_weight": -np.ones(50)}), {}, "sample_weight: row 0 is -1.0"),
    "no answers": (lambda: (X[:50], None, {}), {}, "requires y"),
    "texts": (lambda: (["red card", "blue sky"], [0, 1], {}), {}, r"text \('red card'\), .*TfidfVectorizer"),
    "a column of texts": (
        lambda: (pd.DataFrame({"n": [1, 2], "t": ["red", "blue"]}), [0, 1], {}),
        {},
        r"text \('red'\), expected numbers",
    ),
    "labels for y": (lambda: (X[:1300], LABELS, {}), {}, "y: a StochasticLabels is given as shown="),
    "options in a list": (
        lambda: (X[:50], Y[:50], {}),
        {"method_options": ["form"]},
        "method_options: .* a dict",
    ),
    "text for true": (lambda: (X[:50], Y[:50], {}), {"augment": "no"}, "augment: expected true or false, got 'no'"),
    "no model": (lambda: (X[:50], Y[:50], {}), {"model": None}, "model None: expected a name, a function"),
    "one width": (lambda: (X[:50], Y[:50], {}), {"model_options": {"hidden": 64}}, r"such as \(512, 256\), got 64"),
    "half a width": (lambda: (X[:50], Y[:50], {}), {"model_options": {"hidden": [2.5]}}, "width: expected a whole"),
}


def _with(x: np.ndarray, value: float) -> np.ndarray:
    x = x.copy()
    x[7, 3] = value
    return x


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_one_line(case):
    make, params, line = BAD[case]
    x, y, kwargs = make()
    with pytest.raises(InputError, match=line) as caught:
        ShortlistClassifier(**{"epochs": 2, "random_state": 0, **params}).fit(x, y, **kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [{"lr": -1.0}, {"lr": 1e30}, {"model": "lenet"}])
def test_a_fit_that_fails_leaves_the_classifier_as_it_was(bad):
    clf = QUICK(epochs=2).fit(X[TRAIN], shown=LABELS)
    before = clf.predict(X[TEST])
    with pytest.raises(InputError):
        clone(clf).set_params(**bad).fit(X, Y)  # they do fail
    names = np.array([f"other {k}" for k in Y[TRAIN]])
    for x in (X[TRAIN], pd.DataFrame(X[TRAIN, :60]).add_prefix("pixel ")):
        with pytest.raises(InputError):
            clf.set_params(**bad).fit(x, names)
        assert np.array_equal(clf.predict(X[TEST]), before)
        assert not hasattr(clf, "feature_names_in_")

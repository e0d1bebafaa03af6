"""predict_proba: sums to one, undoes the smoothing of `sl`, agrees with decisions."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from shortlist import ShortlistClassifier, StochasticLabels, theory
from shortlist.training.evaluation import calibration_error

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 1300), slice(1300, None)


@pytest.fixture(scope="module", params=["ovr_square", "cross_entropy"])
def smoothed(request) -> ShortlistClassifier:
    labels = StochasticLabels.draw(Y[TRAIN], num_classes=10, size=3, seed=0)
    clf = ShortlistClassifier("sl", method_options={"loss": request.param}, random_state=0, epochs=15)
    return clf.fit(X[TRAIN], shown=labels)


def raw(clf: ShortlistClassifier) -> np.ndarray:
    """The probabilities with the smoothing left in."""
    epsilon, clf.smoothing_ = clf.smoothing_, 0.0
    try:
        return clf.predict_proba(X[TEST])
    finally:
        clf.smoothing_ = epsilon


def test_undoing_the_smoothing_calibrates(smoothed):
    assert smoothed.smoothing_ == pytest.approx(theory.smoothing(10, 3))
    before, after = raw(smoothed), smoothed.predict_proba(X[TEST])
    share = 0.7 if smoothed.method_options["loss"] == "ovr_square" else 0.5  # measured: 0.58 and 0.43
    assert calibration_error(after, Y[TEST]) < share * calibration_error(before, Y[TEST])
    rows = np.arange(len(before))
    # and the mean squared error, which cannot be had by luck of the bins
    brier = [((p - np.eye(10)[Y[TEST]]) ** 2).sum(1).mean() for p in (before, after)]
    assert brier[1] < brier[0]
    assert after[rows, Y[TEST]].mean() > before[rows, Y[TEST]].mean() + 0.2


def test_it_is_the_formula_of_theory(smoothed):
    assert np.allclose(smoothed.predict_proba(X[TEST]), theory.unsmooth(raw(smoothed), smoothed.smoothing_))


def test_rows_sum_to_one_and_agree_with_predict():
    labels = StochasticLabels.draw(Y[TRAIN], num_classes=10, size=5, seed=0)
    clf = ShortlistClassifier(random_state=0, epochs=5).fit(X[TRAIN], shown=labels)
    p = clf.predict_proba(X[TEST])
    assert np.abs(p.sum(1) - 1).max() < 1e-12
    assert (p >= 0).all()
    assert (p > 0.5).any()
    assert np.array_equal(clf.classes_[p.argmax(1)], clf.predict(X[TEST]))
    assert np.array_equal(clf.classes_[clf.decision_function(X[TEST]).argmax(1)], clf.predict(X[TEST]))
    assert np.allclose(np.exp(clf.predict_log_proba(X[TEST])), p)


def test_two_classes_have_one_decision():
    rows = Y < 2
    clf = ShortlistClassifier(random_state=0, epochs=3).fit(X[rows], np.array(["no", "yes"])[Y[rows]])
    decision = clf.decision_function(X[rows])
    assert decision.shape == (rows.sum(),)
    assert np.array_equal(np.where(decision > 0, "yes", "no"), clf.predict(X[rows]))
    assert np.allclose(1 / (1 + np.exp(-decision)), clf.predict_proba(X[rows])[:, 1])


def test_an_item_gets_the_same_alone_and_in_company(smoothed):
    alone = np.concatenate([smoothed.predict_proba(X[i : i + 1]) for i in range(50)])
    assert np.allclose(alone, smoothed.predict_proba(X[:50]), rtol=1e-10, atol=1e-12)

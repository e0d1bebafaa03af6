"""scikit-learn's contract: its own checks, pipelines, searches, metadata routing."""

from collections.abc import Iterator

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from shortlist import NONE, ShortlistClassifier, StochasticLabels
from shortlist.classifier import answered_accuracy, shortlist_scorer
from shortlist.errors import InputError

ROUNDING = "weights and repeated rows agree to float32 rounding only, the check asks for 1e-7; float64 passes it"
EXPECTED = {
    "check_classifiers_classes": "the check has a class -1, which is NONE here",
    "check_sample_weight_equivalence_on_dense_data": ROUNDING,
    "check_sample_weight_equivalence_on_sparse_data": ROUNDING,
}

X, Y = load_digits(return_X_y=True)
X, Y = X[:600], Y[:600]
LABELS = StochasticLabels.draw(Y, num_classes=10, size=5, seed=0)
FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# -- scikit-learn's own checks -----------------------------------------------------------------------------------------


def test_check_estimator():
    rows = estimator_checks.check_estimator(ShortlistClassifier(), expected_failed_checks=EXPECTED, on_skip=None)
    assert len(rows) > 50
    assert {row["check_name"] for row in rows if row["status"] == "xfail"} == set(EXPECTED)  # not one of them passes


@pytest.mark.parametrize("where", ["dense", "sparse"])
def test_weights_equal_repetition_in_float64(where):
    """The expected failure above is float32 rounding and nothing else."""
    check = getattr(estimator_checks, f"check_sample_weight_equivalence_on_{where}_data")
    check("ShortlistClassifier", ShortlistClassifier(dtype="float64"))


def test_the_check_of_classes_passes_without_a_class_of_minus_one():
    """scikit-learn leaves -1 out for those of its estimators to which it means something, going by their names."""
    semi_supervised = "LabelPropagation"
    estimator_checks.check_classifiers_classes(semi_supervised, ShortlistClassifier())
    with pytest.raises(InputError, match="stands for None"):
        estimator_checks.check_classifiers_classes("ShortlistClassifier", ShortlistClassifier())


def test_not_fitted():
    with pytest.raises(NotFittedError):
        ShortlistClassifier().predict(X)


# -- pipelines and searches --------------------------------------------------------------------------------------------


def test_pipeline_without_routing():
    pipe = Pipeline([("scale", StandardScaler()), ("classify", ShortlistClassifier(random_state=0, epochs=10))])
    pipe.fit(X[:400], LABELS.answer[:400], classify__shown=LABELS.shown[:400])
    assert pipe.score(X[400:], Y[400:]) > 0.75


def test_cross_val_score_on_ordinary_labels():
    scores = cross_val_score(ShortlistClassifier(random_state=0, epochs=10), X, Y, cv=3)
    assert scores.min() > 0.75


def test_cross_val_score_with_none_answers(routing):
    clf = ShortlistClassifier(random_state=0, epochs=5, classes=range(10)).set_fit_request(shown=True)
    scores = cross_val_score(clf, X, LABELS.answer, cv=FOLDS, params={"shown": LABELS.shown})
    expected = []
    for train, test in FOLDS.split(X):
        model = clone(clf).fit(X[train], LABELS.answer[train], shown=LABELS.shown[train])
        test = test[LABELS.answered[test]]
        expected.append(np.mean(model.predict(X[test]) == Y[test]))
    assert scores.tolist() == expected
    again = cross_val_score(clf, X, LABELS.answer, cv=FOLDS, params={"shown": LABELS}, error_score="raise")
    assert again.tolist() == expected, "labels are cut into folds as a mask is"


class Spy(ShortlistClassifier):
    """Fails where a row's shortlist is not its own; the first feature of an item is its number."""

    def fit(self, X, y=None, shown=None, sample_weight=None):
        rows = X[:, 0].astype(int)
        assert np.array_equal(shown, LABELS.shown[rows])
        assert np.array_equal(y, LABELS.answer[rows])
        assert np.array_equal(sample_weight, 1 + rows)
        return super().fit(X, y, shown, sample_weight)


def test_grid_search_slices_what_it_routes(routing):
    numbered = np.column_stack([np.arange(len(X)), X])
    spy = Spy(random_state=0, epochs=2).set_fit_request(shown=True, sample_weight=True)
    spy.set_score_request(sample_weight=False)
    search = GridSearchCV(spy, {"lr": [0.001, 0.003]}, cv=FOLDS, error_score="raise")
    search.fit(numbered, LABELS.answer, shown=LABELS.shown, sample_weight=1 + np.arange(len(X)))
    with pytest.raises(AssertionError):  # the spy does look
        search.fit(numbered, LABELS.answer, shown=LABELS.shown[::-1], sample_weight=1 + np.arange(len(X)))


def test_grid_search_over_lr_with_the_likelihood_of_all_answers(routing):
    clf = ShortlistClassifier(random_state=0, epochs=5).set_fit_request(shown=True)
    pipe = make_pipeline(StandardScaler(), clf)
    scorer = shortlist_scorer("log_likelihood").set_score_request(shown=True)
    search = GridSearchCV(pipe, {"shortlistclassifier__lr": [1e-6, 0.01]}, cv=FOLDS, scoring=scorer)
    search.fit(X, LABELS.answer, shown=LABELS.shown)
    assert search.best_params_ == {"shortlistclassifier__lr": 0.01}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    train, test = next(FOLDS.split(X))
    by_hand = clone(pipe).set_params(shortlistclassifier__lr=0.01)
    by_hand.fit(X[train], LABELS.answer[train], shown=LABELS.shown[train])
    p = by_hand.predict_proba(X[test])
    likelihoods = [p[row][LABELS.candidates[i]].sum() for row, i in enumerate(test)]
    assert search.cv_results_["split0_test_score"][1] == pytest.approx(np.log(likelihoods).mean(), rel=1e-9)


def test_lists_of_class_names_are_routed_too(routing):
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    y = np.array([NONE if a == NONE else names[a] for a in LABELS.answer], dtype=object)
    lists = [names[LABELS.shortlist(i)].tolist() for i in range(len(X))]
    clf = ShortlistClassifier(random_state=0, epochs=10, classes=names).set_fit_request(shown=True)
    scores = cross_val_score(clf, X, y, cv=FOLDS, params={"shown": lists}, error_score="raise")
    assert scores.min() > 0.8


# -- scores ------------------------------------------------------------------------------------------------------------


def test_answered_accuracy():
    assert answered_accuracy([0, NONE, 2, 1], [0, 1, 2, 2]) == pytest.approx(2 / 3)
    assert answered_accuracy(["a", NONE, "b"], ["a", "a", "a"], sample_weight=[3, 100, 1]) == 0.75
    assert answered_accuracy(["a", NONE, "b"], ["-1", "-1", "-1"]) == 0  # nothing to be gained by guessing None
    with pytest.raises(InputError, match="all of these are None"):
        answered_accuracy([NONE, NONE], [0, 1])
    with pytest.raises(ValueError, match="sample_weight"):
        answered_accuracy([0, NONE, 2, 1], [0, 1, 2, 2], sample_weight=[1, 2])


def test_scorers_refuse_what_they_cannot_score():
    clf = ShortlistClassifier(random_state=0, epochs=1).fit(X, shown=LABELS)
    with pytest.raises(InputError, match="shown="):
        shortlist_scorer("log_likelihood")(clf, X, LABELS.answer)
    with pytest.raises(ValueError, match="sample_weight"):
        shortlist_scorer("log_likelihood")(clf, X, shown=LABELS, sample_weight=[1.0, 2.0])
    with pytest.raises(InputError, match="did you mean 'accuracy'"):
        shortlist_scorer("acuracy")
    assert shortlist_scorer()(clf, X, LABELS.answer) == clf.score(X, shown=LABELS) == clf.score(X, LABELS.answer)
    assert shortlist_scorer()(clf, X, shown=LABELS) == clf.score(X, shown=LABELS)

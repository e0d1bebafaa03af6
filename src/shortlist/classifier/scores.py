"""Scores that know NONE: accuracy on the answered items, and the log likelihood of all answers.

Answers are true labels. If lists are drawn uniformly and people make no mistakes, the answered items are a fair sample,
so their accuracy is an unbiased estimate of the accuracy on all. Under a policy they are not: weight them by 1 / the
probability that the true class was shown (`sample_weight`), or score the likelihood, which needs no such assumption.
"""

from copy import deepcopy
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _check_sample_weight

from shortlist.classifier.answers import Shown, answers_in, read_answers
from shortlist.classifier.classes import Answers
from shortlist.errors import InputError, unknown_name
from shortlist.training import score_answers

Score = Literal["accuracy", "log_likelihood"]


def answered_accuracy(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """The share of right predictions among the answered items; NONE in `y_true` is not counted.

    >>> answered_accuracy([0, 1, -1, 2], [0, 1, 0, 0])
    0.6666666666666666
    """
    answers = Answers(y_true)
    if answers.none.all():
        raise InputError("accuracy needs answered items, and all of these are None")
    kept = ~answers.none
    predicted = np.asarray(y_pred)
    if len(predicted) != len(answers):
        raise InputError(f"{len(predicted)} predictions for {len(answers)} answers")
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, predicted)[kept]
    return float(accuracy_score(answers.values, predicted[kept], sample_weight=weight))


class AnswerScorer:
    """A scorer for `scoring=` of scikit-learn's cross-validation and searches; greater is better.

    Args:
        score: `accuracy` on the answered items; or `log_likelihood`, the mean log probability of all answers, which
            needs `shown` if there are None answers.
    """

    def __init__(self, score: Score = "accuracy") -> None:
        if score not in get_args(Score):
            raise unknown_name("score", score, get_args(Score))
        self.score = score
        self._request = MetadataRequest(owner=self)
        for name in ("shown", "sample_weight"):
            self._request.score.add_request(param=name, alias=None)

    def __repr__(self) -> str:
        return f"shortlist_scorer({self.score!r})"

    def set_score_request(self, *, shown: bool | str | None = None, sample_weight: bool | str | None = None) -> Self:
        """A scorer that asks for this metadata, once sklearn.set_config(enable_metadata_routing=True) is set."""
        scorer = deepcopy(self)
        for name, alias in (("shown", shown), ("sample_weight", sample_weight)):
            scorer._request.score.add_request(param=name, alias=alias)
        return scorer

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn asks before it passes metadata."""
        return deepcopy(self._request)

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        shown: Shown = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a fitted estimator (a pipeline too) by the answers `y` to `shown`."""
        if self.score == "accuracy":
            y = answers_in(shown, estimator.classes_) if y is None else y
            return answered_accuracy(y, estimator.predict(X), sample_weight=sample_weight)
        p = torch.from_numpy(np.asarray(estimator.predict_proba(X), np.float64))
        labels, _ = read_answers(y, shown, estimator.classes_, len(p))
        weight = None if sample_weight is None else torch.from_numpy(_check_sample_weight(sample_weight, p.numpy()))
        return score_answers(p, labels, lambda shares: shares, weight).log_likelihood


def shortlist_scorer(score: Score = "accuracy") -> AnswerScorer:
    """`AnswerScorer(score)`: `scoring=shortlist_scorer("log_likelihood").set_score_request(shown=True)`."""
    return AnswerScorer(score)

"""The scikit-learn face: `ShortlistClassifier`, and scores that know NONE."""

from shortlist.internal.extras import named_extra

with named_extra():
    from shortlist.classifier.estimator import ShortlistClassifier
    from shortlist.classifier.scores import AnswerScorer, answered_accuracy, shortlist_scorer

__all__ = ["AnswerScorer", "ShortlistClassifier", "answered_accuracy", "shortlist_scorer"]

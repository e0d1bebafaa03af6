"""The scikit-learn face: `ShortlistClassifier`, and scores that know NONE."""

from shortlist.internal.extras import named_extra

with named_extra():
    from shortlist.classifier.estimator import ShortlistClassifier
    from shortlist.classifier.scores import answered_accuracy, shortlist_scorer

__all__ = ["ShortlistClassifier", "answered_accuracy", "shortlist_scorer"]

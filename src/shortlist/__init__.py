"""Shortlist: label items with many classes by short lists, and train on the answers.

`NONE` and `StochasticLabels` need numpy only; `ShortlistClassifier` loads torch when it is first used.
"""

from typing import TYPE_CHECKING, Any

from shortlist.internal.version import __version__
from shortlist.labels import NONE, StochasticLabels

if TYPE_CHECKING:
    from shortlist.classifier import ShortlistClassifier

__all__ = ["NONE", "ShortlistClassifier", "StochasticLabels", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "ShortlistClassifier":
        from shortlist.classifier import ShortlistClassifier

        return ShortlistClassifier
    raise AttributeError(f"module 'shortlist' has no attribute {name!r}")

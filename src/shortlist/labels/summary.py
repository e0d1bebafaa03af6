"""What a set of labels holds, in a few numbers."""

from dataclasses import dataclass

from shortlist.labels.checks import IntArray


@dataclass(frozen=True)
class LabelSummary:
    """What a set of stochastic labels holds and what it cost to collect."""

    items: int
    num_classes: int
    none_share: float
    reads: int
    """Class names shown to people in all, None not counted."""
    answers_per_class: IntArray
    size_histogram: dict[int, int]
    """How many items have a shortlist of each size."""

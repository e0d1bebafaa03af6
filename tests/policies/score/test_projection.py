import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.policies.score.projection import questions_for

RESULTS = Path(__file__).parents[3] / "results"


@given(st.floats(0.2, 1.5), st.floats(0.05, 0.5), st.integers(100, 5000))
def test_a_power_law_is_met_exactly(power, error, now):
    questions = np.linspace(now / 3, now, 12)
    curve = np.column_stack([questions, 1 - error * (questions / now) ** -power])
    more = questions_for(1.0, curve)
    if more is None:  # a thousand times as many questions and more
        assert (error / (error - 0.01)) ** (1 / power) >= 1000
        return
    assert error * ((now + more) / now) ** -power == pytest.approx(error - 0.01)


def _curve(*accuracies: float) -> np.ndarray:
    return np.column_stack([np.linspace(100, 300, len(accuracies)), accuracies])


@pytest.mark.parametrize(
    "curve",
    [np.empty((0, 2)), _curve(0.5, 0.6, 0.7), _curve(0.9, 0.8, 0.7, 0.6), _curve(0.7, 0.8, 0.9, 0.999)],
    ids=["nothing", "too short", "falling", "at the top"],
)
def test_what_cannot_be_told_is_not_told(curve):
    assert questions_for(1.0, curve) is None


def test_what_was_long_ago_does_not_count():
    late = _curve(0.7, 0.75, 0.78, 0.8)
    early = np.array([[1.0, 0.0], [10.0, 0.69]])
    assert questions_for(1.0, np.vstack([early, late])) == questions_for(1.0, late)


def test_measured_curves_are_met_within_a_factor_of_three_mostly():
    """Of the accuracy on test items, at 1,000 to 8,000 questions, wherever a point more came later."""
    runs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for name in ("banking77", "letter"):
        with (RESULTS / f"label_economy_{name}.csv").open() as file:
            for row in csv.DictReader(file):
                if row["way"] == "adaptive":
                    runs[name, row["seed"]].append((float(row["questions"]), float(row["accuracy"])))
    ratios = []
    for run in map(np.array, runs.values()):
        for moment in (1000, 2000, 4000, 8000):
            place = int(np.searchsorted(run[:, 0], moment))
            target = run[place, 1] + 0.01
            said = questions_for(1.0, run[: place + 1])
            reached = run[place:, 0][run[place:, 1] >= target]
            if len(reached) and said is not None:
                ratios.append(said / (reached[0] - run[place, 0]))
    assert len(ratios) >= 25
    assert np.mean(np.abs(np.log(ratios)) < np.log(3)) > 0.7
    assert 0.5 < np.median(ratios) < 2

import pytest

from shortlist.training.history import EpochScores, mean_of_last


@pytest.mark.parametrize("score", ["test_accuracy", "validation_accuracy"])
@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([0.0] * 5 + [0.5] * 10, 0.5),
        ([0.2, 0.4], 0.3),
        ([0.2, None], None),  # never the mean of fewer epochs than it says
        ([0.2, float("nan")], None),
        ([], None),
    ],
)
def test_the_mean_of_the_last_ten(score, values, mean):
    history = [EpochScores(epoch, 0.0, 0.0, **{score: value}) for epoch, value in enumerate(values, 1)]
    assert mean_of_last(history, score) == (None if mean is None else pytest.approx(mean))

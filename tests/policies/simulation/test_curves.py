import numpy as np
import pytest

from shortlist.policies.simulation.curves import at_cost, band, by_way, curves_csv, mark, summarise
from shortlist.policies.simulation.plot import draw_curves
from shortlist.policies.simulation.simulate import Curve, Point


def _curve(way, seed, costs, accuracies):
    points = [Point(i + 1, c, 2.0 * c, a, 0.5, 0.5) for i, (c, a) in enumerate(zip(costs, accuracies, strict=True))]
    return Curve(way, seed, tuple(points))


FULL = [_curve("full labels", s, [500, 1000], [0.7, 0.9]) for s in (0, 1)]
CHOSEN = [
    _curve("adaptive", 0, [10, 50, 100], [0.5, 0.9, 0.92]),
    _curve("adaptive", 1, [10, 60, 120], [0.3, 0.95, 0.9]),
]


def test_a_run_is_worth_what_was_in_hand_at_that_cost():
    assert at_cost(CHOSEN[0], "reads", np.array([5.0, 49, 50, 99, 500])).tolist() == [0.5, 0.5, 0.9, 0.9, 0.92]
    line = band(CHOSEN, "reads", steps=111)
    at = {int(c): (m, lo, hi) for c, m, lo, hi in zip(line.cost, line.mean, line.low, line.high, strict=True)}
    assert at[10] == pytest.approx((0.4, 0.3, 0.5))
    assert at[55] == pytest.approx((0.6, 0.3, 0.9))
    assert at[120] == pytest.approx((0.91, 0.9, 0.92))


def test_the_mark_is_where_the_mean_stays_above():
    assert mark(CHOSEN, "reads", 0.6) == pytest.approx(50, abs=0.1)
    assert mark(CHOSEN, "reads", 0.92) is None  # reached at 60, lost at 120
    assert mark(CHOSEN, "seconds", 0.6) == pytest.approx(100, abs=0.2)
    assert mark(CHOSEN, "reads", 0.1) == 10


def test_summary_in_shares_of_full_labels():
    summary = summarise(CHOSEN, FULL)
    assert summary.reads == pytest.approx(0.11)
    assert summary.seconds == pytest.approx(0.11)
    assert summary.mark_reads == pytest.approx(0.06, abs=1e-3)  # 0.99 * 0.9 = 0.891
    assert summary.accuracy == pytest.approx(0.91)


@pytest.mark.slow
def test_files(tmp_path):
    lines = curves_csv(FULL + CHOSEN).splitlines()
    assert lines[0] == "way,seed,questions,reads,seconds,accuracy,resolved,correct,hits"
    assert len(lines) == 1 + 4 + 6
    assert list(by_way(FULL + CHOSEN)) == ["full labels", "adaptive"]
    written = draw_curves(FULL + CHOSEN, tmp_path / "curve", title="test")
    assert [path.name for path in written] == ["curve.svg", "curve.png"]
    first = written[0].read_bytes()
    assert b"<svg" in first
    draw_curves(FULL + CHOSEN, tmp_path / "curve", title="test")
    draw_curves(FULL + CHOSEN, tmp_path / "odd", title="a file named $^^$")  # no formula
    assert written[0].read_bytes() == first  # the same figures, the same file

"""What several drives came to together."""

from shortlist.study.run.driver import DriveOutcome


def test_outcomes_add_up():
    outcome = DriveOutcome(stored=1, failed=2, left=3, left_seconds=4.5, absent={"a": "no file"})
    outcome.add(DriveOutcome(stored=10, failed=20, left=30, left_seconds=40.0, absent={"b": "damaged"}))
    assert outcome == DriveOutcome(11, 22, 33, 44.5, {"a": "no file", "b": "damaged"})

"""The line under a report's heading: what its figures were made on."""

from shortlist.study.report.content import provenance_text


def row(hardware, seconds, date, commit):
    return {
        "hardware": hardware,
        "seconds": seconds,
        "date": date + "T10:00:00Z",
        "commit": commit,
        "versions": {"torch": "2.11.0"},
    }


def test_hours_are_told_by_machine():
    """A run that takes two seconds on a GPU takes an hour on a CPU: a sum of both would say nothing."""
    rows = [row("GPU", 18, "2026-11-16", "aaaaaaaaaa")] * 100
    rows += [row("CPU", 3600, "2026-11-19", None)]
    assert provenance_text(rows) == (
        "101 runs, 2026-11-16 to 2026-11-19; GPU: 100 in 0.50 hours, CPU: 1 in 1.00 hours; torch 2.11.0 (101); "
        "commits: aaaaaaa (100), commit unknown (1)."
    )


def test_one_day_is_no_span():
    day = provenance_text([row("GPU", 36, "2026-11-16", "aaaaaaaaaa")])
    assert "runs, 2026-11-16; GPU: 1 in 0.01 hours" in day
    assert provenance_text([]) == "No run yet."

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.policies.simulation.journal import RUNS, Journal
from shortlist.policies.simulation.simulate import Curve, Point


def test_what_had_ended_is_read_back(tmp_path):
    folder = tmp_path / "a" / "folder"  # made where it is missing
    curve = Curve("adaptive", 3, (Point(5, 9, 12.5, 0.5, 0.25, float("nan"), 2),))
    journal = Journal(folder, {"size": 3})
    journal.run(curve)
    again = Journal(folder, {"size": 3})
    found = again.of("adaptive", 3)
    assert again.of("adaptive", 2) is None
    assert found.points[0].questions == 5
    np.testing.assert_array_equal(found.column("correct"), [np.nan])


@pytest.mark.parametrize("line", ["{", "3", '{"way": "adaptive"}', '{"way": "a", "seed": 0, "points": [{"reads": 1}]}'])
def test_a_damaged_journal_is_one_line(tmp_path, line):
    Journal(tmp_path, {"size": 3})
    with (tmp_path / RUNS).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=r"runs\.jsonl is damaged or of another version .*remove it to begin anew"):
        Journal(tmp_path, {"size": 3})


@pytest.mark.parametrize("content", [b"3\n", b'{"size": 3}\n\xff\n'])
def test_a_journal_that_is_none_is_one_line(tmp_path, content):
    (tmp_path / RUNS).write_bytes(content)
    with pytest.raises(InputError, match=r"runs\.jsonl is damaged or of another version .*remove it to begin anew"):
        Journal(tmp_path, {"size": 3})

"""The exports beside people's votes: corrections, and Dawid and Skene's opinion."""

import csv

import pytest

from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.project.review.corrections import correct, undo_correction

from ..conftest import people


def rows(project, name, tmp_path):
    count = EXPORTS[name](project, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert len(found) == count
    return found


def test_dawid_and_skene_trust_those_who_agree_with_others(make_project, tmp_path):
    """Two who are right and one who says whatever is shown first: theirs is never the opinion."""
    pytest.importorskip("crowdkit")
    project = make_project(items=40, classes=3, size=3, overlap=3)
    queue = project.queue()
    assert rows(project, "dawid-skene.csv", tmp_path) == []
    for who in people(project, "ada", "ben", "sly"):
        while held := queue.next(who):
            truth = held[0].item_id % 3
            said = truth if who < 3 else held[0].shortlist[0]
            queue.answer(who, held[0].id, 0, said, 1.0)
    found = rows(project, "dawid-skene.csv", tmp_path)
    assert len(found) == 40
    for row in found:
        truth = f"class {(int(row['item'].split()[1]) + 1) % 3}"
        assert row["dawid_skene"] == truth
        assert float(row["probability"]) > 0.5


def test_corrections_keep_who_and_why(make_project, tmp_path):
    project = make_project(items=2)
    correct(project.store, 1, 0, 2, "=rev", "because")
    undo_correction(project.store, 1, 1, "ben", "no")
    correct(project.store, 2, 0, None, "ben", "")
    columns = ("item", "kind", "class", "reviewer", "why")
    found = [tuple(row[name] for name in columns) for row in rows(project, "corrections.csv", tmp_path)]
    assert found == [
        ("item 0", "correction", "class 2", "'=rev", "because"),
        ("item 0", "undo", "", "ben", "no"),
        ("item 1", "correction", "", "ben", ""),
    ]

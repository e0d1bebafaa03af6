"""Labels that an owner had before anybody was asked are in the exports, as what they are."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from shortlist import NONE, StochasticLabels
from shortlist.annotate.project.known_items import mark_known
from shortlist.annotate.project.review.class_changes import merge_classes
from shortlist.annotate.project.review.corrections import correct
from shortlist.annotate.setup import export_file
from shortlist.internal.names import KNOWN

from ..conftest import people


def read_rows(path) -> list[dict]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def answer_next(project, who: int) -> str:
    """Say None to the next question about one of the first six items (gold, by chance before it, lies behind them)."""
    queue = project.queue()
    while True:
        (held,) = queue.next(who)
        queue.answer(who, held.id, held.attempt, None, 1.5)
        if held.item_id <= 6:
            return f"item {held.item_id - 1}"


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_known_labels_are_full_labels_beside_the_answers(make_project, database, tmp_path, ending):
    project = make_project(database, items=6, gold=2)
    mark_known(project, {"item 2": "class 5", "item 4": "class 0"})
    (ada,) = people(project, "ada")
    item = answer_next(project, ada)
    path = tmp_path / f"answers{ending}"
    assert export_file(project, path) == 3
    labels = StochasticLabels.read(path)
    assert labels.item_ids.tolist() == [item, "item 2", "item 4"]
    assert labels.answer.tolist() == [NONE, 5, 0]
    assert labels.sizes.tolist() == [3, 1, 1]
    assert labels.class_names == tuple(f"class {k}" for k in range(6))
    asked, *known = read_rows(path)
    assert asked["policy"] == "uniform/1"
    assert [row["policy"] for row in known] == [KNOWN, KNOWN]
    nobody = [row[name] for row in known for name in ("annotator", "seconds", "served_at", "answered_at", "gold")]
    assert set(nobody) <= {"", None}


def test_a_project_of_known_labels_alone_states_all_classes(make_project, tmp_path):
    project = make_project(items=3)
    mark_known(project, {"item 1": "class 4"})
    assert export_file(project, tmp_path / "a.csv") == 1
    assert StochasticLabels.read(tmp_path / "a.csv").num_classes == 6


def test_what_the_owner_knows_counts_instead_of_answers_and_what_a_reviewer_says_instead_of_both(
    make_project, tmp_path
):
    project = make_project(items=4, overlap=2)
    ada, ben = people(project, "ada", "ben")
    queue = project.queue()
    for who in (ada, ben):
        while held := queue.next(who):
            queue.answer(who, held[0].id, held[0].attempt, held[0].shortlist[0], 1.0)
    mark_known(project, {"item 0": "class 5", "item 1": "class 1", "item 2": "class 2"})
    correct(project.store, 2, 0, 3, "rev", "")
    correct(project.store, 3, 0, None, "rev", "of no class")
    export_file(project, tmp_path / "a.csv")
    rows = read_rows(tmp_path / "a.csv")
    assert [(row["item"], row["answer"], row["policy"]) for row in rows if row["item"] != "item 3"] == [
        ("item 1", "class 3", "correction/1"),
        ("item 0", "class 5", KNOWN),
    ]
    assert sum(row["item"] == "item 3" for row in rows) == 2, "answers of others stay"
    assert export_file(project, tmp_path / "l.csv", "labels") == 4
    labels = {row["item"]: row for row in read_rows(tmp_path / "l.csv")}
    known = labels["item 0"]
    assert (known["label"], known["known"], known["corrected_by"]) == ("class 5", "yes", "")
    assert int(known["votes"]) + int(known["against"]) == 2, "what people said stands beside it"
    assert (labels["item 1"]["label"], labels["item 1"]["known"]) == ("class 3", "")
    assert (labels["item 2"]["label"], labels["item 2"]["known"]) == ("", "")
    assert labels["item 3"]["known"] == ""


def test_without_known_labels_the_table_of_labels_is_what_it_was(make_project, tmp_path):
    project = make_project(items=2)
    (ada,) = people(project, "ada")
    item = answer_next(project, ada)
    export_file(project, tmp_path / "l.csv", "labels")
    text = item.replace("item", "text")
    assert (tmp_path / "l.csv").read_bytes() == f"item,label,votes,against,text\r\n{item},,0,0,{text}\r\n".encode()


def test_a_known_class_that_was_merged_is_the_merged_one(make_project, tmp_path):
    project = make_project(items=2)
    mark_known(project, {"item 0": "class 1"})
    merge_classes(project, 1, 0)
    export_file(project, tmp_path / "a.csv")
    assert [row["answer"] for row in read_rows(tmp_path / "a.csv")] == ["class 0"]

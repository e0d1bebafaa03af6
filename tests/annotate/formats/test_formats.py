"""Files of answers, of votes and of labels."""

import csv
from collections import Counter

import pytest
from sqlalchemy import insert, select

from shortlist import NONE, StochasticLabels
from shortlist.annotate.db.schema import Item, Slot, answers, questions
from shortlist.annotate.db.statements import insert_id
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.formats.answers import standing_answers
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import Source
from shortlist.annotate.setup import export_file
from shortlist.errors import InputError

from ..conftest import people

ODD = ["plain", "a|b", "back\\slash", 'quo"te', "comma, too", "ünïcode ☃", "=1+1"]


def answered(project, count: int = 6) -> list[tuple[str, list[str], str | None]]:
    """Let two people answer; returns what they said."""
    queue, said = project.queue(), []
    for who in people(project, "ada", "bob, the second"):
        for turn in range(count // 2):
            (q,) = queue.next(who)
            choice = None if turn % 3 == 0 else q.shortlist[0]
            queue.answer(who, q.id, 0, choice, 1.5)
            with project.store.read() as connection:
                item = connection.execute(select(Item.name).where(Item.id == q.item_id)).scalar_one()
            said.append((item, q.names, None if choice is None else q.names[0]))
    return said


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_an_export_is_a_file_of_labels(make_project, database, tmp_path, ending):
    project = make_project(database, items=0, classes=0)
    add_classes(project, ODD)
    add_items(project, [Source(name, name, text="x") for name in ["i, 1", 'i "2"', "i|3", "i4", "i5", "ï6", "i7"]])
    said = answered(project)
    path = tmp_path / f"answers{ending}"
    assert export_file(project, path, None) == len(said)
    labels = StochasticLabels.read(path)
    assert labels.class_names == tuple(ODD)
    rows = zip(labels.item_ids.tolist(), labels.offsets[:-1], labels.offsets[1:], labels.answer.tolist(), strict=True)
    again = [
        (item, [ODD[k] for k in labels.classes[a:b]], None if answer == NONE else ODD[answer])
        for item, a, b, answer in rows
    ]
    assert again == said


def test_the_columns_say_who_how_fast_and_how_chosen(make_project, tmp_path):
    project = make_project(items=4)
    answered(project, 2)
    export_file(project, tmp_path / "a.csv", None)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["annotator"] for row in rows] == ["ada", "bob, the second"]
    assert rows[0]["seconds"] == "1.5"
    assert rows[0]["policy"] == "uniform/1"
    assert [float(p) for p in rows[0]["probabilities"].split("|")] == [0.5] * 3
    assert float(rows[0]["served_at"]) <= float(rows[0]["answered_at"])


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_none_to_a_list_of_all_classes_does_not_spoil_the_file(make_project, tmp_path, ending):
    """Five classes on a list are usual, and there may be no more than that."""
    project = make_project(items=4, classes=3, size=5)
    (ada,) = people(project, "ada")
    queue = project.queue()
    for choice in (None, 1, None, 2):
        (q,) = queue.next(ada)
        queue.answer(ada, q.id, 0, choice, 1.0)
    path = tmp_path / f"answers{ending}"
    assert export_file(project, path, None) == 2
    labels = StochasticLabels.read(path)
    assert labels.class_names == ("class 0", "class 1", "class 2")
    assert labels.answer.tolist() == [1, 2]


def test_undone_and_skipped_are_not_exported(make_project, tmp_path):
    project = make_project(items=4)
    (ada,) = people(project, "ada")
    queue = project.queue()
    (q,) = queue.next(ada)
    queue.answer(ada, q.id, 0, None, 1.0)
    queue.undo(ada)
    queue.answer(ada, q.id, 1, q.shortlist[2], 1.0)
    (q2,) = queue.next(ada)
    queue.skip(ada, q2.id, 0)
    assert export_file(project, tmp_path / "a.csv", None) == 1
    assert StochasticLabels.read(tmp_path / "a.csv").answer.tolist() == [q.shortlist[2]]


def test_crowd_kit_reads_its_table(make_project, tmp_path):
    aggregation = pytest.importorskip("crowdkit.aggregation")
    pandas = pytest.importorskip("pandas")
    project = make_project(items=3, overlap=2, classes=3)
    answered(project, 6)
    assert export_file(project, tmp_path / "crowd.csv", "crowd-kit") == 6
    table = pandas.read_csv(tmp_path / "crowd.csv")
    assert list(table.columns) == ["task", "worker", "label"]
    assert len(aggregation.MajorityVote().fit_predict(table)) == 3


def test_crowd_kits_table_has_no_gold_items(make_project, tmp_path):
    project = make_project(items=20, classes=3, gold=20, gold_every=2)
    (ada,) = people(project, "ada")
    queue = project.queue()
    while held := queue.next(ada):
        queue.answer(ada, held[0].id, 0, None, 1.0)
    assert export_file(project, tmp_path / "votes.csv", "crowd-kit") == 20
    assert "gold " not in (tmp_path / "votes.csv").read_text()


def test_a_new_format_is_one_function_and_one_line(make_site, tmp_path, monkeypatch):
    """Protects the registry: command line and API know an export by its line in `EXPORTS` alone."""

    def write_counts(project, path):
        with project.store.read() as connection:
            counts = Counter(row["annotator"] for row in standing_answers(connection))
        path.write_text("".join(f"{name}\t{count}\n" for name, count in counts.items()))
        return len(counts)

    monkeypatch.setitem(EXPORTS, "counts.tsv", write_counts)
    site = make_site(items=3)
    (ada,) = people(site.project, "ada")
    for _ in range(2):
        (question,) = site.project.queue().next(ada)
        site.project.queue().answer(ada, question.id, 0, None, 1.0)
    assert export_file(site.project, tmp_path / "out.tsv", "counts") == 1
    assert (tmp_path / "out.tsv").read_text() == "ada\t2\n"
    reply = site.admin().get("/api/v1/export/counts.tsv")
    assert (reply.status_code, reply.text) == (200, "ada\t2\n")
    assert site.admin().get("/api/v1/export/poem.txt").status_code == 422


def test_an_unknown_ending_is_refused(make_project, tmp_path):
    project = make_project()
    for path, kind in ((tmp_path / "a.xlsx", None), (tmp_path / "a.json", None), (tmp_path / "no" / "a.csv", None)):
        with pytest.raises(InputError):
            export_file(project, path, kind)
    assert list(tmp_path.glob("*.xlsx")) == []


def _say(project, who, item, shown, answer):
    """A question about an item and its answer, as if a policy had asked it."""
    with project.store.write() as connection:
        slot = connection.execute(select(Slot.id).where(Slot.item_id == item).order_by(Slot.number)).scalars().all()
        values = {"slot_id": slot[0], "item_id": item, "annotator_id": who, "turn": 0, "shortlist": shown, "seed": 0}
        values |= {"policy": "top", "policy_version": "1", "probabilities": [1.0] * len(shown), "state": "answered"}
        question = insert_id(connection, questions, {**values, "attempt": 0, "served_at": 0.0})
        values = {"question_id": question, "attempt": 0, "kind": "answer", "class_id": answer, "answered_at": 0.0}
        insert_id(connection, answers, values)


def test_labels_are_a_row_an_item_and_each_person_one_vote(make_project, database, tmp_path):
    project = make_project(database, items=6, classes=3, overlap=3, gold=1)
    with project.store.write() as connection:
        connection.execute(insert(Slot).values(item_id=7, number=1, gold=True, state="done", rank=-1, turn=0))
    ada, bob, cem = people(project, "ada", "bob", "cem")
    for who, item, shown, answer in (
        *((ada, 1, [0, 1], None), (ada, 1, [2], 2), (bob, 1, [1, 2], 2), (cem, 1, [0, 2], 0)),  # two of three
        *((ada, 2, [0, 1], 0), (bob, 2, [0, 1], 1)),  # one against one
        *((ada, 3, [0], None), (bob, 3, [0], None)),  # nobody picked
        *((ada, 4, [0], None), (ada, 4, [2], None)),  # one class is left
        *((bob, 5, [0, 1], 1), (bob, 7, [0, 1], 1)),
    ):
        _say(project, who, item, shown, answer)
    path = tmp_path / "labels.csv"
    assert export_file(project, path, "labels") == 5
    with path.open(newline="") as file:
        assert [tuple(row.values()) for row in csv.DictReader(file)] == [
            ("item 0", "class 2", "2", "1", "text 0"),
            ("item 1", "", "1", "1", "text 1"),
            ("item 2", "", "0", "0", "text 2"),
            ("item 3", "class 1", "0", "0", "text 3"),
            ("item 4", "class 1", "1", "0", "text 4"),
        ]
    export_file(project, tmp_path / "votes.csv", "crowd-kit")
    with (tmp_path / "votes.csv").open(newline="") as file:
        votes = [(row["worker"], row["label"]) for row in csv.DictReader(file) if row["task"] == "item 0"]
    assert votes == [("ada", "class 2"), ("bob", "class 2"), ("cem", "class 0")]

"""What was typed, in the files: beside what the list was answered, and read back as the label that it is."""

import csv

import numpy as np
import pytest

from shortlist import NONE, StochasticLabels
from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.setup import export_file
from shortlist.labels import join

from ..conftest import people


@pytest.fixture
def typed(make_project, database):
    """Three answers: typed and not on the list, typed and on it, None."""
    project = make_project(database, items=3, typing=True)
    (ada,) = people(project, "ada")
    queue, said = project.queue(), []
    for kind in ("absent", "shown", "none"):
        (q,) = queue.next(ada)
        absent = next(k for k in range(6) if k not in q.shortlist)
        given = {"absent": absent, "shown": q.shortlist[1], "none": None}[kind]
        queue.answer(ada, q.id, 0, given, 2.0, typed=kind != "none")
        said.append((q.shortlist, given))
    return project, said


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_typed_class_is_read_back_as_an_ordinary_label(typed, tmp_path, ending):
    project, said = typed
    path = tmp_path / f"answers{ending}"
    assert export_file(project, path) == 3
    labels = StochasticLabels.read(path)
    (first, absent), (second, shown), (third, _) = said
    assert [labels.shortlist(row).tolist() for row in range(3)] == [[*first, absent], second, third]
    assert labels.answer.tolist() == [absent, shown, NONE]
    assert labels.candidates.sum(axis=1).tolist() == [1, 1, 3]
    assert np.isnan(labels.inclusion).tolist() == [False] * 3 + [True] + [False] * 6, "of the typed one none is stated"


def test_without_the_column_the_rows_are_those_of_the_mechanism(typed, tmp_path):
    """Who types is not chosen by chance: what must average over uniform lists leaves the column out."""
    project, said = typed
    EXPORTS["answers.csv"](project, tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["answer"], row["typed"]) for row in rows] == [
        ("", f"class {said[0][1]}"),
        (f"class {said[1][1]}", f"class {said[1][1]}"),
        ("", ""),
    ]
    with (tmp_path / "mechanism.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name != "typed"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    labels = StochasticLabels.read(tmp_path / "mechanism.csv")
    assert labels.answer.tolist() == [NONE, said[1][1], NONE]
    assert labels.sizes.tolist() == [3, 3, 3]
    assert not np.isnan(labels.inclusion).any()


def test_propensity_takes_a_typed_class_for_the_none_that_it_was(typed, tmp_path):
    """How likely somebody is to type is not known: weighted as if it were, the risk would be biased."""
    methods = pytest.importorskip("shortlist.methods")
    project, _ = typed
    export_file(project, tmp_path / "answers.csv")
    labels = StochasticLabels.read(tmp_path / "answers.csv")
    _, joined = join(labels, labels.item_ids.tolist())
    assert methods.Propensity().feed(joined).inclusion.tolist()[:2] == [np.inf, 0.5]


def test_plain_labels_and_votes_have_what_was_typed(typed, tmp_path):
    project, said = typed
    EXPORTS["labels.csv"](project, tmp_path / "labels.csv")
    EXPORTS["crowd-kit.csv"](project, tmp_path / "votes.csv")
    names = [f"class {said[0][1]}", f"class {said[1][1]}"]
    assert [line.split(",")[1:4] for line in (tmp_path / "labels.csv").read_text().splitlines()[1:]] == [
        [names[0], "1", "0"],
        [names[1], "1", "0"],
        ["", "0", "0"],
    ]
    votes = [line.split(",")[2] for line in (tmp_path / "votes.csv").read_text().splitlines()[1:]]
    assert votes == [*names, "__none__"]

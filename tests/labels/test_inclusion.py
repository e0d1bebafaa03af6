"""Inclusion probabilities travel with the labels: from an export through files, subsets and joins."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels, join

nan = np.nan


def labels(inclusion=(0.5, 0.25, 1.0, nan, nan, 0.125)) -> StochasticLabels:
    lists = [[2, 0], [1], [3, 1, 0]]
    return StochasticLabels.from_lists(lists, [0, 1, NONE], 4, items=["a", "b", "a"], inclusion=inclusion)


def same(got, want) -> bool:
    return np.array_equal(got, want, equal_nan=True)


def test_they_follow_their_classes():
    three = labels()
    assert same(three.subset([2, 0]).inclusion, [nan, nan, 0.125, 0.5, 0.25])
    assert same(three.subset([False, True, False]).inclusion, [1.0])
    assert StochasticLabels.concatenate([three.subset([0]), three.subset([1, 2])]) == three
    assert three != labels((0.5, 0.25, 1.0, nan, nan, 0.25))
    assert three != labels(None)


def test_not_known_is_none():
    """A file without the column is the same as labels without any probability."""
    assert labels([nan] * 6).inclusion is None
    assert labels([nan] * 6) == labels(None)
    assert labels().subset([]).inclusion is None
    mixed = StochasticLabels.concatenate([labels(None), labels()])
    assert same(mixed.inclusion, [nan] * 6 + [0.5, 0.25, 1.0, nan, nan, 0.125])


def test_a_draw_knows_its_own():
    drawn = StochasticLabels.draw([0, 1, 2, 3], num_classes=4, size=3, seed=0)
    assert drawn.inclusion.tolist() == [0.75] * 12
    drawn = StochasticLabels.draw([0, 1, 2], num_classes=4, size=[1, 2, 4], seed=0)
    assert drawn.inclusion.tolist() == [0.25, 0.5, 0.5, 1, 1, 1, 1]
    assert StochasticLabels.ordinary([0, 1], num_classes=2).inclusion.tolist() == [1.0] * 4
    assert StochasticLabels.draw([], num_classes=4, size=3, seed=0).inclusion is None


def test_a_union_has_those_of_the_first_question():
    rows, joined = join(labels(), ["b", "a"])
    assert rows.tolist() == [0, 1]
    assert [joined.shortlist(row).tolist() for row in range(2)] == [[1], [2, 0, 3, 1]]
    assert same(joined.inclusion, [1.0, 0.5, 0.25, nan, nan])
    rows, joined = join(labels().subset([1, 0]), ["a", "b"])  # nothing to merge
    assert same(joined.inclusion, [0.5, 0.25, 1.0])
    assert join(labels(None), ["b", "a"])[1].inclusion is None


@pytest.mark.parametrize(
    ("inclusion", "problem"),
    [
        ([0.5] * 5, r"inclusion: expected 6 numbers, one per class shown, got shape \(5,\)"),
        ([[0.5, 0.5], [1.0]], "inclusion: expected numbers, one for each class shown"),
        ([0.5, 0.5, 0.0, 1, 1, 1], "row 1: the inclusion probability of a class shown is 0.0, expected above 0"),
        ([0.5, 0.5, 1, 1, 1, 1.01], "row 2: the inclusion probability of a class shown is 1.01, expected above 0"),
        ([0.5, -0.5, 1, 1, 1, 1], "row 0: the inclusion probability of a class shown is -0.5"),
    ],
)
def test_impossible_ones_are_refused(inclusion, problem):
    with pytest.raises(InputError, match=problem):
        labels(inclusion)


def test_a_rounding_error_is_no_mistake():
    assert labels([0.7 + 0.2 + 0.1 + 1e-12, 0.5, 1, 1, 1, 1]).inclusion.max() == 1


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_column_is_written_where_something_is_known(tmp_path):
    labels().write(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().split() == [
        "item,shortlist,answer,classes,probabilities",
        "a,2|0,0,4,0.5|0.25",
        "b,1,1,,1.0",
        "a,3|1|0,,,||0.125",
    ]
    labels(None).write(tmp_path / "b.csv")
    assert "probabilities" not in (tmp_path / "b.csv").read_text()


def test_lists_of_numbers_of_other_programs(tmp_path):
    rows = [
        {"item": "x", "shortlist": ["0", "1"], "answer": "1", "probabilities": [0.5, None]},
        {"item": "y", "shortlist": ["2"], "answer": "", "probabilities": [1]},
        {"item": "z", "shortlist": ["2"], "answer": "2"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert same(StochasticLabels.read(tmp_path / "a.jsonl").inclusion, [0.5, nan, 1.0, nan])
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert same(StochasticLabels.read(tmp_path / "a.parquet").inclusion, [0.5, nan, 1.0, nan])
    (tmp_path / "b.jsonl").write_text(json.dumps({**rows[1], "probabilities": 0.25}))
    assert StochasticLabels.read(tmp_path / "b.jsonl").inclusion.tolist() == [0.25]


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("0.5", "row 3: 1 probabilities for the 2 classes shown"),
        ("0.5|x", r"row 3: probabilities has '0.5\|x', expected numbers"),
        ("0.5|0", "row 3: the inclusion probability of a class shown is 0.0, expected above 0 and at most 1"),
        ("0.5|nan", None),
        ("2|0.5", "row 3: the inclusion probability of a class shown is 2.0"),
    ],
)
def test_bad_cells_are_named(cell, problem, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(f"item,shortlist,answer,probabilities\na,0|1,1,0.5|0.5\nb,1|2,,{cell}\n")
    if problem is None:
        assert same(StochasticLabels.read(path).inclusion, [0.5, 0.5, 0.5, nan])
        return
    with pytest.raises(InputError, match=problem) as refused:
        StochasticLabels.read(path)
    assert str(refused.value).startswith(f"{path}: ")

"""Files of labels: what is written is what is read."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shortlist.errors import InputError
from shortlist.internal.names import join_names, split_names
from shortlist.labels import NONE, LabelsFile, StochasticLabels

from .file_cases import AWKWARD, FORMATS, LOOSE, any_labels, write

# -- there and back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
@settings(LOOSE, max_examples=80)
@given(labels=any_labels())
@example(labels=StochasticLabels.draw([0] * 13, num_classes=13, size=2, seed=0, class_names=AWKWARD, items=AWKWARD))
def test_round_trip(labels, ending, tmp_path):
    path = tmp_path / f"labels.{ending}"
    labels.write(path)
    read = StochasticLabels.read(path)
    assert read == labels
    assert read.class_names == labels.class_names
    assert read.num_classes == labels.num_classes
    read.write(path)  # and once more, from what was read
    assert StochasticLabels.read(path) == labels


@pytest.mark.parametrize("ending", FORMATS)
def test_many_classes_with_long_names(ending, tmp_path):
    """The names together are longer than the csv module's usual limit for a field."""
    names = [f"class number {k} of ten thousand" for k in range(10_000)]
    labels = StochasticLabels.draw([5, 6], num_classes=10_000, size=3, seed=0, class_names=names)
    labels.write(tmp_path / f"a.{ending}")
    assert StochasticLabels.read(tmp_path / f"a.{ending}") == labels


@given(st.lists(st.text(), min_size=1).filter(lambda names: names != [""]))
def test_names_join_and_split(names):
    assert split_names(join_names(names)) == names


def test_the_file_is_readable_by_eye(tmp_path):
    labels = StochasticLabels.from_lists(
        [[1, 0], [2]], [0, NONE], 3, class_names=["cat", "dog", "a|b"], items=["x", "y"]
    )
    labels.write(tmp_path / "a.csv")
    rows = list(csv.reader((tmp_path / "a.csv").open(newline="")))
    assert rows == [
        ["item", "shortlist", "answer", "classes"],
        ["x", "dog|cat", "cat", r"cat|dog|a\|b"],
        ["y", r"a\|b", "", ""],
    ]
    labels.write(tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert lines[1] == {"item": "y", "shortlist": r"a\|b", "answer": ""}


def test_a_hundred_thousand_rows_are_read_back(tmp_path):
    labels = StochasticLabels.draw(np.arange(100_000) % 50, num_classes=50, size=4, seed=0)
    labels.write(tmp_path / "a.parquet")
    assert StochasticLabels.read(tmp_path / "a.parquet") == labels


# -- files made elsewhere ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_other_columns_are_left_alone(ending, tmp_path):
    rows = [
        {"who": "eve", "item": "x", "answer": "dog", "shortlist": "dog|cat", "seconds": "1.5"},
        {"who": "bob", "item": "x", "answer": "", "shortlist": "eel", "seconds": "2"},
    ]
    labels = StochasticLabels.read(write(tmp_path / f"a.{ending}", rows))
    assert labels.class_names == ("cat", "dog", "eel")
    assert labels.item_ids.tolist() == ["x", "x"]
    assert labels.answer.tolist() == [1, NONE]


@pytest.mark.parametrize("ending", FORMATS)
def test_classes_that_never_occur_have_to_be_said(ending, tmp_path):
    path = write(tmp_path / f"a.{ending}", [{"item": "x", "shortlist": "1|0", "answer": "1"}])
    assert StochasticLabels.read(path).num_classes == 2
    assert StochasticLabels.read(path, num_classes=7).num_classes == 7
    named = StochasticLabels.read(path, class_names=["cat", "dog", "eel"])
    assert named.class_names == ("cat", "dog", "eel")
    assert named.answer.tolist() == [1]


def test_names_in_another_order_are_looked_up(tmp_path):
    path = write(tmp_path / "a.csv", [{"item": "x", "shortlist": "dog|cat", "answer": "cat"}])
    assert StochasticLabels.read(path, class_names=["eel", "dog", "cat"]).answer.tolist() == [2]


@pytest.mark.parametrize("ending", FORMATS)
def test_names_that_look_like_numbers(ending, tmp_path):
    """Whether "2" is a name or an index depends on what the file says about its classes; it is not guessed."""
    path = tmp_path / f"a.{ending}"
    names = ["2", "1", "0"]
    by_name = StochasticLabels.from_lists([[0, 1]], [0], 3, class_names=names)
    by_name.write(path)
    assert StochasticLabels.read(path) == by_name
    StochasticLabels.from_lists([[0, 1]], [0], 3).write(path)
    assert StochasticLabels.read(path, class_names=names) == by_name
    write(path, [{"item": "0", "shortlist": "2|1", "answer": "2"}])  # says nothing, but these are known names
    assert StochasticLabels.read(path, class_names=names) == by_name


@pytest.mark.parametrize("ending", FORMATS)
def test_files_are_put_together_by_item(ending, tmp_path):
    """Two people were asked about the same two items: these are not four items."""
    for who in "ab":
        StochasticLabels.draw([0, 1], num_classes=3, size=2, seed=ord(who)).write(tmp_path / f"{who}.{ending}")
    both = StochasticLabels.concatenate([StochasticLabels.read(tmp_path / f"{who}.{ending}") for who in "ab"])
    assert both.item_ids.tolist() == ["0", "1", "0", "1"]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_sorted_anew_still_states_its_classes(ending, tmp_path):
    rows = [
        {"item": "a", "shortlist": "dog", "answer": "", "classes": ""},
        {"item": "b", "shortlist": "cat", "answer": "cat", "classes": "eel|dog|cat"},
    ]
    assert StochasticLabels.read(write(tmp_path / f"a.{ending}", rows)).class_names == ("eel", "dog", "cat")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_and_numbers_of_other_programs(ending, tmp_path):
    rows = [{"item": 7, "shortlist": ["a|b", "c"], "answer": "c"}, {"item": 8, "shortlist": ["d"], "answer": None}]
    labels = StochasticLabels.read(write(tmp_path / f"a.{ending}", rows))
    assert labels.class_names == ("a|b", "c", "d")
    assert labels.item_ids.tolist() == ["7", "8"]
    rows = [{"item": 7, "shortlist": [3, 0], "answer": 0}, {"item": 8, "shortlist": [1], "answer": None}]
    labels = StochasticLabels.read(write(tmp_path / f"a.{ending}", rows))
    assert labels.num_classes == 4
    assert labels.answer.tolist() == [0, NONE]


def test_spreadsheets_write_a_mark_and_other_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    for text in (
        "item,shortlist,answer\r\nx,a|b,a\r\n",
        "item,shortlist,answer\nx,a|b,a",
        'item,shortlist,answer\n"x","a|b","a"\n',
    ):
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert StochasticLabels.read(path).class_names == ("a", "b")


# -- typed classes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
@settings(LOOSE, max_examples=30)
@given(labels=any_labels(), data=st.data())
def test_a_typed_class_is_one_more_class_shown_and_answered(labels, ending, data, tmp_path):
    """A typed class is read like a list that also shows it, with unknown probability."""
    path = tmp_path / f"labels.{ending}"
    labels.write(path)
    K, names = labels.num_classes, labels.class_names or [str(k) for k in range(labels.num_classes)]
    may = labels.answer == NONE
    typed = [data.draw(st.sampled_from([NONE, *range(K)])) if free else NONE for free in may.tolist()]
    _add_column(path, [None if k == NONE else names[k] for k in typed])
    lists, chances, at = [], [], 0
    for row, k in enumerate(typed):
        shown = labels.shortlist(row).tolist()
        new = [k] if k != NONE and k not in shown else []
        lists.append(shown + new)
        known = [np.nan] * len(shown) if labels.inclusion is None else labels.inclusion[at : at + len(shown)].tolist()
        chances += known + [np.nan] * len(new)
        at += len(shown)
    answer = np.where(np.array(typed) == NONE, labels.answer, typed)
    wanted = StochasticLabels.from_lists(
        lists, answer, K, class_names=labels.class_names, items=labels.item_ids, inclusion=chances
    )
    assert StochasticLabels.read(path) == wanted


def _add_column(path: Path, values: list[str | None]) -> None:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        pq.write_table(table.append_column("typed", pa.array(values, pa.string())), path)
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
        lines = [json.dumps({**row, "typed": value}) for row, value in zip(rows, values, strict=True)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    else:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\r\n")
            writer.writerow([*header, "typed"])
            writer.writerows([*row, value or ""] for row, value in zip(rows, values, strict=True))


def test_what_was_picked_and_typed_must_agree(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,shortlist,answer,classes,typed\n1,a|b,a,a|b|c,c\n")
    with pytest.raises(InputError, match="row 2: 'a' was picked and 'c' typed"):
        StochasticLabels.read(path)
    path.write_text("item,shortlist,answer,classes,typed\n1,a|b,a,a|b|c,a\n2,a|b,,,d\n")
    with pytest.raises(InputError, match="row 3: class 'd' is out of range"):
        StochasticLabels.read(path)


# -- read once, asked more than once -----------------------------------------------------------------------------------

EXPORT = [
    {"item": "=a", "shortlist": "x|y", "answer": "x", "classes": "x|y|z", "typed": "", "policy": "known/1"},
    {"item": "b", "shortlist": "x|y", "answer": "", "classes": "", "typed": "", "policy": "uniform/1"},
    {"item": "c", "shortlist": "z", "answer": "z", "classes": "", "typed": "", "policy": "known/1"},
]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("typed", ["", "z"], ids=["columns", "rows"])  # a typed class is read row by row
def test_a_file_tells_which_classes_were_known(ending, typed, tmp_path):
    rows = [EXPORT[0], EXPORT[1] | {"typed": typed}, EXPORT[2]]
    path = write(tmp_path / f"a.{ending}", rows)
    if ending == "csv":
        path.write_text(path.read_text().replace("=a", "'=a"))  # as an export guards it
    assert LabelsFile(path).known == {"=a", "c"}
    without = [{name: value for name, value in row.items() if name != "policy"} for row in rows]
    assert LabelsFile(write(tmp_path / f"b.{ending}", without)).known == frozenset()
    numbers = [row | {"policy": 1} for row in rows]
    assert LabelsFile(write(tmp_path / f"c.{ending}", numbers)).known == frozenset(), "some other program's column"


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("typed", ["", "z"], ids=["columns", "rows"])
def test_a_file_is_asked_more_than_once(ending, typed, tmp_path):
    rows = [row | {"typed": typed if row["item"] == "b" else "", "probabilities": ""} for row in EXPORT]
    rows[1]["probabilities"] = "0.5|0.5" if typed else ""
    path = write(tmp_path / f"a.{ending}", rows)
    file, names = LabelsFile(path), ("z", "y", "x", "w")
    assert file.states_classes
    path.unlink()
    first = StochasticLabels.read(file, class_names=names)
    assert StochasticLabels.read(file, class_names=names) == first
    own = StochasticLabels.read(file)
    assert (own.class_names, first.class_names) == (("x", "y", "z"), names)
    assert [own.class_names[k] for k in own.classes] == [names[k] for k in first.classes]
    unstated = [row | {"classes": ""} for row in rows]
    assert not LabelsFile(write(tmp_path / f"b.{ending}", unstated)).states_classes

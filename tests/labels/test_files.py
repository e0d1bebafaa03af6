"""Files of labels: what is written is what is read, and what is broken is refused by name."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shortlist.errors import InputError
from shortlist.internal.names import join_names, split_names
from shortlist.labels import NONE, StochasticLabels

FORMATS = ["csv", "jsonl", "parquet"]
AWKWARD = ["a|b", "c\\", '"quoted"', "two\nlines", "\r", " ", "é 漢字 🙂", "\u2028", "0", "-1", "\ufeff", "\x00", "1|"]
LOOSE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@st.composite
def any_labels(draw: st.DrawFn) -> StochasticLabels:
    K = draw(st.integers(2, 6))
    name = st.text(min_size=1, max_size=8) | st.sampled_from(AWKWARD) | st.integers(0, 9).map(str)
    names = draw(st.none() | st.lists(name, min_size=K, max_size=K, unique=True))
    lists, answers = [], []
    for _ in range(draw(st.integers(1, 8))):
        shown = draw(st.permutations(range(K)))[: draw(st.integers(1, K))]
        lists.append(shown)
        answers.append(draw(st.sampled_from(shown if len(shown) == K else [*shown, NONE])))
    items = draw(st.none() | st.lists(st.text(max_size=8), min_size=len(lists), max_size=len(lists)))
    chance = st.floats(0, 1, exclude_min=True) | st.just(np.nan)
    shown = sum(map(len, lists))
    inclusion = draw(st.none() | st.lists(chance, min_size=shown, max_size=shown))
    return StochasticLabels.from_lists(lists, answers, K, class_names=names, items=items, inclusion=inclusion)


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


# -- files made elsewhere ----------------------------------------------------------------------------------------------


def write(path: Path, rows: list[dict], columns=None) -> Path:
    """Rows as another program would write them."""
    columns = columns or list(rows[0])
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({name: row.get(name) for name in columns}) + "\n" for row in rows))
    else:
        pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in columns}), path)
    return path


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
    """Whether "2" is a name or an index is what the file says of its classes, not a guess."""
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
    """Two people on the same two items: not four items, although the numbers are those of the rows."""
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


# -- what is refused, by file, row and reason --------------------------------------------------------------------------

GOOD = {"item": "x", "shortlist": "a|b", "answer": "a", "classes": "a|b|c"}
BAD = {
    "an answer not on its shortlist": ({"answer": "c"}, "the answer 'c' is not on the shortlist"),
    "an unknown answer": ({"answer": "q"}, "class 'q' is out of range, expected one of the 3 classes"),
    "an unknown class": ({"shortlist": "a|q"}, "class 'q' is out of range, expected one of the 3 classes"),
    "another case": ({"shortlist": "a|B "}, "expected one of the 3 classes: did you mean 'b'?"),
    "a class twice": ({"shortlist": "a|b|a"}, "a class is on the shortlist twice"),
    "an empty list": ({"shortlist": "", "answer": ""}, "an empty shortlist, expected at least one class"),
    "an empty name": ({"shortlist": "a||b"}, "an empty class name on the shortlist 'a||b'"),
    "None with all shown": ({"shortlist": "a|b|c", "answer": ""}, "None, although all 3 classes were shown"),
    "a lone backslash": ({"shortlist": "a|b\\"}, "ends in a lone backslash"),
}


def refusal(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        StochasticLabels.read(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def row(ending: str, number: int) -> str:
    return f"row {number + (ending == 'csv')}: "  # a CSV file has a header


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named(case, ending, tmp_path):
    change, reason = BAD[case]
    path = write(tmp_path / f"a.{ending}", [GOOD, GOOD, GOOD | change, GOOD])
    message = refusal(path)
    assert message.startswith(row(ending, 3))
    assert reason in message


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("quoted", ["", '"'], ids=["columns", "rows"])  # a quote in a CSV file is read row by row
@pytest.mark.parametrize("stated", ["a|b|c", ""], ids=["stated", "found"])
@pytest.mark.parametrize("word", ["None", "none", "NONE"])
def test_none_spelled_out_is_to_be_left_empty(word, stated, quoted, ending, tmp_path):
    rows = [GOOD | {"item": f"x{quoted}", "classes": stated}, GOOD | {"classes": ""}]
    bad = [*rows, rows[1] | {"answer": word}]
    message = refusal(write(tmp_path / f"a.{ending}", bad))
    assert message.startswith(f"{row(ending, 3)}no class is named {word!r}")
    assert message.endswith("leave it empty for None of those shown")
    named = [*rows, rows[1] | {"answer": word, "shortlist": f"a|{word}"}]
    named[0] |= {"classes": stated and f"{stated}|{word}"}
    labels = StochasticLabels.read(write(tmp_path / f"named.{ending}", named))
    assert labels.class_names[labels.answer[2]] == word


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("stated", ["3", ""])
def test_none_spelled_out_among_indices_is_to_be_left_empty(stated, ending, tmp_path):
    rows = [{"item": "x", "shortlist": "0|1", "answer": "1", "classes": stated}]
    rows.append({"item": "y", "shortlist": "0|2", "answer": "None", "classes": ""})
    message = refusal(write(tmp_path / f"a.{ending}", rows))
    assert message.startswith(f"{row(ending, 2)}no class is named 'None'")


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("token", ["3", "99999999999999999999", "-1", "q", "1.0", "٣", "1_0"])
def test_indices_out_of_range_are_named(token, ending, tmp_path):
    rows = [{"item": "x", "shortlist": "0|1", "answer": "1", "classes": "3"}]
    rows.append({"item": "y", "shortlist": f"0|{token}", "answer": "0", "classes": ""})
    message = refusal(write(tmp_path / f"a.{ending}", rows))
    assert message == f"{row(ending, 2)}class {token!r} is out of range, expected 0..2"


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("missing", ["item", "shortlist", "answer"])
def test_a_missing_column_is_named(missing, ending, tmp_path):
    columns = [name for name in GOOD if name != missing]
    assert f"no column {missing!r}, expected the columns item, shortlist, answer" in refusal(
        write(tmp_path / f"a.{ending}", [{name: GOOD[name] for name in columns}])
    )


@pytest.mark.parametrize("ending", FORMATS)
def test_an_empty_file_is_refused(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    for content in (b"", b"\n \n"):
        path.write_bytes(content)
        assert "the file is empty" in refusal(path)
    with pytest.raises(InputError, match="no labels to write"):
        StochasticLabels.from_lists([], [], 3).write(path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_without_rows_are_refused(ending, tmp_path):
    assert "columns but no rows" in refusal(
        write(tmp_path / f"a.{ending}", [], columns=["item", "shortlist", "answer"])
    )


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_broken_encoding_is_named(ending, tmp_path):
    path = write(tmp_path / f"a.{ending}", [GOOD, GOOD | {"item": "here"}, GOOD])
    path.write_bytes(path.read_bytes().replace(b"here", b"h\xffre"))
    assert refusal(path).startswith(row(ending, 2) + "broken encoding, not UTF-8 at byte")


def test_broken_encoding_in_parquet_is_named(tmp_path):
    broken = pa.array([b"ok", b"h\xffre"], pa.binary()).view(pa.string())
    columns = {"item": broken, "shortlist": ["a|b", "a|b"], "answer": ["a", "b"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert refusal(tmp_path / "a.parquet") == "row 2: broken encoding, not UTF-8"


def test_half_a_surrogate_pair_is_broken_encoding(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"item": "\\ud800", "shortlist": "a|b", "answer": "a"}\n')
    assert refusal(path) == "row 1: broken encoding, item is not UTF-8"


def test_a_row_cut_short_is_not_a_none(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item,shortlist,answer,classes\nx,a|b,a,a|b|c\ny,a|b")
    assert refusal(path) == "row 3: ends before the column 'answer'"
    path.write_text("item,shortlist,answer\nx,a|b,a,more,fields\n")
    assert refusal(path) == "row 2: more fields than columns"
    path.write_text('item,shortlist,answer\nx,a|b,a\ny,"a|b,a\n')
    assert refusal(path).startswith("row 3: not CSV: ")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "row 2: not JSON"),
        ("[1]", "row 2: expected an object"),
        ("9" * 5000, "row 2: not JSON"),
        ("[" * 100_000, "row 2: not JSON"),
        ('{"item": "x", "shortlist": "a|b", "answer": 1.5}', "row 2: answer has 1.5, expected text"),
        ('{"item": "x", "shortlist": ["a", null], "answer": "a"}', "row 2: shortlist has None, expected text"),
        ('{"item": true, "shortlist": "a|b", "answer": "a"}', "row 2: item has True, expected text"),
        ('{"item": "x", "shortlist": {"a": 1}, "answer": "a"}', "row 2: shortlist has {'a': 1}, expected text"),
    ],
)
def test_bad_json_lines_are_named(line, reason, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + line + "\n")
    assert refusal(path).startswith(reason)


def test_bad_parquet_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 not really PAR1")
    assert refusal(path).startswith("not a Parquet file: ")
    pq.write_table(pa.table([["x"], ["y"], ["a"], ["a"]], names=["item", "item", "shortlist", "answer"]), path)
    assert "item" in refusal(path)
    pq.write_table(pa.table({"item": [0.5], "shortlist": ["a|b"], "answer": ["a"]}), path)
    assert refusal(path) == "row 1: item has 0.5, expected text"


@pytest.mark.parametrize("classes", ["a|a", "a||b", "a", "a|b\\"])
def test_a_bad_list_of_classes_is_named(classes, tmp_path):
    assert refusal(write(tmp_path / "a.csv", [GOOD | {"classes": classes}])).startswith("row 2: ")


def test_a_number_of_classes_beyond_reason_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", [{"item": "x", "shortlist": "0|123456789012", "answer": "0"}])
    assert "out of range" in refusal(path)


def test_names_and_a_number_that_disagree(tmp_path):
    path = write(tmp_path / "a.csv", [{"item": "x", "shortlist": "a|b", "answer": "a"}])
    assert "2 class names occur, expected 5" in refusal(path, num_classes=5)
    assert "class 'b' is out of range" in refusal(path, class_names=["a", "c"])
    assert "occurs twice" in refusal(path, class_names=["a", "b", "a"])


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_file_that_a_spreadsheet_saved_with_another_separator(tmp_path, mark):
    path = tmp_path / "a.csv"
    path.write_text(f"item{mark}shortlist{mark}answer\nx{mark}a|b, c{mark}a\ny{mark}a{mark}\n")
    labels = StochasticLabels.read(path)
    assert labels.class_names == ("a", "b, c")
    assert labels.answer.tolist() == [0, NONE]


def test_paths_that_cannot_be(tmp_path):
    labels = StochasticLabels.draw([0], num_classes=2, size=1, seed=0)
    assert "cannot be read: No such file" in refusal(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "cannot be read: Is a directory" in refusal(tmp_path / "folder.csv")
    assert "embedded null byte" in refusal("a\0.csv")
    for path in (tmp_path / "a.txt", tmp_path / "a"):
        assert "expected .csv, .jsonl or .parquet" in refusal(path)
        with pytest.raises(InputError, match=r"expected \.csv, \.jsonl or \.parquet"):
            labels.write(path)
    with pytest.raises(InputError, match="cannot be written: No such file"):
        labels.write(tmp_path / "no" / "a.csv")
    with pytest.raises(InputError, match="cannot be written"):
        labels.write(tmp_path / "folder.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


@pytest.mark.parametrize("ending", FORMATS)
def test_a_failing_write_leaves_the_old_file(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    good = StochasticLabels.draw([0, 1], num_classes=2, size=1, seed=0)
    good.write(path)
    bad = StochasticLabels.draw([0, 1], num_classes=2, size=1, seed=0, items=["fine", "\ud800"])
    with pytest.raises(InputError, match="cannot be written as UTF-8"):
        bad.write(path)
    assert StochasticLabels.read(path) == good
    assert list(tmp_path.iterdir()) == [path]


# -- broken bytes ------------------------------------------------------------------------------------------------------


def read_or_refuse(path: Path) -> None:
    try:
        labels = StochasticLabels.read(path)
    except InputError as error:
        message = str(error)
    else:  # if it was read, it makes sense
        StochasticLabels(labels.mask(), labels.answer)
        return
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


@pytest.mark.parametrize("ending", FORMATS)
@settings(LOOSE, max_examples=60)
@given(
    labels=any_labels(),
    flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), max_size=5),
    length=st.none() | st.integers(0, 10**6),
)
def test_corrupted_files_raise_nothing_but_the_documented_error(labels, flips, length, ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    labels.write(path)
    content = bytearray(path.read_bytes())
    for position, change in flips:
        content[position % len(content)] ^= change
    path.write_bytes(bytes(content if length is None else content[: length % len(content)]))
    read_or_refuse(path)


@pytest.mark.parametrize("ending", FORMATS)
@settings(LOOSE, max_examples=60)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_arbitrary_bytes_raise_nothing_but_the_documented_error(content, ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content)
    read_or_refuse(path)


@pytest.mark.parametrize("stated", ["0", "1"])
def test_too_few_stated_classes_are_refused(stated, tmp_path):
    path = write(tmp_path / "a.csv", [{"item": "x", "shortlist": "00", "answer": "", "classes": stated}])
    with pytest.raises(InputError, match=f"row 2: {stated} classes are stated, expected at least 2"):
        StochasticLabels.read(path)
    path = write(tmp_path / "b.csv", [{"item": "x", "shortlist": "00", "answer": "", "classes": "2"}])
    with pytest.raises(InputError, match=f"num_classes: expected at least 2, got {stated}"):
        StochasticLabels.read(path, num_classes=int(stated))


token = st.text('0123|\\ab"\n, ', max_size=6)


@settings(LOOSE, max_examples=150)
@given(
    rows=st.lists(st.fixed_dictionaries(dict.fromkeys(("item", "shortlist", "answer", "classes"), token)), min_size=1),
    ending=st.sampled_from(FORMATS),
)
def test_arbitrary_fields_raise_nothing_but_the_documented_error(rows, ending, tmp_path):
    read_or_refuse(write(tmp_path / f"a.{ending}", rows))


json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | token,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(LOOSE, max_examples=150)
@given(st.lists(st.fixed_dictionaries(dict.fromkeys(("item", "shortlist", "answer"), json_value)), min_size=1))
def test_arbitrary_json_raises_nothing_but_the_documented_error(tmp_path, rows):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    read_or_refuse(path)


def test_a_hundred_thousand_rows_are_read_back(tmp_path):
    labels = StochasticLabels.draw(np.arange(100_000) % 50, num_classes=50, size=4, seed=0)
    labels.write(tmp_path / "a.parquet")
    assert StochasticLabels.read(tmp_path / "a.parquet") == labels


# -- typed classes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
@settings(LOOSE, max_examples=30)
@given(labels=any_labels(), data=st.data())
def test_a_typed_class_is_one_more_class_shown_and_answered(labels, ending, data, tmp_path):
    """Whatever stands in the column `typed`: its row is that of the list with the class on it, its chance unknown."""
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

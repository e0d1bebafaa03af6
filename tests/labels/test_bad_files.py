"""Broken files of labels are refused in one line that names what is wrong."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.errors import InputError
from shortlist.labels import NONE, StochasticLabels

from .file_cases import FORMATS, LOOSE, any_labels, write

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


@pytest.mark.parametrize("stated", ["0", "1"])
def test_too_few_stated_classes_are_refused(stated, tmp_path):
    path = write(tmp_path / "a.csv", [{"item": "x", "shortlist": "00", "answer": "", "classes": stated}])
    with pytest.raises(InputError, match=f"row 2: {stated} classes are stated, expected at least 2"):
        StochasticLabels.read(path)
    path = write(tmp_path / "b.csv", [{"item": "x", "shortlist": "00", "answer": "", "classes": "2"}])
    with pytest.raises(InputError, match=f"num_classes: expected at least 2, got {stated}"):
        StochasticLabels.read(path, num_classes=int(stated))


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

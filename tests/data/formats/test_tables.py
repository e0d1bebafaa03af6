"""The user's own data: tables."""

import csv
import datetime
import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import data
from shortlist.data import UNLABELLED
from shortlist.data.formats.classes import class_order
from shortlist.data.formats.table import read_table
from shortlist.errors import InputError

from .pictures import picture

ROWS = [
    {"text": 'a "quoted", text\nof two lines', "label": "b", "item": "x1"},
    {"text": "écrit ça", "label": "a", "item": "x2"},
    {"text": "", "label": "b", "item": "x3"},
]


def write(path, rows):
    frame = pd.DataFrame(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_table_of_texts(tmp_path, suffix):
    path = write(tmp_path / f"t{suffix}", ROWS)
    test = write(tmp_path / f"u{suffix}", [{"text": "z", "label": "c"}])
    dataset = data.load(str(path), test=str(test))
    assert dataset.kind == "text"
    assert dataset.name == "t"
    assert dataset.train.x == [row["text"] for row in ROWS]
    assert dataset.class_names == ("a", "b", "c")
    assert dataset.train.y.tolist() == [1, 0, 1]
    assert dataset.train.items.tolist() == ["x1", "x2", "x3"]
    assert dataset.test.y.tolist() == [2]
    assert dataset.test.items.tolist() == ["0"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_other_columns_numbers_and_missing_labels(tmp_path, suffix):
    rows = [
        {"q": "one", "intent": 10, "id": 7},
        {"q": "two", "intent": None, "id": 8},
        {"q": "three", "intent": 9, "id": 9},
    ]
    path = write(tmp_path / f"t{suffix}", rows)
    dataset = data.load(path, text_column="q", label_column="intent", item_column="id")
    # pandas writes whole numbers beside missing ones as 10.0 to a CSV
    assert dataset.class_names == ("9", "10")
    assert dataset.train.y.tolist() == [1, UNLABELLED, 0]
    assert dataset.train.items.tolist() == ["7", "8", "9"]


def test_names_that_a_database_holds_as_dates_and_decimals(tmp_path):
    rows = [
        {"text": "one", "label": datetime.date(2024, 3, 31), "item": Decimal(10**18)},
        {"text": "two", "label": datetime.date(2024, 1, 31), "item": Decimal(7)},
    ]
    dataset = data.load(write(tmp_path / "t.parquet", rows))
    assert dataset.class_names == ("2024-01-31", "2024-03-31")
    assert dataset.train.items.tolist() == ["1000000000000000000", "7"]
    path = write(tmp_path / "t.jsonl", [{"text": "one", "item": 1}, {"text": "two", "item": [1]}])
    with pytest.raises(InputError, match=r"row 2 has the item \[1\], expected a name or a number"):
        data.load(path)


def test_no_label_column_at_all(tmp_path):
    path = write(tmp_path / "t.csv", [{"text": "one"}, {"text": "two"}])
    dataset = data.load(path)
    assert dataset.train.y is None
    assert dataset.num_classes == 0
    assert data.load(path, class_names=["p", "q"]).num_classes == 2


def test_a_table_of_images(tmp_path):
    for name in "ab":
        picture(tmp_path / "pics" / f"{name}.png", ord(name), mode="L")
    path = write(tmp_path / "t.csv", [{"image": "pics/a.png", "label": "x"}, {"image": "pics/b.png", "label": "y"}])
    dataset = data.load(path, test=path)
    assert dataset.kind == "image"
    assert dataset.train.x[:, 0, 0, 0].tolist() == [97, 98]
    assert dataset.test.x.shape == (2, 1, 4, 6)
    path = write(tmp_path / "u.csv", [{"file": "pics/a.png", "text": "caption", "label": "x"}])
    assert data.load(path, image_column="file", image_size=3).train.x.shape == (1, 1, 3, 3)
    path = write(tmp_path / "v.csv", [{"image": "pics/c.png", "label": "x"}])
    with pytest.raises(InputError, match=r"no such image: .*c.png"):
        data.load(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is empty, expected a line of column names"),
        ("t.csv", b"text,label\n", "holds no items"),
        ("t.csv", b"text,label\na,b\nc\n", "line 3: 1 values, the first line names 2"),
        ("t.csv", b'text,label\n"a,b\n', "line 2: unexpected end of data"),
        ("t.csv", b"text,text\na,b\n", "names a column twice"),
        ("t.csv", b"sentence,label\na,b\n", r"no column 'text' or 'image' \(its columns: sentence, label\)"),
        ("t.csv", b"text,image\na,b\n", "both a text and an image column"),
        ("t.csv", b"text,label\n\xff,b\n", "is not UTF-8 text"),
        ("t.csv", b"text,item\na,1\nb,\n", "row 3 has no item name"),
        ("t.jsonl", b"", "holds no items"),
        ("t.jsonl", b'{"text": "a"}\n{"text": \n', "line 2 is not JSON"),
        ("t.jsonl", b"[1]\n", "line 1 must be a JSON object, got list"),
        ("t.jsonl", b'{"text": "a"}\n{"text": ["b"]}\n', r"row 2 has no text, got \['b'\]"),
        ("t.jsonl", b'{"text": "a", "label": ["b"]}\n', r"row 1 has the label \['b'\]"),
        ("t.jsonl", b'{"text": "a"}\n' + b"[" * 100_000, "line 2 cannot be read: maximum recursion depth"),
        ("t.jsonl", b'{"text": ' + b"1" * 5000 + b"}", "line 1 cannot be read: Exceeds the limit"),
        ("t.json", b"[" * 100_000, "cannot be read: maximum recursion depth"),
        ("t.json", b'[{"text": ' + b"1" * 5000 + b"}]", "cannot be read: Exceeds the limit"),
        ("t.json", b'[{"text": "\xff"}]', "is not UTF-8 text"),
        ("t.parquet", b"PAR1 no", "is not a Parquet file, or is damaged"),
        ("t.npz", b"no", "cannot be read as an .npz archive"),
        ("t.docx", b"no", "is neither a folder nor one of .csv"),
    ],
)
def test_bad_files_are_one_line_with_their_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        data.load(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_columns_and_partners(tmp_path):
    path = write(tmp_path / "t.csv", ROWS)
    for columns in ({"text_column": "q"}, {"label_column": "q"}, {"item_column": "q"}, {"image_column": "q"}):
        with pytest.raises(InputError, match=r"has no column 'q' \(its columns: text, label, item\)"):
            data.load(path, **columns)
    with pytest.raises(InputError, match="not both"):
        data.load(path, text_column="text", image_column="text")
    with pytest.raises(InputError, match="no such file or folder"):
        data.load(path, test=tmp_path / "none.csv")
    with pytest.raises(InputError, match="as the training data is"):
        data.load(path, test=tmp_path)
    picture(tmp_path / "f" / "a" / "1.png")
    with pytest.raises(InputError, match="is not a folder"):
        data.load(tmp_path / "f", test=path)
    other = write(tmp_path / "u.csv", [{"image": "f/a/1.png", "label": "a"}])
    with pytest.raises(InputError, match="they must agree"):
        data.load(path, test=other)
    np.savez(tmp_path / "n.npz", x=np.zeros((2, 3)))
    for without in ("f", "n.npz"):
        with pytest.raises(InputError, match=r"text_column is 'q', and .* has no columns"):
            data.load(tmp_path / without, text_column="q")


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(
            # one newline convention, as a file opened as text may change the others; no lone surrogates in UTF-8
            st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=20),
            st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=6,
    ),
    suffix=st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet"]),
)
def test_any_text_comes_back(tmp_path_factory, rows, suffix):
    import csv

    path = tmp_path_factory.mktemp("any") / f"t{suffix}"
    if suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",").writerows([("text", "label"), *rows])
    else:
        write(path, [{"text": text, "label": label} for text, label in rows])
    dataset = data.load(path)
    assert dataset.train.x == [text for text, _ in rows]
    assert [dataset.class_names[c] for c in dataset.train.y] == [label for _, label in rows]


def test_long_texts_also_while_another_thread_reads(tmp_path):
    long = "x" * 200_000
    files = [write(tmp_path / f"{i}.csv", [{"text": long}] * (1 + 40 * i)) for i in range(2)]
    for _ in range(5):
        csv.field_size_limit(131_072)  # as at the start of a process
        with ThreadPoolExecutor(2) as pool:
            short, whole = pool.map(read_table, files)
        assert [len(table["text"]) for table in (short, whole)] == [1, 41]


def test_class_order():
    assert class_order(["2", "10", None, "-1"]) == ("-1", "2", "10")
    assert class_order(["b", "2", "10"]) == ("10", "2", "b")


def test_what_may_not_be_read_is_one_line(tmp_path, monkeypatch):
    picture(tmp_path / "cat" / "1.png")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)  # tests may run as root, whom no file mode stops
    with pytest.raises(InputError, match=r"cannot be read: Permission denied"):
        data.load(tmp_path)


def test_a_link_to_nothing(tmp_path):
    (tmp_path / "t.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(InputError, match=r"t.csv cannot be read: No such file"):
        data.load(tmp_path / "t.csv")

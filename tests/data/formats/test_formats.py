"""The user's own data: folders of images, tables, .npz files."""

import csv
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from shortlist import data
from shortlist.data import UNLABELLED
from shortlist.data.formats.classes import class_order
from shortlist.data.formats.images import read_images
from shortlist.data.formats.table import read_table
from shortlist.errors import InputError


def picture(path, value=0, size=(6, 4), mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = value if mode in ("L", "1", "I;16", "P") else (value,) * len(mode)
    Image.new(mode, size, colour).save(path, **options)
    return path


# --- folders ---------------------------------------------------------------------------------------------------------


def test_folder_of_class_folders(tmp_path):
    picture(tmp_path / "dog" / "b.png", 1)
    picture(tmp_path / "cat" / "deep" / "a.PNG", 2)
    picture(tmp_path / "cat" / "c.jpg", 3)
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    picture(tmp_path / ".hidden" / "x.png", 9)
    dataset = data.load(tmp_path)
    assert dataset.kind == "image"
    assert dataset.name == tmp_path.name
    assert dataset.class_names == ("cat", "dog")
    assert dataset.train.items.tolist() == ["cat/c.jpg", "cat/deep/a.PNG", "dog/b.png"]
    assert dataset.train.y.tolist() == [0, 0, 1]
    assert dataset.train.x.shape == (3, 3, 4, 6)
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.x[1:, 0, 0, 0].tolist() == [2, 1]
    assert dataset.test is None
    assert not dataset.flips


def test_folder_with_train_and_test(tmp_path):
    for place in ("train/a/1", "train/b/2", "test/b/3"):
        picture(tmp_path / f"{place}.png", int(place[-1]), mode="L")
    for dataset in (data.load(tmp_path), data.load(tmp_path / "train", test=tmp_path / "test")):
        assert dataset.train.y.tolist() == [0, 1]
        assert dataset.test.y.tolist() == [1]
        assert dataset.test.items.tolist() == ["b/3.png"]
        assert dataset.test.x[0, 0, 0, 0] == 3
        assert dataset.train.x.shape == (2, 1, 4, 6)
    with pytest.raises(InputError, match="has a test folder already"):
        data.load(tmp_path, test=tmp_path / "test")


def test_a_class_may_be_called_train(tmp_path):
    picture(tmp_path / "train" / "1.png")
    picture(tmp_path / "bus" / "2.png")
    assert data.load(tmp_path).class_names == ("bus", "train")


def test_images_in_no_class_folder_are_unlabelled(tmp_path):
    picture(tmp_path / "1.png")
    dataset = data.load(tmp_path)
    assert dataset.train.y is None
    assert dataset.class_names == ()
    picture(tmp_path / "cat" / "2.png")
    dataset = data.load(tmp_path, class_names=["dog", "cat"])
    assert dataset.train.y.tolist() == [UNLABELLED, 1]
    assert dataset.class_names == ("dog", "cat")


def test_folder_errors(tmp_path):
    (tmp_path / "cat").mkdir()
    with pytest.raises(InputError, match="holds no images"):
        data.load(tmp_path)
    picture(tmp_path / "cat" / "1.png")
    picture(tmp_path / "cat" / "2.png", size=(3, 3))
    with pytest.raises(InputError, match=r"2.png is 3x3, .*1.png is 4x6: state an image_size .--image-size"):
        data.load(tmp_path)
    assert data.load(tmp_path, image_size=5).train.x.shape == (2, 3, 5, 5)
    assert data.load(tmp_path, image_size=(5, 7)).train.x.shape == (2, 3, 5, 7)
    with pytest.raises(InputError, match="image_size must be"):
        data.load(tmp_path, image_size=0)
    with pytest.raises(InputError, match=r"row 1 has the class 'cat', which is not among the class names"):
        data.load(tmp_path, image_size=5, class_names=["dog", "fox"])
    noise = np.random.default_rng(0).integers(0, 256, (50, 50, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "cat" / "3.png")
    (tmp_path / "cat" / "3.png").write_bytes((tmp_path / "cat" / "3.png").read_bytes()[:-3000])
    with pytest.raises(InputError, match=r"3.png cannot be read as an image"):
        data.load(tmp_path, image_size=5)
    (tmp_path / "cat" / "3.png").write_text("nothing")
    with pytest.raises(InputError, match=r"3.png is not an image, or is damaged"):
        data.load(tmp_path, image_size=5)


# --- images ----------------------------------------------------------------------------------------------------------


def test_grey_stays_one_channel_until_a_colour_image_comes(tmp_path):
    grey = picture(tmp_path / "g.png", 7, mode="L")
    deep = tmp_path / "d.png"
    Image.fromarray(np.full((4, 6), 300 * 100, np.uint16)).save(deep)
    colour = picture(tmp_path / "c.png", 9)
    x = read_images([grey, deep])
    assert x.shape == (2, 1, 4, 6)
    assert x[:, 0, 0, 0].tolist() == [7, 30_000 >> 8]
    x = read_images([grey, colour])
    assert x.shape == (2, 3, 4, 6)
    assert (x[0] == 7).all()
    assert (x[1] == 9).all()
    assert (read_images([grey, colour], channels=1)[:, 0, 0, 0] == [7, 9]).all()
    assert read_images([grey], channels=3).shape == (1, 3, 4, 6)


def test_channels_keep_their_order(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    np.testing.assert_array_equal(read_images([tmp_path / "x.png"])[0], pixels.transpose(2, 0, 1))


def test_transparency_is_white_and_photographs_are_turned(tmp_path):
    Image.new("RGBA", (6, 4), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert (read_images([tmp_path / "clear.png"]) == 255).all()
    exif = Image.Exif()
    exif[0x0112] = 6  # held upright
    picture(tmp_path / "turned.jpg", exif=exif)
    assert read_images([tmp_path / "turned.jpg"]).shape == (1, 3, 6, 4)


# --- tables ----------------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (np.array([[0.0, 0.5, 1.0, np.nan]], np.float32), [0, 127, 255, 0]),  # shares of white
        (np.array([[-3.0, 99.9]], np.float32), [0, 99]),
        (np.array([[0, 256, 65535]], np.uint16), [0, 1, 255]),
        (np.array([[0, 7, 255]], np.int32), [0, 7, 255]),
        (np.array([[0, 512, 70_000]], np.int32), [0, 2, 255]),  # more than white is white, not black again
    ],
)
def test_grey_values_beyond_eight_bits(tmp_path, values, read):
    (tmp_path / "a").mkdir()
    Image.fromarray(values).save(tmp_path / "a" / "0.tif")
    assert data.load(tmp_path).train.x.tolist() == [[[read]]]


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
        ("t.csv", b"text,item\na,1\nb,\n", "row 2 has no item name"),
        ("t.jsonl", b"", "holds no items"),
        ("t.jsonl", b'{"text": "a"}\n{"text": \n', "line 2 is not JSON"),
        ("t.jsonl", b"[1]\n", "line 1 must be a JSON object, got list"),
        ("t.jsonl", b'{"text": "a"}\n{"text": ["b"]}\n', r"row 2 has no text, got \['b'\]"),
        ("t.jsonl", b'{"text": "a", "label": ["b"]}\n', r"row 1 has the label \['b'\]"),
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


# --- npz -------------------------------------------------------------------------------------------------------------


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_npz_of_images(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (5, 3, 4, 6), np.uint8)
    y = np.array([0, 1, 2, -1, 1])
    path = npz(
        tmp_path / "a.npz", x=x, y=y, x_test=x[:2], y_test=[2, 0], class_names=["p", "q", "r"], items=list("vwxyz")
    )
    dataset = data.load(path)
    np.testing.assert_array_equal(dataset.train.x, x)
    assert dataset.train.y.tolist() == [0, 1, 2, UNLABELLED, 1]
    assert dataset.test.y.tolist() == [2, 0]
    assert dataset.class_names == ("p", "q", "r")
    assert dataset.train.items.tolist() == list("vwxyz")
    last = data.load(npz(tmp_path / "b.npz", x=x.transpose(0, 2, 3, 1), y=y))
    np.testing.assert_array_equal(last.train.x, x)
    assert data.load(npz(tmp_path / "c.npz", x=x[:, 0], y=y)).in_shape == (1, 4, 6)


def test_npz_of_features_and_texts(tmp_path):
    dataset = data.load(npz(tmp_path / "a.npz", x=np.eye(3), y=np.array(["b", "", "a"])))
    assert dataset.kind == "features"
    assert dataset.train.x.dtype == np.float32
    assert dataset.class_names == ("a", "b")
    assert dataset.train.y.tolist() == [1, UNLABELLED, 0]
    unlabelled = data.load(npz(tmp_path / "b.npz", x=np.eye(3)))
    assert unlabelled.train.y is None
    held = npz(tmp_path / "c.npz", x=np.ones((2, 3)), y=[3, 0])
    dataset = data.load(npz(tmp_path / "d.npz", x=np.eye(3), y=[0.0, 1.0, 1.0]), test=held)
    assert dataset.class_names == ("0", "1", "2", "3")
    assert dataset.test.y.tolist() == [3, 0]
    texts = data.load(npz(tmp_path / "e.npz", x=np.array(["one", "two"]), y=[1, 0]))
    assert texts.kind == "text"
    assert texts.train.x == ["one", "two"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.eye(2)}, r"has no array x \(it holds: z\)"),
        ({"x": np.eye(2), "y": [0]}, r"y has shape \(1,\), expected \(2,\)"),
        ({"x": np.eye(2), "items": ["a"]}, r"items has shape \(1,\)"),
        ({"x": np.array([[1, np.nan]]), "y": [0]}, "x holds nan at row 0, column 1"),
        ({"x": np.array([[1, 1e300]]), "y": [0]}, "x holds inf at row 0, column 1"),
        ({"x": np.zeros((2, 3, 4, 5)), "y": [0, 1]}, r"shape \(2, 3, 4, 5\) and type float64, expected uint8 images"),
        ({"x": np.eye(2), "y": [0, 5], "class_names": ["a", "b"]}, "y is 5 at row 1, expected 0 to 1"),
        ({"x": np.eye(2), "y": [0, -2]}, "y is -2 at row 1"),
        ({"x": np.eye(2), "y": [0, 0.5]}, "whole numbers or class names"),
        ({"x": np.eye(2), "y": [0, np.nan]}, "whole numbers or class names"),
        ({"x": np.eye(2), "y": ["a", "b"], "class_names": ["a", "c"]}, "'b', which is not among the class names"),
        ({"x": np.eye(2), "y": [0, 1], "class_names": ["a", "a"]}, "named twice"),
        ({"x": np.eye(2), "y": [0, 1], "x_test": np.eye(3)}, r"x_test is features \(3,\), x is features \(2,\)"),
        ({"x": np.array([{}, []], object)}, "cannot be read as an .npz archive of plain arrays"),
        ({"x": np.zeros((0, 3))}, "holds no items"),
    ],
)
def test_npz_errors(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message) as caught:
        data.load(npz(tmp_path / "a.npz", **arrays))
    assert "\n" not in str(caught.value)


def test_npz_with_two_tests(tmp_path):
    path = npz(tmp_path / "a.npz", x=np.eye(2), x_test=np.eye(2))
    with pytest.raises(InputError, match="has x_test already"):
        data.load(path, test=path)


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

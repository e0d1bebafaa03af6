import io
import json
import struct
import time
import wave

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sqlalchemy import func, select

from shortlist.annotate.db.schema import Item, Slot
from shortlist.annotate.project.additions import Additions, add_to_project
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.media import audio_type, clean_media
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source, find_sources, read_classes, read_gold
from shortlist.annotate.setup import init_project
from shortlist.data import load
from shortlist.errors import InputError

from .test_sounds import FLAC, MP3, OGG


def counted(project, table) -> int:
    with project.store.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def classes_file(tmp_path, names=("cat", "dog", "emu")):
    path = tmp_path / "classes.txt"
    path.write_text("\n".join(names) + "\n\n", encoding="utf-8")
    return path


def test_a_folder_of_images_of_every_kind(make_project, tmp_path):
    folder = tmp_path / "images"
    (folder / "deep").mkdir(parents=True)
    image = Image.new("RGB", (12, 10), "blue")
    for name in ("a.png", "b.jpg", "c.gif", "d.bmp", "e.webp", "f.tiff", "deep/g.PNG"):
        image.save(folder / name)
    image.convert("CMYK").save(folder / "h.jpg")
    image.convert("P").save(folder / "i.png", transparency=0)
    Image.new("I;16", (5, 5), 1000).save(folder / "j.png")
    project = make_project(items=0)
    report = add_items(project, find_sources(folder), strict=True)
    assert report.added == 10
    with project.store.read() as connection:
        rows = connection.execute(select(Item.name, Item.file, Item.media_type, Item.kind)).all()
    assert {row.kind for row in rows} == {"image"}
    assert {row.name for row in rows} >= {"a.png", "deep/g.PNG"}
    for row in rows:
        with Image.open(project.media / row.file) as again:
            assert again.size in {(12, 10), (5, 5)}
            assert f"image/{again.format.lower()}" == row.media_type


def cleaned(image: Image.Image, form: str) -> np.ndarray:
    out = io.BytesIO()
    image.save(out, form)
    return np.asarray(Image.open(io.BytesIO(clean_media(out.getvalue())[0])))


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        (np.array([[0, 32768, 65535]], np.uint16), "PNG", [0, 127, 255]),
        (np.array([[0, 2048, 4095]], np.uint16), "TIFF", [0, 127, 255]),  # 12 bits, as many cameras store them
        (np.array([[0, 30, 200]], np.uint16), "PNG", [0, 30, 200]),
        (np.array([[-1024, 1024, 4095]], np.int32), "TIFF", [0, 102, 255]),
        (np.array([[0, 0.5, 1, np.nan]], np.float32), "TIFF", [0, 127, 255, 0]),
        (np.array([[0, 300, 600]], np.float32), "TIFF", [0, 127, 255]),
        (np.zeros((1, 2), np.uint16), "PNG", [0, 0]),
    ],
)
def test_pictures_of_more_than_8_bits_are_seen(values, form, expected):
    """Pillow alone makes them white (16 bits) or black (decimals)."""
    assert cleaned(Image.fromarray(values), form).tolist() == [expected]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_behind_a_transparent_picture_it_is_white(mode):
    """As in training; on a dark page black lines on nothing would not be seen."""
    image = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    image.putpixel((1, 0), (0, 0, 0, 255))
    image = image.quantize(4) if mode == "P" else image.convert(mode)
    assert cleaned(image, "PNG").tolist() == [[[255] * 3, [0] * 3]]


def test_a_pool_of_processes_does_the_same(make_project, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(300):
        Image.new("L", (8, 8), i % 256).save(folder / f"{i:03}.png")
    (folder / "100.png").write_bytes(b"broken")
    project, seen = make_project(items=0), []
    report = add_items(project, find_sources(folder), progress=lambda done, total: seen.append((done, total)))
    assert (report.added, [name for name, _ in report.skipped]) == (299, ["100.png"])
    assert seen[-1] == (300, 300)
    with project.store.read() as connection:
        rows = connection.execute(select(Item.name, Item.file)).all()
    for row in rows:
        with Image.open(project.media / row.file) as image:
            assert image.getpixel((0, 0)) == int(row.name[:3]) % 256, "each item has its own picture"


def test_sounds_are_told_by_their_bytes(make_project, tmp_path):
    folder = tmp_path / "sounds"
    folder.mkdir()
    with wave.open(str(folder / "a.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(struct.pack("<h", 0) * 100)
    (folder / "b.flac").write_bytes(FLAC)
    (folder / "c.ogg").write_bytes(OGG)
    (folder / "d.mp3").write_bytes(MP3)
    (folder / "e.mp3").write_bytes(b"<html>")
    (folder / "f.wav").write_bytes(b"")
    project = make_project(items=0)
    report = add_items(project, find_sources(folder))
    assert report.added == 4
    assert [name for name, _ in report.skipped] == ["e.mp3", "f.wav"]
    assert audio_type(b"\xff\xd8\xff\xe0") is None, "a JPEG begins with set bits too"


@pytest.mark.parametrize(("ending", "header"), [("csv", 1), ("jsonl", 0)])
def test_texts_from_a_file(make_project, tmp_path, ending, header):
    path = tmp_path / f"items.{ending}"
    if ending == "csv":
        path.write_text('item,text,gold\na,"line one\nline two",\nb,,\na,again,\nc,known,class 1\nd,odd,class 99\n')
    else:
        rows = [{"item": "a", "text": "line one\nline two"}, {"item": "b", "text": ""}, {"item": "a", "text": "again"}]
        rows += [{"item": "c", "text": "known", "gold": "class 1"}, {"item": "d", "text": "odd", "gold": "class 99"}]
        path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    project = make_project(items=0)
    report = add_items(project, find_sources(path))
    assert report.added == 3
    assert dict(report.skipped) == {
        f"row {header + 2} (b)": "an empty text",
        f"row {header + 3} (a)": "a duplicate id",
        f"row {header + 5} (d)": "the gold answer 'class 99' is not a class: the item is added without it",
    }
    with project.store.read() as connection:
        row = connection.execute(select(Item).where(Item.name == "c")).mappings().one()
    assert (row["gold"], row["pending"]) == (1, 0)
    assert counted(project, Slot) == 2, "gold has slots only when it is asked"


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "saved"])
@pytest.mark.parametrize("named", [False, True])
def test_items_are_named_as_training_names_them(make_project, tmp_path, ending, named):
    """Or answers are joined to other items than those they were given for."""
    path = tmp_path / f"items.{ending}"
    rows = [{"text": f"text {i}"} | ({"item": f" {i + 7}"} if named else {}) for i in range(4)]
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "saved":  # a folder of Hugging Face's datasets
        path.mkdir()
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}]}))
        (path / "dataset_info.json").write_text("{}")
    elif ending == "jsonl":
        rows[2]["text"] = 42
        path.write_text("\n\n".join(map(json.dumps, rows)))
    else:
        between = "\t" if ending == "tsv" else ","
        lines = [between.join(rows[0]), *(between.join(row.values()) for row in rows)]
        path.write_text("\n\n".join(lines))
    project = make_project(items=0)
    assert add_items(project, find_sources(path), strict=True).added == 4
    with project.store.read() as connection:
        found = {row.name: row.text for row in connection.execute(select(Item.name, Item.text))}
    data = load(path)
    assert found == dict(zip(data.train.items.tolist(), data.train.x, strict=True))


def test_a_column_that_was_stated_must_be_there(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("id,text\na,hello\n")
    assert [source.name for source in find_sources(path, item_column="id")] == ["a"]
    with pytest.raises(InputError, match=r"no column 'idd' \(its columns: id, text\)"):
        list(find_sources(path, item_column="idd"))


def test_a_table_of_image_paths(make_project, tmp_path):
    (tmp_path / "pictures").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "pictures" / "a.png")
    path = tmp_path / "items.csv"
    path.write_text("item,image\nx,pictures/a.png\ny,pictures/b.png\n")
    project = make_project(items=0)
    report = add_items(project, find_sources(path))
    assert (report.added, report.skipped) == (1, [("row 3 (y)", "cannot be read: No such file or directory")])


def test_hidden_files_are_no_items(make_project, tmp_path):
    folder = tmp_path / "images"
    (folder / ".thumbs").mkdir(parents=True)
    for name in (".DS_Store", ".thumbs/a.png", "._b.png"):
        (folder / name).write_bytes(b"x")
    Image.new("L", (8, 8)).save(folder / "a.png")
    assert add_items(make_project(items=0), find_sources(folder), strict=True).added == 1


def test_nothing_is_added_where_a_part_cannot_be_read(make_project, tmp_path):
    project = make_project(items=0, classes=2)
    with pytest.raises(InputError, match="no such file or folder"):
        add_to_project(project, Additions(tmp_path / "nowhere", classes_file(tmp_path)))
    add_to_project(project, Additions(classes=classes_file(tmp_path)))
    with pytest.raises(InputError, match="the project has the class 'cat' already: give new ones only"):
        add_to_project(project, Additions(classes=classes_file(tmp_path)))


def test_strict_refuses_the_whole_import_naming_the_item(make_project, tmp_path, database):
    project = make_project(database, items=2)
    sources = [Source("x", "x", text="fine"), Source("row 9", "item 1", text="there already")]
    with pytest.raises(InputError, match="nothing imported: row 9: the project has an item of this name"):
        add_items(project, sources, strict=True)
    assert counted(project, Item) == 2
    folder = tmp_path / "images"
    folder.mkdir()
    Image.new("L", (8, 8)).save(folder / "a.png")
    (folder / "b.png").write_bytes(b"broken")
    with pytest.raises(InputError, match=r"b\.png"):
        add_items(project, find_sources(folder), strict=True)
    assert counted(project, Item) == 2
    assert [path for path in project.media.rglob("*") if path.is_file()] == [], "and no file is left behind"


@pytest.mark.parametrize("text", ["nul \x00", "bell \x07", "half \ud800", " \n\t", "x" * 100_001])
def test_texts_that_cannot_be_shown_are_skipped(make_project, database, text):
    report = add_items(
        make_project(database, items=0), [Source("x", "x", text=text), Source("y\x00", "y\x00", text="a")]
    )
    assert (report.added, len(report.skipped)) == (0, 2)


def test_init_makes_a_project_or_nothing(tmp_path, database):
    items = tmp_path / "items.csv"
    items.write_text("text\nhello\nworld\n\n")
    folder = tmp_path / "p"

    def init(items, classes):
        return init_project(folder, Additions(items, classes), size=2, database=database)[1]

    for bad_items, bad_classes in (
        (tmp_path / "nowhere", classes_file(tmp_path)),
        (items, tmp_path / "nowhere.txt"),
        (items, classes_file(tmp_path, ("only",))),
        (items, classes_file(tmp_path, ("a", "b", "a"))),
        (items, classes_file(tmp_path, ("a", "b\x07"))),
    ):
        with pytest.raises(InputError):
            init(bad_items, bad_classes)
        assert not folder.exists()
    empty = tmp_path / "empty.csv"
    empty.write_text("item,text\na,\n")
    with pytest.raises(InputError, match="not one good item"):
        init(empty, classes_file(tmp_path))
    assert not folder.exists()
    assert init(items, classes_file(tmp_path)).added == 2
    with pytest.raises(InputError, match="already holds a project"):
        init(items, classes_file(tmp_path))
    with Project.open(folder) as project:
        more = tmp_path / "more.jsonl"
        more.write_text('{"text": "new", "item": "n"}\n')
        extra = tmp_path / "extra.txt"
        extra.write_text("fox\n")
        assert add_to_project(project, Additions(more, extra)).added == 1
        with pytest.raises(InputError, match="nothing to add"):
            add_to_project(project, Additions())


@pytest.mark.postgres
def test_one_database_holds_one_project(tmp_path, postgres, make_project):
    from ..conftest import new_database

    url = new_database(postgres)
    make_project(url)
    with pytest.raises(InputError, match="already holds a project"):
        Project.create(tmp_path / "other", Settings("t", 2, database=url))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"item,words\n1,hello\n", "no column 'text'"),
        ("a.csv", b"text\n\xff\xfe\n", "UTF-8"),
        ("a.jsonl", b"{not json}\n", "line 1 is not JSON"),
        ("a.jsonl", b"[1]\n", "must be a JSON object"),
        ("a.txt", b"hello", "expected a folder"),
        ("a.csv", b"id,message\n1,hello\n", r"its columns: id, message\): give --text-column"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        list(find_sources(path))
    assert "\n" not in str(error.value)


def test_gold_from_a_file(make_project, tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("item,gold\na,class 2\nghost,class 1\n")
    project = make_project(items=0)
    report = add_items(project, [Source("a", "a", text="x"), Source("b", "b", text="y")], gold=read_gold(path))
    assert report.added == 2
    assert report.skipped == [("ghost", "a gold answer for an item that does not exist")]
    path.write_text("item,label\na,b\n")
    with pytest.raises(InputError, match="item and gold"):
        read_gold(path)


def test_two_gold_answers_for_one_item_are_refused(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("item,gold\na,cat\nb,dog\na,dog\n")
    with pytest.raises(InputError, match="item 'a' occurs twice"):
        read_gold(path)


def test_a_mistyped_gold_answer_is_reported_and_its_item_stays(make_project, tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("item,gold\na,clas 2\nb,class 2\n")
    project = make_project(items=0)
    sources = [Source(name, name, text=name, gold=gold) for name, gold in (("a", None), ("b", None), ("c", "clas 1"))]
    report = add_items(project, sources, gold=read_gold(path))
    assert report.added == 3
    assert report.skipped == [
        ("a", "the gold answer 'clas 2' is not a class: the item is added without it"),
        ("c", "the gold answer 'clas 1' is not a class: the item is added without it"),
    ]
    with project.store.read() as connection:
        found = connection.execute(select(Item.name, Item.gold).order_by(Item.id)).all()
        asked = connection.execute(select(Slot.item_id)).all()
    assert [tuple(row) for row in found] == [("a", None), ("b", 2), ("c", None)]
    assert len(asked) == 2
    with pytest.raises(InputError, match="nothing imported: x: the gold answer 'no' is not a class"):
        add_items(project, [Source("x", "x", text="x", gold="no")], strict=True)


def test_settings_are_checked():
    for bad in ({"size": 0}, {"size": 3, "overlap": 0}, {"size": "3"}, {"size": 3, "gold_every": 1}):
        with pytest.raises(InputError):
            Settings("t", **bad)


def test_class_names_are_kept_in_order(tmp_path, make_project):
    assert list(read_classes(classes_file(tmp_path, ("b", " a ", "", "ü|x")))) == ["b", "a", "ü|x"]
    with pytest.raises(InputError, match=r"classes\.txt: class 'b' occurs twice"):
        read_classes(classes_file(tmp_path, ("b", "a", "b")))
    with pytest.raises(InputError, match=r"nowhere\.txt cannot be read: No such file or directory"):
        read_classes(tmp_path / "nowhere.txt")
    project = make_project(classes=0, items=0)
    assert add_classes(project, ["b", "a"]) == 2
    assert add_classes(project, ["c"]) == 3


def test_a_hundred_thousand_items_in_under_a_minute(make_project):
    project = make_project(items=0)
    begun = time.monotonic()
    sources = (Source(str(i), f"item {i}", text=f"text number {i}") for i in range(100_000))
    assert add_items(project, sources).added == 100_000
    assert time.monotonic() - begun < 60

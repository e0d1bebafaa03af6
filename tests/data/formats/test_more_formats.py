"""JSON arrays, Excel workbooks, folders of Hugging Face's datasets; and what is said of doubtful tables."""

import csv
import io
import json
import re
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from shortlist.data import load, read_table
from shortlist.errors import InputError

SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>label</t></is></c></row>'
    '<row r="2"><c r="A2" t="s"><v>1</v></c><c r="C2"><v>3</v></c></row>'
    '<row r="3"><c r="A3" t="s"><v>2</v></c><c r="C3"/></row><row r="4"/></sheetData></worksheet>'
)
STRINGS = (
    '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>text</t></si><si><t>my card</t></si>'
    "<si><r><t>lost </t></r><r><t>card</t></r><rPh><t>x</t></rPh></si></sst>"
)


def _workbook(path, sheet=SHEET):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/sharedStrings.xml", STRINGS)
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
        archive.writestr("xl/worksheets/sheet10.xml", "<damaged")
    return path


def test_a_json_array(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps([{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]))
    data = load(tmp_path / "t.json")
    assert data.train.x == ["a", "b"]
    assert data.class_names == ("x", "y")
    for content, words in (("{}", "array of objects"), ("[1]", "array of objects"), ("[", "line 1 is not JSON")):
        (tmp_path / "t.json").write_text(content)
        with pytest.raises(InputError, match=words):
            load(tmp_path / "t.json")


def test_an_excel_workbook(tmp_path):
    data = load(_workbook(tmp_path / "t.xlsx"))
    assert data.train.x == ["my card", "lost card"]
    assert data.train.y.tolist() == [0, -1]
    assert data.class_names == ("3",)
    number = SHEET.replace('<c r="A3" t="s"><v>2</v></c>', '<c r="A3"><v>42</v></c>')
    assert load(_workbook(tmp_path / "t.xlsx", number)).train.x == ["my card", "42"]
    yes = SHEET.replace('<c r="A3" t="s"><v>2</v></c>', '<c r="A3" t="b"><v>1</v></c>')
    assert load(_workbook(tmp_path / "t.xlsx", yes)).train.x == ["my card", "True"]
    nowhere = re.sub(r' r="[AC]?\d"', "", SHEET.replace('<c r="C3"/>', "<c/>"))
    assert load(_workbook(tmp_path / "t.xlsx", nowhere)).train.x == ["my card", "lost card"]
    (tmp_path / "bad.xlsx").write_bytes(b"no zip")
    with pytest.raises(InputError, match="not an Excel workbook, or is damaged"):
        load(tmp_path / "bad.xlsx")
    with pytest.raises(InputError, match="plain workbook"):
        load(_workbook(tmp_path / "t.xlsx", "<!DOCTYPE x>" + SHEET))


def test_the_first_sheet_is_the_one_that_people_see_first(tmp_path):
    """Sheets can be reordered; their files keep their numbers."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    for target in ("worksheets/sheet2.xml", "/xl/worksheets/sheet2.xml"):
        path = _workbook(tmp_path / "t.xlsx", "<damaged")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("xl/worksheets/sheet2.xml", SHEET)
            sheets = '<sheet name="b" r:id="r2"/><sheet name="a" r:id="r1"/>'
            archive.writestr(
                "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{links}"><sheets>{sheets}</sheets></workbook>'
            )
            archive.writestr(
                "xl/_rels/workbook.xml.rels",
                f'<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/><Relationship Id="r2" '
                f'Target="{target}"/></Relationships>',
            )
        assert load(path).train.x == ["my card", "lost card"]


def _saved(folder, values, labels, column="text"):
    folder.mkdir(parents=True)
    table = pa.table({column: values, "label": labels})
    with pa.OSFile(str(folder / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    names = {"_type": "ClassLabel", "names": ["lost", "found"]}
    (folder / "dataset_info.json").write_text(json.dumps({"features": {"label": names}}))


def test_a_folder_of_hugging_faces_datasets(tmp_path):
    _saved(tmp_path / "one", ["a", "b", "c"], [1, 0, -1])
    data = load(tmp_path / "one")
    assert (data.train.x, data.train.y.tolist(), data.test) == (["a", "b", "c"], [0, 1, -1], None)
    assert data.class_names == ("found", "lost")
    _saved(tmp_path / "both" / "train", ["a", "b"], [1, 0])
    _saved(tmp_path / "both" / "test", ["c"], [0])
    (tmp_path / "both" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    both = load(tmp_path / "both")
    assert both.test.x == ["c"]
    assert load(tmp_path / "both", text_column="text", test=tmp_path / "one").test.x == ["a", "b", "c"]
    (tmp_path / "both" / "dataset_dict.json").write_text(json.dumps({"splits": ["validation"]}))
    with pytest.raises(InputError, match="has the parts validation, expected one named train"):
        load(tmp_path / "both")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("dataset_info.json", {"features": {"label": {"_type": "ClassLabel", "names": ["lost"]}}}, "IndexError"),
        ("dataset_info.json", {"features": {"label": {"_type": "ClassLabel"}}}, "KeyError: 'names'"),
        ("dataset_info.json", {"features": [1]}, "does not name the classes of its labels: AttributeError"),
        ("state.json", {"_data_files": [3]}, "holds no Arrow files that can be read: TypeError"),
        (
            "state.json",
            {"_data_files": [{"filename": "other.arrow"}]},
            "holds no Arrow files that can be read: FileNot",
        ),
    ],
)
def test_a_damaged_folder_of_hugging_faces_datasets_is_one_line(tmp_path, name, content, message):
    _saved(tmp_path / "one", ["a", "b"], [1, 0])
    (tmp_path / "one" / name).write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        load(tmp_path / "one")


def test_days_that_python_does_not_have(tmp_path):
    days = pa.array([2**62, 3], pa.timestamp("us"))
    pq.write_table(pa.table({"text": ["a", "b"], "day": days}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column 'day' cannot be read: OverflowError"):
        load(tmp_path / "t.parquet")


def test_images_inside_a_table(tmp_path):
    """Hugging Face's tables hold an image's bytes and name, or its name only."""
    inside = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (2, 5, 4, 3), np.uint8)
    Image.fromarray(pixels[0]).save(inside, "PNG")
    Image.fromarray(pixels[1]).save(tmp_path / "beside.png")
    values = [{"bytes": inside.getvalue(), "path": "gone.png"}, {"bytes": None, "path": str(tmp_path / "beside.png")}]
    _saved(tmp_path / "saved", values, [0, 1], "image")
    pq.write_table(pa.table({"image": values, "label": ["lost", "found"]}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"image": [value["bytes"] for value in values[:1]]}), tmp_path / "bytes.parquet")
    for name in ("saved", "t.parquet"):
        data = load(tmp_path / name)
        np.testing.assert_array_equal(data.train.x, pixels.transpose(0, 3, 1, 2))
        assert [data.class_names[k] for k in data.train.y] == ["lost", "found"]
    np.testing.assert_array_equal(load(tmp_path / "bytes.parquet").train.x, pixels[:1].transpose(0, 3, 1, 2))
    for value, words in (
        ({"bytes": b"no image", "path": None}, "t.parquet, row 2 is not an image, or is damaged"),
        ({"bytes": None, "path": "none.png"}, "no such image: .*none.png"),
        ({"bytes": None, "path": None}, "row 2 has no image, expected the path of one, or its bytes"),
    ):
        pq.write_table(pa.table({"image": [values[0], value]}), tmp_path / "t.parquet")
        with pytest.raises(InputError, match=words):
            load(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("name", "mark", "words"),
    [("t.csv", ";\t", "semicolons"), ("t.tsv", ",", "commas"), ("t.tsv", ";", "semicolons"), ("t.csv", "|", "bars")],
)
def test_another_separator_is_named(tmp_path, name, mark, words):
    """Semicolons and tabs in one header: nobody can tell which of them separates."""
    (tmp_path / name).write_text(f"text{mark}label\na{mark}x\n")
    with pytest.raises(InputError, match=f"separated by {words}, expected"):
        load(tmp_path / name)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_csv_as_spreadsheets_save_it_where_a_comma_is_for_decimals(tmp_path, mark):
    rows = [["text", "label", "price"], ["a, b; c\td", "x", "1,5"], ['say "no"', "y", "2"]]
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=mark).writerows(rows)
    assert read_table(tmp_path / "t.csv") == {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])}
    data = load(tmp_path / "t.csv")
    assert (data.train.x, data.class_names) == (["a, b; c\td", 'say "no"'], ("x", "y"))


def test_a_semicolon_inside_a_name_separates_nothing(tmp_path):
    (tmp_path / "t.csv").write_text('text,"label; as given"\na;b,x\n')
    assert read_table(tmp_path / "t.csv") == {"text": ["a;b"], "label; as given": ["x"]}


def test_what_is_nearly_right_is_told_what_would_be(tmp_path):
    (tmp_path / "lines.json").write_text('{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n')
    with pytest.raises(InputError, match="line 2 is not JSON: Extra data, an object on each line belongs"):
        load(tmp_path / "lines.json")
    (tmp_path / "latin.csv").write_bytes("text,label\ncaf\u00e9,x\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"not UTF-8 text: .* at byte 14 \(in Excel: save it as CSV UTF-8\)"):
        load(tmp_path / "latin.csv")


def test_columns_that_are_nearly_named_right(tmp_path, caplog):
    (tmp_path / "t.csv").write_text("item, text ,label\na,b,x\nc,d,y\n")
    data = load(tmp_path / "t.csv")
    assert (data.train.x, data.class_names, data.train.items.tolist()) == (["b", "d"], ("x", "y"), ["a", "c"])
    assert caplog.text == ""
    (tmp_path / "t.csv").write_text("text,Label,ITEM\nb,x,a\n")
    assert load(tmp_path / "t.csv").train.y is None
    assert "the column 'Label' is not read, as it is not named 'label': --label-column" in caplog.text
    assert "the column 'ITEM' is not read, as it is not named 'item': --item-column" in caplog.text


def test_doubtful_classes_and_texts_are_told(tmp_path, caplog):
    (tmp_path / "t.csv").write_text("text,label\na b,Card lost\nc,card  lost\n nan,nan\n,x\n")
    data = load(tmp_path / "t.csv")
    assert data.num_classes == 4
    assert "classes that differ by capitals, spaces or zeros only: 'Card lost' and 'card  lost'" in caplog.text
    assert "'nan' is taken for a class: leave the cell empty" in caplog.text
    assert "2 texts are empty or read 'nan', first row 4" in caplog.text
    caplog.clear()
    (tmp_path / "numbers.csv").write_text("text,label\na,1\nb,01\nc,1.0\nd,10\n")
    assert load(tmp_path / "numbers.csv").num_classes == 4
    assert caplog.text.count("differ by") == 1
    assert "zeros only: '01' and '1' and '1.0'" in caplog.text
    caplog.clear()
    (tmp_path / "accents.csv").write_text("text,label\na,caf\u00e9\nb,cafe\u0301\n", encoding="utf-8")
    assert load(tmp_path / "accents.csv").num_classes == 2
    assert "zeros only: 'cafe\\u0301' and 'caf\u00e9'" in caplog.text, "two codes of one look"
    caplog.clear()
    (tmp_path / "t.jsonl").write_text('{"text": "a"}\n{"text": null}\n{"label": "x"}\n')
    assert load(tmp_path / "t.jsonl").train.x == ["a", "", ""]
    assert "2 texts are empty or read 'nan', first row 2: they are kept" in caplog.text
    caplog.clear()
    (tmp_path / "t.csv").write_text("text,label\na b,x\nc,y\n")
    load(tmp_path / "t.csv")
    assert caplog.text == ""


def test_of_an_item_that_occurs_again_the_first_row_counts(tmp_path, caplog):
    (tmp_path / "t.csv").write_text("item,text,label\ni,a,x\nj,b,y\ni,c,y\n")
    data = load(tmp_path / "t.csv")
    assert (data.train.x, data.train.items.tolist()) == (["a", "b"], ["i", "j"])
    assert "some items occur more than once, such as 'i'" in caplog.text
    assert "left out: 1" in caplog.text

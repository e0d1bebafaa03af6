import json

import numpy as np
import pytest

from shortlist.data import load
from shortlist.errors import InputError
from shortlist.policies.experts import experts_from_scores
from shortlist.policies.given import read_known
from shortlist.policies.scores import read_scores
from shortlist.training import DataSource, Job, train

ITEMS, CLASSES = ["a", "b", "c"], ["cat", "dog"]


def test_known_classes_are_matched_by_name(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("item,class\nc,dog\nelsewhere,cat\na,cat\na,cat\n")
    rows, classes = read_known(path, ITEMS, CLASSES)
    assert (rows.tolist(), classes.tolist()) == ([0, 2], [0, 1])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("known.csv", "item,class\na,3.0\nb,\nc,10.0\n"),
        ("known.jsonl", '{"item": "a", "kind": 3.0}\n{"item": "b", "kind": NaN}\n{"item": "c", "kind": 10}\n'),
    ],
)
def test_whole_numbers_beside_missing_ones_are_the_classes_that_the_data_has(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    rows, classes = read_known(tmp_path / name, ITEMS, ["3", "10"])
    assert (rows.tolist(), classes.tolist()) == ([0, 2], [0, 1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item,class\na,cow\n", "row 2: unknown class 'cow'"),
        ("item,class\na,cat\na,dog\n", "row 3: item 'a' has another class further up"),
        ("name,class\na,cat\n", r"has no column 'item' \(its columns: name, class\), by which its rows are matched"),
        ("item,class\na,\n", "no row has a class"),
        ("item,kind\na,cat\nb,cow\n", r"nor another of nothing but classes \(its columns: item, kind\)"),
        ("item,kind\na,\n", "has no column 'class' or 'label'"),
        ("item,kind,sort\na,cat,dog\n", r"several columns of classes \(kind, sort\): call one of them 'class'"),
        ("item,class\nx,cat\n", "none of its items is in the data, whose first is 'a'"),
    ],
)
def test_bad_labels_are_one_line(tmp_path, content, message):
    path = tmp_path / "known.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_known(path, ITEMS, CLASSES)


def test_items_that_are_elsewhere_are_counted_and_rows_without_a_class_passed_over(tmp_path, caplog):
    path = tmp_path / "known.csv"
    path.write_text("item,class\na,cat\nb, \nx,dog\ny,dog\n")
    rows, _ = read_known(path, ITEMS, CLASSES)
    assert rows.tolist() == [0]
    assert "2 of 4 rows are of none of the 3 items to label, first 'x': they are left out" in caplog.text


def test_the_column_that_names_items_may_be_stated(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("id,label\nb,dog\n")
    assert read_known(path, ITEMS, CLASSES, "id")[0].tolist() == [1]
    with pytest.raises(InputError, match=r"has no column 'code' \(its columns: id, label\)"):
        read_known(path, ITEMS, CLASSES, "code")
    path.write_text("item,label\nb,dog\n")
    assert read_known(path, ITEMS, CLASSES, "id")[0].tolist() == [1], "our own name is good as well"


def test_classes_may_be_in_any_column_that_holds_nothing_else(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("item;note;intent\na;cat;\nb;new;dog\nc;;\n")
    rows, classes = read_known(path, ITEMS, CLASSES)
    assert (rows.tolist(), classes.tolist()) == ([1], [1])


def test_the_table_of_the_items_itself_needs_no_names(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("text,label\nfur,\nbark,dog\n")
    assert read_known(path, ["0", "1"], CLASSES, table_of_items=str(path))[0].tolist() == [1]
    with pytest.raises(InputError, match="has no column 'item'"):
        read_known(path, ["0", "1"], CLASSES, table_of_items=tmp_path / "others.csv")


def scores_of(table):
    experts = experts_from_scores(table)
    return experts[0].table, experts[1].favourite.tolist()


def test_scores_come_from_a_table_or_an_archive_with_gaps(tmp_path):
    table, archive = tmp_path / "scores.csv", tmp_path / "scores.npz"
    table.write_text("item,dog,cat,unrelated\nb,3,1,9\nelsewhere,5,5,5\na,,2,0\n")
    np.savez(archive, scores=[[3.0, 1.0], [np.nan, 2.0]], items=["b", "a"], classes=["dog", "cat"])
    first, second = (scores_of(read_scores(path, ITEMS, CLASSES)) for path in (table, archive))
    assert first[0] == pytest.approx(second[0])
    assert first[1] == second[1] == [0, 1, -1]
    assert (first[0][2] == 0).all()  # nothing is said of c
    assert first[0][1, 1] > 0 > first[0][1, 0]


def test_an_archive_without_names_is_in_the_order_of_the_data(tmp_path):
    path = tmp_path / "scores.npz"
    np.savez(path, scores=np.arange(6.0).reshape(3, 2))
    assert scores_of(read_scores(path, ITEMS, CLASSES))[1] == [1, 1, 1]
    np.savez(path, scores=np.arange(6.0).reshape(2, 3))
    with pytest.raises(InputError, match=r"shape \(2, 3\) without items, expected 3 items"):
        read_scores(path, ITEMS, CLASSES)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.eye(2)}, r"has no array scores \(it holds: x\)"),
        ({"scores": np.ones(3)}, r"scores of shape \(3,\)"),
        ({"scores": np.array([["a", "b"]])}, "type <U1, expected items by classes"),
        ({"scores": np.eye(2), "items": ["a"]}, r"items of shape \(1,\) for scores of shape \(2, 2\)"),
        ({"scores": np.eye(2), "items": 3}, r"items of shape \(\)"),
        ({"scores": np.eye(2), "items": ["a", "b"], "classes": ["cat", "dog", "cow"]}, r"classes of shape \(3,\)"),
    ],
)
def test_bad_archives_of_scores_are_one_line(tmp_path, arrays, message):
    path = tmp_path / "scores.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        read_scores(path, ITEMS, CLASSES)


def test_damaged_archives_of_scores_are_one_line(tmp_path):
    path = tmp_path / "scores.npz"
    np.savez(path, scores=np.eye(3)[:, :2])
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    np.save(tmp_path / "plain.npy", np.eye(2))
    for content in (b"", whole[: len(whole) // 2], bytes(flipped), (tmp_path / "plain.npy").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot be read as an \.npz archive of plain arrays"):
            read_scores(path, ITEMS, CLASSES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item,cat\na,much\n", "row 2, column cat: expected a number or nothing, got 'much'"),
        ("item,cow\na,1\n", "none of its columns is a class"),
        ("item,cat\nx,1\n", "none of its items is in the data"),
        ("cat,dog\n1,2\n", "expected a column item"),
        ("item,cat\na,inf\n", "item 'a', class 'cat' is infinite"),
    ],
)
def test_bad_scores_are_one_line(tmp_path, content, message):
    path = tmp_path / "scores.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_scores(path, ITEMS, CLASSES)


def test_scores_come_as_predict_writes_them(tmp_path):
    path = tmp_path / "predicted.csv"
    path.write_text("item,class,probability,top,top_probabilities\na,dog,0.7,dog|cat,0.7|0.3\nc,dog,0.9,dog,0.9\n")
    table = read_scores(path, ITEMS, CLASSES)
    np.testing.assert_allclose(table, [[0.3, 0.7], [np.nan, np.nan], [np.nan, 0.9]], rtol=1e-6)
    path.write_text("item,top,top_probabilities\na,dog,0.7\nb,,\n")  # nothing is said of b
    np.testing.assert_allclose(read_scores(path, ITEMS, CLASSES)[:2], [[np.nan, 0.7], [np.nan] * 2], rtol=1e-6)
    lines = tmp_path / "predicted.jsonl"
    lines.write_text('{"item": "a", "top": ["dog"], "top_probabilities": [0.7]}\n{"item": "b"}\n')
    np.testing.assert_allclose(read_scores(lines, ITEMS, CLASSES)[:2], [[np.nan, 0.7], [np.nan] * 2], rtol=1e-6)
    path.write_text("item,class,probability,top,top_probabilities\na,dog,0.7,dog|cat,0.7\n")
    with pytest.raises(InputError, match=r"row 2: 2 classes in top, 1 probabilities"):
        read_scores(path, ITEMS, CLASSES)


def prediction(choice, **more):
    return {"result": [{"type": "choices", "value": {"choices": [choice]}}], **more}


def test_label_studios_predictions_are_scores(tmp_path):
    tasks = [
        {"data": {"stochastic": {"item_id": "a"}}, "predictions": [prediction("cat"), prediction("dog", score=0.6)]},
        {"data": {"item": "b"}, "predictions": [prediction("cat")]},
        {"data": {"item": "c"}, "predictions": []},
        {"data": {}, "annotations": []},
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    table = read_scores(path, ITEMS, CLASSES)
    np.testing.assert_allclose(table, [[np.nan, 0.6], [1.0, np.nan], [np.nan, np.nan]], rtol=1e-6)
    assert scores_of(table)[1] == [1, 0, -1]
    tasks[3]["predictions"] = [prediction("cat")]
    path.write_text(json.dumps(tasks))
    with pytest.raises(InputError, match="task 4: no item"):
        read_scores(path, ITEMS, CLASSES)


@pytest.mark.parametrize("content", ["{", "{}", "[1]", '[{"predictions": 3}]', '[{"predictions": [{"result": [2]}]}]'])
def test_what_is_no_export_of_label_studio_is_one_line(tmp_path, content):
    path = tmp_path / "tasks.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"tasks\.json") as error:
        read_scores(path, ITEMS, CLASSES)
    assert "\n" not in str(error.value)


def test_a_trained_model_gives_scores(tmp_path):
    dataset = load("digits")
    folder = tmp_path / "run"
    train(Job(DataSource("digits"), folder, {"size": 3, "epochs": 1, "model": "linear"}, device="cpu"))
    first = dataset.train.take(np.arange(20))
    found = read_scores(folder, [*first.items, "elsewhere"], dataset.class_names, (first.items.tolist(), first.x))
    np.testing.assert_allclose(found[:20].sum(axis=1), 1, rtol=1e-5)
    assert np.isnan(found[20]).all()
    with pytest.raises(InputError, match="expected a file of scores"):
        read_scores(folder, ["a"], dataset.class_names)
    with pytest.raises(InputError, match=r"model.*: the model is of other items: expected image inputs of shape"):
        read_scores(folder, ["a"], dataset.class_names, (["a"], ["a text"]))

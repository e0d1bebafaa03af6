"""Whatever is wrong: one clear line on stderr, exit code 2, no traceback, nothing left behind."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from .conftest import command, image_folder, text_rows, text_table


@pytest.fixture
def refused(shortlist, tmp_path):
    """Train with these words and expect one line; returns it."""

    def call(*words, out=None):
        folder = out or tmp_path / "out"
        done = shortlist("train", *words, "--out", folder)
        assert done.code == 2, done
        assert done.out == ""
        assert done.err.count("\n") == 1, done.err
        assert done.err.startswith("shortlist: ")
        assert "Traceback" not in done.err
        assert not (tmp_path / "out").exists()
        return done.err

    return call


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["digits", "--size", "5", "--method", "likelyhood"], "did you mean 'likelihood'"),
        (["digits", "--size", "5", "--method-option", "frm=1"], "unknown option of likelihood 'frm'"),
        (["digits", "--size", "5", "--method-option", "form"], "expected name=value"),
        (["digits", "--size", "5", "--model", "lnet"], "did you mean 'lenet'"),
        (["digit", "--size", "5"], "did you mean 'digits'"),
        (["digits", "--size", "0"], "size: expected 1..10"),
        (["digits", "--size", "11"], "size: expected 1..10"),
        (["digits", "--size", "5", "--seed", "-1"], "seed: expected at least 0, got -1"),
        (
            ["digits", "--size", "5", "--model", "mlp", "--model-option", "hidden=5"],
            "a list of widths such as (512, 256), got 5",
        ),
        (["digits", "--size", "5", "--method", "sl", "--method-option", "frm=1"], "did you mean 'form'"),
        (["digits", "--size", "5", "--lr", "-1"], "lr: expected"),
        (["digits", "--size", "5", "--momentum", "0.8"], "momentum: optimiser adam has no use for it"),
        (
            ["digits", "--size", "5", "--model", "linear", "--optimiser", "lbfgs", "--lr", "0.1"],
            "lr: optimiser lbfgs has no use for it",
        ),
        (["digits", "--size", "5", "--lr", "1e11", "--method", "sl", "--epochs", "1"], "try a smaller lr"),
        (["digits", "--size", "5", "--device", "cuda:77"], "cannot be used"),
        (["digits", "--size", "5", "--protocol", "fairr"], "did you mean 'fair'"),
        (["digits", "--size", "5", "--features", "tfid"], "did you mean 'tfidf'"),
        (["digits", "--size", "5", "--tune", "lrr"], "did you mean 'lr'"),
        (["digits", "--size", "5", "--test", "x.csv"], "own data"),
        (["digits", "--size", "x"], "--size"),
        (["digits", "--siz", "5"], "--siz"),
        (["digits", "--miss", "0.1"], "state size too"),
        (["nowhere.csv", "--size", "2"], "no such file"),
        (["digits", "--labels", "nowhere.csv"], "nowhere.csv"),
        (["digits", "--size", "3", "--labels", "nowhere.csv"], "not both"),
        (["digits", "--method", "cc", "--protocol", "paper"], "needs None items, and there are none"),
    ],
)
def test_wrong_words(refused, words, line):
    assert line in refused(*words)


def test_labels_for_another_dataset(refused, tmp_path, shortlist):
    rows = text_rows(30)
    ours = text_table(tmp_path / "ours.csv", rows)
    other = text_table(tmp_path / "other.csv", [(f"z{i}", text, label) for i, (_, text, label) in enumerate(rows)])
    assert shortlist("simulate", other, "--size", "2", "--out", tmp_path / "labels.csv").code == 0
    line = refused(ours, "--labels", tmp_path / "labels.csv")
    assert "30 of 30 labels are for items the data does not have, first 'z0'" in line


def test_labels_of_other_classes_and_of_another_number_of_classes(refused, tmp_path):
    ours = text_table(tmp_path / "ours.csv", text_rows(12))
    names = tmp_path / "names.csv"
    names.write_text("item,shortlist,answer\nq0,cat|dog,cat\n")
    assert "class 'cat' is out of range, expected one of the 3 classes" in refused(ours, "--labels", names)
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("item,shortlist,answer,classes\nq0,0|4,4,5\n")
    assert "labels of 5 classes, ours has 3" in refused(ours, "--labels", numbers)


def test_features_with_nan(refused, tmp_path):
    x = np.ones((6, 3), np.float32)
    x[4, 2] = np.nan
    np.savez(tmp_path / "own.npz", x=x, y=[0, 1, 0, 1, 0, 1])
    assert "nan at row 4, column 2" in refused(tmp_path / "own.npz", "--size", "1")


def test_one_class_only(refused, tmp_path):
    table = text_table(tmp_path / "t.csv", [("a", "hello there", "x"), ("b", "good morning", "x")])
    assert "only one class, 'x'" in refused(table, "--size", "1")


def test_unlabelled_data_without_answers(refused, tmp_path):
    table = text_table(tmp_path / "t.csv", [("a", "hello"), ("b", "bye")], ("item", "text"))
    assert "2 of 2 items have no class" in refused(table, "--size", "1")


def test_items_without_a_class_are_left_out_and_counted(shortlist, tmp_path, caplog):
    rows = text_rows(40)
    some = [(item, text, "" if i % 4 == 0 else label) for i, (item, text, label) in enumerate(rows)]
    reads = []
    for name, these in (("kept", [row for row in some if row[2]]), ("some", some)):
        assert "left out" not in caplog.text
        done = shortlist("train", text_table(tmp_path / f"{name}.csv", these), "--out", tmp_path / name, "--json")
        assert done.code == 0, done.err
        reads.append(json.loads(done.out)["reads"])
    assert "some: 10 of 40 items have no class and are left out" in caplog.text
    assert reads == [30 * 3, 30 * 3]
    caplog.clear()
    for name in ("kept", "some"):
        words = ("--size", "2", "--out", tmp_path / f"{name}-labels.csv")
        assert shortlist("simulate", tmp_path / f"{name}.csv", *words).code == 0
    assert "some: 10 of 40 items have no class and are left out" in caplog.text
    assert (tmp_path / "some-labels.csv").read_text() == (tmp_path / "kept-labels.csv").read_text()


def test_a_damaged_image(refused, tmp_path):
    folder = image_folder(tmp_path / "images", per_class=2)
    (folder / "dot" / "1.png").write_bytes(b"no image")
    assert "1.png is not an image" in refused(folder, "--size", "2")


@pytest.fixture
def tiny_disk(tmp_path):
    """A disk of 40 kB, which a model does not fit on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to mount a small disk")
def test_a_full_disk(refused, tiny_disk, shortlist, tmp_path):
    line = refused("digits", "--size", "5", "--epochs", "1", out=tiny_disk / "run")
    assert "No space left on device" in line
    assert list(tiny_disk.iterdir()) == []
    done = shortlist("simulate", "digits", "--size", "9", "--out", tiny_disk / "labels.jsonl")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "No space left" in done.err
    assert list(tiny_disk.iterdir()) == []
    # a model that was there before is there still
    assert shortlist("train", "digits", "--size", "5", "--epochs", "1", "--out", tmp_path / "good").code == 0
    done = shortlist("predict", tmp_path / "good", "digits", "--out", tiny_disk / "p.jsonl")
    assert (done.code, list(tiny_disk.iterdir())) == (2, [])


def test_no_permission(shortlist, tmp_path):
    """As a user who may not write there; root may write anywhere, so it becomes nobody for the moment."""
    target = tmp_path / "closed"
    target.mkdir(mode=0o755)
    commands = [
        ["train", "digits", "--size", "5", "--epochs", "1", "--out", "run"],
        ["simulate", "digits", "--size", "5", "--out", "labels.csv"],
    ]
    for *words, name in commands:  # so that everything is imported, which nobody may not
        assert shortlist(*words, tmp_path / name).code == 0
    root = os.geteuid() == 0
    if root:
        for parent in (target, *target.parents):
            if parent.stat().st_mode & 0o011 == 0:
                parent.chmod(parent.stat().st_mode | 0o011)
        os.seteuid(65534)
    else:
        target.chmod(0o555)
    try:
        results = [shortlist(*words, target / name) for *words, name in commands]
    finally:
        if root:
            os.seteuid(0)
    for done in results:
        assert done.code == 2, done
        assert done.err.count("\n") == 1, done.err
        assert "Permission denied" in done.err
    assert list(target.iterdir()) == []


def test_an_unfinished_run_is_not_thrown_away(shortlist, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "checkpoint.safetensors").write_bytes(b"hours of work")
    done = shortlist("train", "digits", "--size", "5", "--epochs", "1", "--out", out)
    assert done.code == 2
    assert "holds an unfinished run: resume goes on with it, overwrite starts anew" in done.err
    assert (out / "checkpoint.safetensors").read_bytes() == b"hours of work"
    assert "the run is not finished" in shortlist("evaluate", out, "digits").err
    assert shortlist("train", "digits", "--size", "5", "--epochs", "1", "--overwrite", "--out", out).code == 0
    assert not (out / "checkpoint.safetensors").exists()


def test_wrong_folders_and_files_for_a_model(shortlist, tmp_path):
    out = tmp_path / "run"
    assert shortlist("train", "digits", "--size", "5", "--epochs", "1", "--out", out).code == 0
    text = text_table(tmp_path / "t.csv", text_rows(6))
    of_texts, folder = tmp_path / "texts", image_folder(tmp_path / "images", per_class=1)
    Image.new("RGB", (5, 7)).save(folder / "dot" / "other.png")
    assert shortlist("train", text, "--out", of_texts).code == 0
    (tmp_path / "taken.csv").mkdir()
    x = np.zeros((3, 1, 9, 9), np.uint8)
    np.savez(tmp_path / "large.npz", x=x, y=[0, 1, 2])
    for words, line in [
        (["evaluate", tmp_path / "none", "digits"], "no such folder"),
        (["evaluate", tmp_path, "digits"], "not a trained model"),
        (["evaluate", out, "digits", "--split", "tset"], "did you mean 'test'"),
        (["evaluate", out, text], "is not among the class names"),
        (
            ["predict", out, tmp_path / "large.npz", "digits"],
            "large.npz: expected inputs of shape (1, 8, 8), got (1, 9, 9)",
        ),
        (["evaluate", out, tmp_path / "large.npz"], "expected inputs of shape (1, 8, 8), got (1, 9, 9)"),
        (["predict", out, text], "the model takes image"),
        (["predict", of_texts, folder], "images is a folder of images, the model takes text"),
        (["evaluate", of_texts, folder], "images is a folder of images, the model takes text"),
        (["predict", out, tmp_path / "none.png"], "no such image"),
        (["predict", out, "digits", "--top-k", "0"], "top-k"),
        (["predict", out, "digits", "--out", tmp_path / "p.xls"], "unknown ending"),
        (["predict", out, "digits", "--out", tmp_path / "taken.csv"], f"{tmp_path / 'taken.csv'}: Is a directory"),
    ]:
        done = shortlist(*words)
        assert (done.code, done.out) == (2, ""), (words, done)
        assert line in done.err, done.err
        assert done.err.count("\n") == 1
    config = (out / "config.json").read_text()
    (out / "config.json").write_text(config.replace('"mlp"', '"linear"'))
    assert "not the weights of 'linear'" in shortlist("evaluate", out, "digits").err
    (out / "config.json").write_text(config[:-30])
    assert "config.json is damaged" in shortlist("evaluate", out, "digits").err


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table of texts, and what may be taken for one."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    text_table(folder / "rows.csv", text_rows(12))
    (folder / "folder.csv").mkdir()
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("item,text,label\n")
    (folder / "latin.csv").write_bytes("item,text,label\na,déjà,x\n".encode("latin-1"))
    (folder / "known.csv").write_text("item,class\nq0,zebra\n")
    (folder / "names.npz").write_text("item,text\n")
    np.savez(folder / "few.npz", x=np.ones((3, 2), np.float32), items=["q0", "q1", "q2"])
    np.savez(folder / "flat.npz", x=np.ones(3), y=[0, 1, 2])
    return folder


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("train rows.csv --text-column body --out o", "rows.csv has no column 'body' (its columns: item, text, label)"),
        ("train empty.csv --out o", "empty.csv is empty, expected a line of column names"),
        ("train header.csv --out o", "header.csv holds no items"),
        ("train folder.csv --out o", "folder.csv holds no images"),
        ("train latin.csv --out o", "latin.csv is not UTF-8 text"),
        ("train names.npz --out o", "names.npz cannot be read as an .npz archive of plain arrays: it is not one"),
        ("train flat.npz --out o", "flat.npz: x has shape (3,)"),
        ("train rows.csv --features few.npz --out o", "few.npz: no features of 9 of the 12 items, first 'q3'"),
        ("train rows.csv --labels folder.csv --out o", "folder.csv: cannot be read: Is a directory"),
        ("train rows.csv --labels rows.csv --out o", "rows.csv: no column 'shortlist'"),
        ("train rows.csv --size 2 --holdout 1 --out o", "holdout: expected a number from 0 to below 1, got 1.0"),
        ("train rows.csv --augment --out o", "augmentation is for images"),
        ("train rows.csv --out rows.csv", "rows.csv cannot be made a folder: File exists"),
        ("train rows.csv --out rows.csv/o", "rows.csv/o cannot be made a folder: Not a directory"),
        ("demo --out rows.csv", "rows.csv cannot be made a folder: File exists"),
        ("simulate rows.csv --size 4 --out s.csv", "size: expected 1..3 for the 3 classes of rows, got 4"),
        ("simulate rows.csv --size 2 --seed -1 --out s.csv", "seed: expected at least 0, got -1"),
        ("simulate rows.csv --size 2 --out folder.csv", "folder.csv: cannot be written: Is a directory"),
        ("simulate rows.csv --size 2 --out rows.csv", "rows.csv: is read, and would be written over"),
        ("predict o rows.csv --out rows.csv", "rows.csv: is read, and would be written over"),
        ("label rows.csv --known known.csv", "known.csv: row 2: unknown class 'zebra'"),
        ("label rows.csv --size 3", "size: expected 1 to 2 for 3 classes, got 3"),
        ("label rows.csv --retrain-every 0", "retrain_every: expected at least 1, got 0"),
        ("label rows.csv --out rows.csv", "rows.csv cannot be made a folder: File exists"),
        ("evaluate rows.csv rows.csv", "rows.csv: not a trained model"),
    ],
)
def test_what_is_not_what_it_is_taken_for(shortlist, here, words, line):
    def found():
        return {path: path.read_bytes() if path.is_file() else None for path in here.rglob("*")}

    before = found()
    done = shortlist(*words.split())
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert done.err.startswith(f"shortlist: {line}")
    assert found() == before


def test_no_name_at_all_is_not_this_folder(refused):
    assert "no data: expected a name or a path, got ''" in refused("")


@pytest.mark.slow
def test_a_traceback_is_never_seen(tmp_path):
    """In a process of its own, as a user meets it."""
    done = command("train", tmp_path / "none.csv", "--size", "2", "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err == f"shortlist: no such file or folder: {tmp_path / 'none.csv'}\n"


def test_answers_that_no_annotator_could_give(refused, tmp_path):
    ours = text_table(tmp_path / "ours.csv", text_rows(12))
    labels = tmp_path / "labels.csv"
    with labels.open("w", newline="") as file:
        csv.writer(file).writerows([("item", "shortlist", "answer"), ("q1", "top up|lost card", "exchange rate")])
    line = refused(ours, "--labels", labels)
    assert "labels.csv: row 2: the answer 'exchange rate' is not on the shortlist" in line


def test_a_terminal_that_lacks_a_letter_is_told_so(shortlist, tmp_path, monkeypatch):
    ours = text_table(tmp_path / "ours.csv", text_rows(12))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "latin-1"))
    done = shortlist("simulate", ours, "--size", "2", "--out", tmp_path / "Ωmega.csv")
    assert done.code == 2
    assert done.err == "shortlist: '\\u03a9' cannot be written as latin-1: try PYTHONUTF8=1\n"

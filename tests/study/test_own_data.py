"""`shortlist reproduce` and `report` on data of one's own, from choosing settings to the report without the data."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from shortlist.study.plan import datasets
from shortlist.study.run.ledger import Ledger, Ledgers

from .test_commands import environment

BOUNDED = """
from dataclasses import dataclass

from shortlist.methods import Method
from shortlist.risks import log_candidates


@dataclass(frozen=True)
class Bounded(Method):
    name, title, baseline = "bounded", "Bounded", True

    def objective(self, logits, batch):
        return batch.mean(1 - log_candidates(logits, batch.candidates).exp())
"""
METHODS = ["--methods", "bounded:Bounded,likelihood,proden", "--protocol", "fair", "--device", "cpu"]
TABLE = ["table1", "--datasets", "blobs.npz", *METHODS, "--sizes", "5,3", "--trials", "2", "--epochs", "3"]


def blobs(path, num_classes=7, train=210, test=70, shift=0.0):
    rng = np.random.default_rng(0)
    y = rng.integers(0, num_classes, train + test)
    x = (rng.normal(size=(num_classes, 6))[y] * 4 + rng.normal(size=(train + test, 6)) + shift).astype(np.float32)
    np.savez(path, x=x[:train], y=y[:train], x_test=x[train:], y_test=y[train:])


@pytest.fixture
def reproduce(shortlist, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "_OWN", {})
    (tmp_path / "bounded.py").write_text(BOUNDED)
    blobs("blobs.npz")

    def call(*words, results="mine"):
        datasets._OWN.clear()  # as in a process of its own
        datasets.load.cache_clear()
        return shortlist("reproduce", *words, "--results", results)

    return call


def stored(done):
    assert done.code == 0, done.err
    return int(re.search(r"(\d+) runs? stored, 0 left", done.err)[1])


def rows_of(folder):
    """Of every dataset, in the order of their names."""
    return [Ledgers(folder).of(name).rows() for name in Ledgers(folder).datasets()]


def test_from_tuning_to_the_report(reproduce, shortlist, tmp_path, monkeypatch):
    tune = ["tune", "--datasets", "blobs.npz", *METHODS, "--epochs", "2"]
    assert "48 runs are missing: " in reproduce(*tune, "--dry-run").err
    assert stored(reproduce(*tune)) >= 3 * 4 * 2 * 2  # methods, points, sizes, seeds
    assert {row.get("size") for row in Ledgers(tmp_path / "mine").of("tuning").rows()} == {4, 2, None}
    assert stored(reproduce(*tune)) == 0
    first = reproduce(*TABLE)
    assert stored(first) == 3 * 2 * 2
    assert re.search(r"blobs-\w{8}, classes 1-7, size 5, Bounded \(fair\) +2 ", first.out)
    again = reproduce(*TABLE)
    assert (stored(again), again.out) == (0, first.out)

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "blobs.npz").rename("elsewhere/blobs.npz")
    moved = reproduce(*TABLE, "--datasets", "elsewhere/blobs.npz")
    assert (stored(moved), moved.out) == (0, first.out)

    (tmp_path / "elsewhere" / "blobs.npz").unlink()
    monkeypatch.chdir(tmp_path / "elsewhere")
    datasets._OWN.clear()
    done = shortlist("report", tmp_path / "mine")
    assert done.code == 0, done.err
    text, page = ((tmp_path / "mine" / f"report.{kind}").read_text() for kind in ("md", "html"))
    assert text.startswith("# Methods compared on your own data")
    assert "Your own data: blobs.npz, 210 training and 70 test items, 7 classes, mlp." in text
    assert "| method | ours, paper's protocol | less SL, paired | last ten | ours, fair |" in text
    assert re.search(r"\n\| Bounded \| – .* ± \d\.\d\d \| .*2 of 5 trials; fair: 3 epochs instead of 30 \|\n", text)
    assert "not tuned" not in text
    for word in ("paper reports", "Paper reports", "difference |", "SL, the paper"):
        assert word not in text + page
    assert "size 3, fair" in next((tmp_path / "mine" / "figures").glob("figure2-blobs-*.svg")).read_text()
    assert "classes shown, of 7" in next((tmp_path / "mine" / "figures").glob("sizes-blobs-*.svg")).read_text()
    command = re.search(r"shortlist (reproduce table1 --datasets blobs.npz --methods proden [^<]*)", page)[1]
    assert "--sizes 5 --protocol fair --trials 2 --epochs 3" in command

    monkeypatch.chdir(tmp_path)
    blobs("blobs.npz")
    (cell,) = json.loads(reproduce(*shlex.split(command)[1:], "--json", results="rerun").out)["cells"]
    assert cell["last_epoch"] == cell["stored"]


def test_changed_data_is_run_again_and_stands_beside_what_it_was(reproduce, shortlist, tmp_path):
    words = ["table1", "--datasets", "blobs.npz", "--methods", "likelihood", "--sizes", "3", "--trials", "1"]
    assert stored(reproduce(*words, "--epochs", "1")) == 1
    blobs("blobs.npz", shift=0.5)
    assert stored(reproduce(*words, "--epochs", "1")) == 1
    names = Ledgers(tmp_path / "mine").datasets()
    assert len(names) == 2
    assert shortlist("report", "mine").code == 0
    text = (tmp_path / "mine" / "report.md").read_text()
    assert all(f"### Table 1: all classes, by size of the shortlist, {name}\n" in text for name in names)
    runs = pd.concat([pd.read_json(tmp_path / "mine" / "ledger" / f"{name}.jsonl", lines=True) for name in names])
    assert list(runs.groupby(["dataset", "line", "size"])["last"].count()) == [1, 1]


def test_thirty_classes_beside_digits(reproduce, shortlist, tmp_path):
    blobs("many.npz", 30, 600, 150)
    words = ["table1", "--datasets", "many.npz,digits", "--methods", "sl,cc", "--device", "cpu"]
    assert stored(reproduce(*words, "--trials", "1", "--epochs", "1")) == 2 * 6 * 3
    digits, many = rows_of(tmp_path / "mine")
    assert {(row["classes"], row["size"]) for row in many} == {("1-30", size) for size in (24, 21, 18, 15, 12, 9)}
    assert {"data" in row for row in many} == {True}
    assert {"data" in row for row in digits} == {False}
    assert stored(reproduce(*words, "--quick", results="quick")) == 2 * 3
    assert [{row["size"] for row in rows} for rows in rows_of(tmp_path / "quick")] == [{5}, {15}]
    datasets._OWN.clear()
    for folder in ("mine", "quick"):
        assert shortlist("report", folder).code == 0
    text = (tmp_path / "mine" / "report.md").read_text()
    assert re.search(r"\| many-\w{8} \| l = 24 \| l = 21 \| l = 18 \| l = 15 \| l = 12 \| l = 9 \|", text)
    assert "| method | paper reports |" in text  # of digits
    assert text.startswith("# The paper's study, re-run")
    assert re.search(r"many-\w{8}-quick", (tmp_path / "quick" / "report.md").read_text())


def test_a_folder_of_images_in_processes_of_their_own(reproduce, tmp_path):
    """A worker that has not read the data knows it from its batch."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 4)):
        for kind in range(3):
            (tmp_path / "pets" / part / str(kind)).mkdir(parents=True)
            for number in range(count):
                pixels = rng.integers(60 * kind, 60 * kind + 60, (16, 16)).astype(np.uint8)
                Image.fromarray(pixels).save(tmp_path / "pets" / part / str(kind) / f"{number}.png")
    words = ["table1", "--datasets", "pets", "--methods", "likelihood", "--trials", "2", "--epochs", "2"]
    assert stored(reproduce(*words, "--engine", "processes", "--processes", "2")) == 2 * 2
    (rows,) = rows_of(tmp_path / "mine")
    assert {(row["config"]["model"], row["size"], row["failed"]) for row in rows} == {
        ("lenet", 2, None),
        ("lenet", 1, None),
    }


def test_what_overlaps_in_name_with_tables_of_ten_classes(reproduce, shortlist, tmp_path):
    """All eight classes are `1-8`, as a part of ten is in Table 3."""
    blobs("eight.npz", 8)
    words = ["--datasets", "eight.npz", "--methods", "likelihood", "--trials", "1", "--epochs", "1"]
    assert stored(reproduce("table1", *words, "--sizes", "4")) == 1
    assert shortlist("report", "mine").code == 0
    text, page = ((tmp_path / "mine" / f"report.{kind}").read_text() for kind in ("md", "html"))
    assert "Table 3" not in text
    assert "--methods likelihood --sizes 4 --protocol" in page


def test_kill_9_and_the_same_command_again(reproduce, tmp_path):
    words = [*TABLE, "--epochs", "12"]
    process = subprocess.Popen(
        [sys.executable, "-m", "shortlist", "reproduce", *words, "--results", "mine"],
        env=environment(),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        if any(path.read_bytes().count(b"\n") >= 2 for path in tmp_path.glob("mine/ledger/blobs-*.jsonl")):
            break
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (path,) = tmp_path.glob("mine/ledger/blobs-*.jsonl")
    before = len(Ledger(path).rows())
    assert 2 <= before < 12
    assert stored(reproduce(*words)) == 12 - before
    assert len(path.read_text().splitlines()) == 12


def test_bad_input_is_one_line(reproduce):
    for words, complaint in (
        (["table1", "--datasets", "nothing.npz"], "no such file or folder"),
        (["tune", "--datasets", "nothing.npz"], "no such file or folder"),
        (["all", "--datasets", "blobs.npz"], "table3, table4, table5: sets of classes out of ten"),
        (["search", "--datasets", "blobs.npz"], "search: its recipes are for parts of ten classes, and blobs-"),
        (["table1", "--datasets", "blobs"], "unknown dataset of the study 'blobs'"),
    ):
        done = reproduce(*words)
        assert (done.code, done.out) == (2, "")
        assert complaint in done.err
        assert len(done.err.strip().splitlines()) == 1

"""The ledger: whole lines or nothing, no duplicates, many writers, whatever was cut off and wherever."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.errors import InputError
from shortlist.study.plan.grid import Cell, plan_run
from shortlist.study.plan.recipes import CHOICE, Recipes
from shortlist.study.plan.run_keys import RESULTS_VERSION, canonical, key_of, settings_key
from shortlist.study.plan.variants import MethodVariant, stated_options
from shortlist.study.run.ledger import SEARCH, TUNING, Ledger, Ledgers
from shortlist.training import RunConfig

ROOT = Path(__file__).parents[3]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
)
ROWS = st.lists(
    st.dictionaries(st.text(max_size=4).filter(lambda name: name != "key"), JSON, max_size=3), min_size=1, max_size=5
).map(lambda rows: [{**row, "key": f"k{i}"} for i, row in enumerate(rows)])


def filled(path, rows):
    ledger = Ledger(path)
    for row in rows:
        assert ledger.append(row)
    return ledger


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_appended_is_read(tmp_path):
    path = tmp_path / "deep" / "fashion.jsonl"
    rows = [{"key": "a", "accuracy": [0.1, None], "title": "Größe\n"}, {"key": "b", "size": None}]
    ledger = filled(path, rows)
    assert Ledger(path).rows() == ledger.rows() == rows == [ledger.get("a"), ledger.get("b")]
    assert "a" in ledger
    assert "c" not in ledger
    assert len(ledger) == 2
    assert path.read_bytes().count(b"\n") == 2  # a line a run: git can show what was added
    assert ledger.get("c") is None


def test_a_run_is_there_once(tmp_path):
    ledger = filled(tmp_path / "l.jsonl", [{"key": "a", "last": 1}])
    before = ledger.path.read_bytes()
    assert not ledger.append({"key": "a", "last": 2})
    assert not Ledger(ledger.path).append({"key": "a"})
    assert ledger.path.read_bytes() == before


@pytest.mark.slow
@settings(max_examples=60)
@given(ROWS, st.data())
def test_cut_off_at_any_byte(rows, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "l.jsonl"
        filled(path, rows)
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole)), label="cut")
        path.write_bytes(whole[:cut])
        said = []
        ledger = Ledger(path, said.append)
        # every line that was there to its last character is kept, also where only its end is missing
        kept = sum(len(part) <= cut for part in _ends(whole))
        assert ledger.rows() == rows[:kept]
        tail = cut not in (0, *(end + 1 for end in map(len, _ends(whole))))
        assert bool(said) == tail
        for row in rows:
            ledger.append(row)
        assert lines(path) == rows == Ledger(path).rows()


def _ends(whole):
    """The file up to the last character of each line, without its newline."""
    return [whole[: match.start()] for match in re.finditer(b"\n", whole)]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), max_size=12))
def test_duplicates_are_impossible(numbers):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "l.jsonl"
        two = [Ledger(path), Ledger(path)]  # neither knows what the other has written
        for turn, number in enumerate(numbers):
            fresh = number not in numbers[:turn]
            assert two[turn % 2].append({"key": str(number), "turn": turn}) == fresh
        assert [row["key"] for row in lines(path)] == [str(n) for n in dict.fromkeys(numbers)] if numbers else True


def test_repairs_are_said(tmp_path):
    path = tmp_path / "l.jsonl"
    filled(path, [{"key": "a"}, {"key": "b"}])
    said = []
    path.write_bytes(path.read_bytes()[:-4])
    assert [row["key"] for row in Ledger(path, said.append).rows()] == ["a"]
    assert said == [f"{path}: the last line was not whole (8 bytes) and was cut off; its run is done again"]
    path.write_bytes(path.read_bytes() + b'{"key":"c"}')
    assert [row["key"] for row in Ledger(path, said.append).rows()] == ["a", "c"]
    assert said[1:] == [f"{path}: the last line had no end; repaired"]
    assert path.read_bytes() == b'{"key":"a"}\n{"key":"c"}\n'


def test_a_reader_without_the_right_to_write_passes_over(tmp_path, monkeypatch):
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"key":"a"}\n{"ke')
    monkeypatch.setattr(os, "access", lambda *_: False)
    said = []
    assert len(Ledger(path, said.append)) == 1
    assert "is skipped" in said[0]
    assert path.read_bytes().endswith(b'{"ke')


@pytest.mark.parametrize("bad", [b"<<<<<<< HEAD", b"[1]", b'{"last":1}', b"", b"\xff\xfe", b'{"key":3}'])
def test_a_bad_line_in_the_middle_is_an_error_that_names_it(tmp_path, bad):
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"key":"a"}\n' + bad + b'\n{"key":"b"}\n')
    with pytest.raises(InputError, match=r"l\.jsonl: line 2 is no row of a ledger"):
        Ledger(path)


@pytest.mark.parametrize(
    ("row", "lacking"),
    [
        (
            {"key": "x", "kind": "choice", "line": "sl", "protocol": "fair"},
            "a choice without dataset, settings, source",
        ),
        ({"key": "x", "kind": "run"}, "a run without accuracy, classes, commit, config, dataset, date,"),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_row_that_lacks_what_its_readers_need_is_named_and_not_cut_off(tmp_path, row, lacking, end):
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"key":"a"}\n' + json.dumps(row).encode() + end)
    before = path.read_bytes()
    with pytest.raises(InputError, match=rf"l\.jsonl: line 2 is no row of a ledger: {lacking}"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_merge_that_repeats_a_line_is_said(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"key":"a","n":1}\n{"key":"a","n":2}\n')
    said = []
    assert Ledger(path, said.append).rows() == [{"key": "a", "n": 1}]
    assert "line 2 repeats the run a" in said[0]


def test_an_older_file_in_its_place_is_read_anew(tmp_path):
    ledger = filled(tmp_path / "l.jsonl", [{"key": "a"}, {"key": "b"}])
    ledger.path.write_bytes(b'{"key":"c"}\n')
    ledger.refresh()
    assert [row["key"] for row in ledger.rows()] == ["c"]
    ledger.path.unlink()
    ledger.refresh()
    assert not len(ledger)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    ledger = filled(tmp_path / "l.jsonl", [{"key": "a"}])
    before = ledger.path.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:5]))
    with pytest.raises(InputError, match="could not be written: No space left"):
        ledger.append({"key": "b"})
    monkeypatch.undo()
    assert ledger.path.read_bytes() == before
    assert ledger.append({"key": "b"})


def test_a_value_json_does_not_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        Ledger(tmp_path / "l.jsonl").append({"key": "a", "last": float("nan")})
    assert not (tmp_path / "l.jsonl").exists()


def test_a_folder_has_a_file_a_dataset(tmp_path):
    ledgers = Ledgers(tmp_path)
    for name in ("fashion", "mnist", "tuning", "search"):
        ledgers.of(name).append({"key": name})
    assert ledgers.datasets() == ["fashion", "mnist"]
    assert ledgers.of("fashion") is ledgers.of("fashion")


WRITER = """
import sys
from pathlib import Path
sys.modules["torch"] = None  # a ledger needs none, and starts faster
from shortlist.study.run.ledger import Ledger
path, name, count, shared = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ledger = Ledger(path)
print("ready", flush=True); sys.stdin.readline()
for i in range(count):
    own = ledger.append({"key": f"{name}{i}", "filling": "x" * (i * 37 % 5000)})
    ledger.append({"key": f"shared{i % shared}", "by": name})
    assert own
"""


def writer(path, name, count, shared=7):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    started = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count), str(shared)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert started.stdout.readline() == "ready\n"
    return started


def test_two_processes_append_at_once(tmp_path):
    path = tmp_path / "l.jsonl"
    both = [writer(path, name, 60) for name in ("a", "b")]
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.wait(60) for process in both] == [0, 0]
    keys = [row["key"] for row in lines(path)]
    assert sorted(keys) == sorted([f"{n}{i}" for n in "ab" for i in range(60)] + [f"shared{i}" for i in range(7)])


def test_writers_killed_at_any_moment(tmp_path):
    path = tmp_path / "l.jsonl"
    for number, pause in enumerate((0.01, 0.03, 0.06)):
        process = writer(path, f"w{number}-", 100_000)
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(pause)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    ledger = Ledger(path)
    assert lines(path) == ledger.rows()
    assert ledger.append({"key": "after"})
    for number in range(3):  # each writer's lines are there without a gap
        mine = [row["key"] for row in ledger.rows() if row["key"].startswith(f"w{number}-")]
        assert mine == [f"w{number}-{i}" for i in range(len(mine))]


def test_a_row_is_on_the_disk_when_append_returns(tmp_path, monkeypatch):
    """Without fsync a power cut would take back runs that were said to be stored."""
    synced, usual = set(), os.fsync

    def fsync(file):
        usual(file)
        synced.add((os.fstat(file).st_ino, os.fstat(file).st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    folder = tmp_path / "ledger"
    ledger = Ledger(folder / "l.jsonl")
    for number in range(3):
        ledger.append({"key": f"{number:016x}"})
        assert (ledger.path.stat().st_ino, ledger.path.stat().st_size) in synced
    assert folder.stat().st_ino in {inode for inode, _ in synced}  # the file's name, too


def test_our_ledger_opens_and_every_key_is_what_it_was():
    """A change of the code that changes a key would train everything again, or call another run by its name."""
    assert RESULTS_VERSION == 1, "raised: then results/ledger is run again, and these keys with it"
    ledgers = Ledgers(ROOT / "results")
    rows = [row for name in [*ledgers.datasets(), TUNING, SEARCH] for row in ledgers.of(name).rows()]
    runs = [row for row in rows if row["kind"] != CHOICE]
    assert len(runs) > 1_900
    tried = [row for row in Ledger(ROOT / "results" / "teacher_ablation.jsonl").rows() if "code" not in row]
    for row in [*runs, *tried]:  # the key of a method that is no part of the package follows its file
        options = stated_options(row["config"]["method"], row["config"]["method_options"])
        config = RunConfig.from_dict({**row["config"], "method_options": options})
        assert canonical(config, 10) == config
        assert key_of(row["dataset"], config) == row["key"], row["config"]
        assert settings_key({**row, "config": config.to_dict()}) == settings_key(row)


@pytest.mark.parametrize(
    ("dataset", "variant", "size", "trial", "key"),
    [
        ("mnist", "sl", 8, 0, "091d8cb2fa32f17c"),
        ("fashion", "likelihood", 5, 4, "a75ee6d480edec27"),
        ("fashion", "rc", 3, 2, "505ce7478c9d2be1"),
        ("fashion", "likelihood+aug", 3, 0, "654d417e14ef9302"),
        ("mnist", "ol-ovr", None, 1, "aa010661f27a23a1"),
    ],
)
def test_the_grid_comes_to_the_keys_that_are_stored(dataset, variant, size, trial, key):
    recipes = Recipes(Ledgers(ROOT / "results").of(TUNING).rows())
    run = plan_run(Cell(dataset, "1-10", size, MethodVariant.parse(variant)), trial, recipes)
    assert run.key == key
    assert key in Ledgers(ROOT / "results").of(dataset)


def test_the_teachers_stored_runs_are_those_of_its_defaults():
    stored = Ledgers(ROOT / "results")
    cell = Cell("cifar10", "1-10", 3, MethodVariant.parse("teacher+aug+strong"))
    run = plan_run(cell, 0, Recipes(stored.of(TUNING).rows()), 100)
    assert run.key == "855585760bb85504"
    assert run.key in stored.of("cifar10")
    assert canonical(dataclasses.replace(run.config, method_options={}), 10) == run.config

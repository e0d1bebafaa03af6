"""`shortlist reproduce` itself: stopped and started, killed, quick, listed, misused."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shortlist.cli import main
from shortlist.study.plan.grid import Cell, plan_run
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.run.ledger import Ledger

ROOT = Path(__file__).parents[2]


WORDS = ["reproduce", "table1", "--datasets", "digits", "--sizes", "5", "--trials", "2", "--device", "cpu"]


@pytest.fixture
def shortlist(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["shortlist", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return call


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}


def rows_of(folder):
    path = folder / "ledger" / "digits.jsonl"
    return Ledger(path).rows() if path.exists() else []


def test_reproduce_and_reproduce_again(shortlist, tmp_path):
    words = [*WORDS, "--methods", "sl,cc", "--epochs", "3"]
    code, out, err = shortlist(*words)
    assert code == 0, err
    assert len(rows_of(tmp_path / "results")) == 2 * 3
    assert "digits, classes 1-10, size 5, SL (paper)" in out
    assert "6 runs stored, 0 left" in err
    code, again, err = shortlist(*words)
    assert again == out
    assert "0 runs stored, 0 left" in err
    code, again, err = shortlist(*words, "--datasets", "digits,digits", "--sizes", "5,5", "--methods", "sl,cc,sl")
    assert again == out  # the trials of a dataset that is named twice are not counted twice
    code, out, err = shortlist(*words, "--json")
    assert [c["trials"] for c in json.loads(out)["cells"]] == [2, 2, 2, 2]


def test_a_cell_again_in_a_folder_of_its_own(shortlist, tmp_path):
    from shortlist.study.plan.grid import Cell
    from shortlist.study.report.results import Results

    words = [*WORDS, "--methods", "cc", "--epochs", "3"]
    assert shortlist(*words)[0] == 0
    result = Results(rows_of(tmp_path / "results"), Recipes()).of(
        Cell("digits", "1-10", 5, MethodVariant("cc", "paper"))
    )
    command = shlex.split(result.command("table1", Path("results")))
    assert command[0] == "shortlist"
    code, out, err = shortlist(*command[1:], "--json")
    assert code == 0, err
    (cell,) = json.loads(out)["cells"]
    assert cell["last_epoch"] == cell["stored"] == list(result.last)
    assert len(rows_of(tmp_path / "rerun")) == 2


def test_all_that_is_quick_says_which_tables_it_leaves_out(shortlist):
    code, _, err = shortlist("reproduce", "all", "--quick", "--datasets", "digits", "--methods", "sl", "--dry-run")
    assert code == 0
    assert "tables 3 to 5 have no lists of 5 and are left out" in err
    code, out, err = shortlist("reproduce", "table3", "--quick", "--datasets", "digits", "--methods", "sl", "--dry-run")
    assert code == 0
    assert "left out" not in err
    assert "classes 1-8" in out


def test_quick(shortlist, tmp_path):
    code, _, err = shortlist("reproduce", "table1", "--datasets", "digits", "--methods", "sl", "--quick")
    assert code == 0, err
    (row,) = Ledger(tmp_path / "results-quick" / "ledger" / "digits-quick.jsonl").rows()
    assert (row["config"]["epochs"], row["trial"], row["size"]) == (3, 0, 5)
    assert not (tmp_path / "results").exists()  # never mixed with the study's own


def test_dry_run_lists_and_trains_nothing(shortlist, tmp_path):
    code, out, err = shortlist(*WORDS, "--methods", "rc", "--dry-run")
    assert code == 0
    assert len(out.splitlines()) == 1 + 4
    assert re.search(r"4 runs are missing: about \d+\.\d minutes on this CPU, one after another \(about", err)
    assert rows_of(tmp_path / "results") == []
    runs = json.loads(shortlist(*WORDS, "--methods", "rc", "--dry-run", "--json")[1])["runs"]
    assert len({run["key"] for run in runs}) == 4
    assert shortlist(*WORDS, "--methods", "rc")[0] == 0
    code, out, err = shortlist(*WORDS, "--methods", "rc", "--dry-run")
    assert (code, out, err.strip()) == (0, "", "no run is missing")


@pytest.mark.parametrize(("what", "runs"), [("tune", (13 * 2 + 2) * 2 * 4), ("search", 30 * 8)])
def test_dry_runs_of_choices(shortlist, tmp_path, what, runs):
    code, out, err = shortlist("reproduce", what, "--datasets", "digits", "--dry-run")
    assert code == 0
    assert len(out.splitlines()) == 1 + runs
    assert f"{runs} runs are missing: " in err
    assert shortlist("reproduce", what, "--datasets", "digits,digits", "--dry-run") == (code, out, err)
    assert not (tmp_path / "results").exists()


def test_minutes(shortlist, tmp_path):
    code, _, err = shortlist(*WORDS, "--methods", "sl,rc", "--epochs", "20", "--minutes", "0.02")
    assert code == 0
    stored = len(rows_of(tmp_path / "results"))
    assert stored < 6
    assert f"{stored} run{'' if stored == 1 else 's'} stored, {6 - stored} left (about 0." in err
    assert "minutes), run the same command to go on" in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["table7"], "unknown part of the study 'table7': did you mean"),
        (["table1", "--datasets", "digts"], "unknown dataset of the study 'digts': did you mean 'digits'"),
        (["table1", "--methods", "sm"], "unknown method 'sm'"),
        (["table1", "--sizes", "five"], "size: expected a number, got 'five'"),
        (["table1", "--sizes", "5²"], "size: expected a number, got '5²'"),
        (["table1", "--sizes", ","], "--sizes: expected one or more, separated by commas, got ','"),
        (["table1", "--datasets", ""], "--datasets: expected one or more"),
        (["tune", "--datasets", "digits", "--methods", ","], "--methods: expected one or more"),
        (["table1", "--protocol", "unfair"], "protocol: expected both, paper or fair, got 'unfair'"),
        (["table1", "--engine", "rai", "--datasets", "digits"], "unknown engine 'rai'"),
        (["table1", "--minutes", "-1"], "minutes: expected more than 0"),
        (["table1", "--recipes", "nowhere"], "nowhere holds no ledger"),
        (["tune", "--datasets", "digits", "--methods", "xyz"], "unknown method 'xyz'"),
        (["tune", "--datasets", "digits", "--sizes", "5"], "--sizes: tune chooses settings for all of them"),
        (["search", "--datasets", "fashion", "--trials", "3"], "--trials: search chooses settings for all of them"),
        (["search", "--datasets", "digits", "--methods", "rc"], "--methods: search is for SL alone"),
        (["search", "--datasets", "digits", "--protocol", "paper"], "--protocol: search is for SL alone"),
    ],
)
def test_bad_input_is_one_line(shortlist, words, complaint):
    code, out, err = shortlist("reproduce", *words)
    assert code == 2
    assert complaint in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_kill_9_in_the_middle_loses_nothing_and_repeats_nothing(tmp_path, monkeypatch):
    words = [*WORDS, "--methods", "sl,cc,rc", "--epochs", "12", "--results", str(tmp_path / "killed")]
    path = tmp_path / "killed" / "ledger" / "digits.jsonl"
    seen = {}
    for target in (1, 4):  # killed when so many runs are stored, while the next is under way
        process = subprocess.Popen(
            [sys.executable, "-m", "shortlist", *words], env=environment(), stderr=subprocess.PIPE
        )
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            if path.exists() and path.read_bytes().count(b"\n") >= target:
                break
            time.sleep(0.01)
        time.sleep(0.1)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        stored = {row["key"]: row for row in Ledger(path).rows()}
        assert seen.items() <= stored.items()  # what was stored stays as it was
        seen = stored
    with path.open("ab") as file:
        file.write(b'{"key":"half a li')  # and the third time in the middle of a write
    monkeypatch.setattr(sys, "argv", ["shortlist", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    rows = Ledger(path).rows()
    assert len(rows) == 2 * 5
    assert len(path.read_text().splitlines()) == len({row["key"] for row in rows}) == 10
    assert {row["key"]: row for row in rows}.items() >= seen.items()


PRESS = """
import os, signal, sys
from shortlist.cli import main
from shortlist.study.run import driver
from shortlist.training.run import Run
def press_after(folder, owner, name, call):
    usual, calls = getattr(owner, name), []
    def pressing(*arguments):
        result = usual(*arguments)
        calls.append(None)
        if len(calls) == call: os.kill(os.getpid(), signal.SIGINT)
        return result
    setattr(owner, name, pressing)
    sys.argv[-1] = folder
    try: main()
    except SystemExit as end: print("ended with", end.code, file=sys.stderr)
    setattr(owner, name, usual)
"""


MOMENTS = {
    "inside a run": "Run, 'train_epoch', 6",
    "in the last epoch": "Run, 'train_epoch', 8",
    "between two runs": "driver, '_store', 1",
}


@pytest.mark.parametrize(("moments", "deaf"), [(list(MOMENTS), False), (["inside a run"], True)])
def test_ctrl_c_keeps_what_is_done(tmp_path, moments, deaf):
    """A script's background process starts deaf to Ctrl-C; the study listens at every moment all the same."""
    words = [*WORDS, "--methods", "sl,rc", "--epochs", "4", "--results", "that of the moment"]
    presses = [f"press_after({str(tmp_path / moment)!r}, {MOMENTS[moment]})\n" for moment in moments]
    process = subprocess.Popen(
        [sys.executable, "-c", PRESS + "".join(presses), *words],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if deaf else signal.default_int_handler),
    )
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    *said, rest = err.split("ended with 130\n")
    assert rest == ""
    for moment, lines in zip(moments, said, strict=True):
        last = "stopped: the runs that were finished are stored; run the same command to go on"
        assert lines.splitlines()[-1] == last
        assert len(rows_of(tmp_path / moment)) == 1


def test_ctrl_c_while_a_run_diverges(monkeypatch):
    """It is not taken for a run that failed, after which the next one would begin."""
    from shortlist.study.run.batches import RunBatch
    from shortlist.study.run.worker import train_batch
    from shortlist.training.run import Run

    usual = Run.train_epoch

    def pressed(run):
        os.kill(os.getpid(), signal.SIGINT)
        return usual(run) * float("nan")

    monkeypatch.setattr(Run, "train_epoch", pressed)
    run = plan_run(Cell("digits", "1-10", 5, MethodVariant("likelihood")), 0, Recipes(), epochs=3)
    with pytest.raises(KeyboardInterrupt):
        train_batch(RunBatch((run,), device="cpu"))


def test_the_path_of_the_gpu_machine_needs_no_absent_package(tmp_path):
    """That machine has no pooch, sqlalchemy, fastapi, nor pydantic (which this machine's typer needs for itself)."""
    absent = ("pooch", "sqlalchemy", "fastapi", "uvicorn", "alembic", "argon2", "psycopg", "ray", "tqdm")
    code = f"""
import sys
for name in {absent!r}: sys.modules[name] = None
from shortlist.cli import main
sys.argv = ["shortlist", *{[*WORDS, "--methods", "sl", "--epochs", "1", "--results", str(tmp_path)]!r}]
try: main()
except SystemExit as end: assert not end.code, end.code
sys.argv = ["shortlist", "report", {str(tmp_path)!r}]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()

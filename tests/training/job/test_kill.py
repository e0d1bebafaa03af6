"""`kill -9` at random moments: --resume ends in the very bytes of a run that was never killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from shortlist.cli import main
from shortlist.errors import InputError
from shortlist.labels import StochasticLabels
from shortlist.training.job.job import Job, train
from shortlist.training.saved.source import DataSource

from ..conftest import blobs

ROOT = Path(__file__).parents[3]
# a checkpoint after every epoch, so that the kill often falls into the writing of one
START = "import shortlist.training.loop as l; l.CHECKPOINT_SECONDS = 0; from shortlist.cli import main; main()"
WORDS = ["train", "own.npz", "--size", "2", "--epochs", "40", "--batch-size", "64", "--device", "cpu", "--out"]
# what a run holds: confidences of items, dice for views, either optimiser's moments, scores of held-out items
CASES = {
    "proden": ["--method", "proden", "--augment", "--model", "mlp"],
    "lw": ["--method", "lw", "--optimiser", "sgd", "--lr", "0.05", "--model", "mlp", "--holdout", "0.2"],
}


@pytest.fixture(autouse=True)
def _own_data(tmp_path, monkeypatch):
    """In a file of its own: digits would load scikit-learn into every process."""
    monkeypatch.chdir(tmp_path)
    data = blobs(count=600, shape=(1, 8, 8))
    np.savez("own.npz", x=data.train.x, y=data.train.y, x_test=data.test.x, y_test=data.test.y)


def start(*words, before=""):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        [sys.executable, "-c", before + START, *map(str, words)], env=environment, stderr=subprocess.PIPE, text=True
    )


def wait_for(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def undisturbed(words, out, monkeypatch):
    """The same command in this process, from the beginning to the end."""
    monkeypatch.setattr(sys, "argv", ["shortlist", *words, str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code


@pytest.mark.parametrize("case", CASES)
def test_killed_and_resumed(case, tmp_path, monkeypatch, capsys):
    words = [*WORDS[:-1], *CASES[case], "--out"]
    undisturbed(words, tmp_path / "whole", monkeypatch)
    out = tmp_path / "killed"
    checkpoint = out / "checkpoint.safetensors"
    chance = random.Random(case)
    kills = 0
    for _ in range(2):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = start(*words, out, "--resume")
        wait_for(lambda b=before: checkpoint.exists() and checkpoint.stat().st_mtime_ns != b, process)
        time.sleep(chance.random() * 0.4)
        process.kill()
        _, err = process.communicate()
        kills += process.returncode == -signal.SIGKILL
        assert process.returncode in (-signal.SIGKILL, 0), err
        if (out / "weights.safetensors").exists():
            break  # it was done before the signal came
    assert kills
    undisturbed([*words[:-1], "--resume", "--out"], out, monkeypatch)
    for name in ("weights.safetensors", "config.json", "scores.json", "card.md", "confusion.svg"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert {path.name for path in out.iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}


def test_what_a_killed_process_had_begun_is_removed_at_the_next_start(tmp_path):
    """Killed in the writing of a checkpoint, in safetensors, and in that of the finished folder."""
    out = tmp_path / "run"
    in_writing = (
        "import os, safetensors.torch as s\n"
        "def save_file(tensors, path, metadata):\n"
        "    for name in ('.tmpaB3x_9', path.name):\n"
        "        (path.parent / name).write_bytes(b'half')\n"
        "    (path.parent / '.new-0123456789ab').mkdir()\n"
        "    (path.parent / '.new-0123456789ab' / 'config.json').touch()\n"
        "    os.kill(os.getpid(), 9)\n"
        "s.save_file = save_file\n"
    )
    process = start(*WORDS, out, before=in_writing)
    assert process.wait() == -signal.SIGKILL
    assert {path.name[:5] for path in out.iterdir()} == {".chec", ".tmpa", ".new-"}
    theirs = {".tmp", ".tmpfiles", ".notes.tmp", ".git", "new-1", ".answers.csv.0123456789abcdef.tmp"}
    for name in theirs:
        (out / name).touch()
    theirs |= {".tmpfolder"}  # named as what safetensors begins, but a folder
    (out / ".tmpfolder").mkdir()
    train(Job(DataSource("own.npz"), out, {"epochs": 1, "size": 2}, device="cpu"))
    train(Job(DataSource("own.npz"), tmp_path / "whole", {"epochs": 1, "size": 2}, device="cpu"))
    assert {path.name for path in out.iterdir()} == theirs | {path.name for path in (tmp_path / "whole").iterdir()}


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    words = [*WORDS[:-3], "--epochs", "400", "--model", "mlp", "--device", "cpu", "--out"]
    out = tmp_path / "run"
    process = start(*words, out)
    wait_for((out / "checkpoint.safetensors").exists, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "finishing this epoch" in err
    assert f"saved in {out}" in err
    go_on = err.strip().splitlines()[-1].split()
    assert go_on == ["shortlist", *words, str(out), "--resume"]
    assert "Traceback" not in err
    assert (out / "checkpoint.safetensors").exists()
    assert not (out / "weights.safetensors").exists()


def test_resuming_what_is_finished_does_nothing(tmp_path, monkeypatch, capsys):
    words = ["train", "own.npz", "--size", "2", "--epochs", "2", "--out"]
    undisturbed(words, tmp_path / "run", monkeypatch)
    before = (tmp_path / "run" / "weights.safetensors").stat().st_mtime_ns
    undisturbed(["train", "--resume", *words[1:]], tmp_path / "run", monkeypatch)
    assert "finished already" in capsys.readouterr().err
    assert (tmp_path / "run" / "weights.safetensors").stat().st_mtime_ns == before
    monkeypatch.setattr(sys, "argv", ["shortlist", *words, str(tmp_path / "run"), "--resume", "--lr", "0.5"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "a run with lr = 0.003, this one has 0.5" in capsys.readouterr().err


def test_what_is_finished_is_not_tuned_again(tmp_path, monkeypatch):
    settings = {"size": 2, "epochs": 2, "model": "mlp"}
    job = Job(DataSource("own.npz"), tmp_path / "run", settings, tune="lr", device="cpu", resume=True)
    chosen = train(job).trained.config.lr
    monkeypatch.setattr("shortlist.training.job.job.tune", None)
    again = train(job)
    assert again.again
    assert again.trained.config.lr == chosen


def test_what_is_finished_on_other_labels_is_not_taken_for_this_run(tmp_path):
    def job(seed):
        file = tmp_path / f"labels{seed}.csv"
        y = np.load("own.npz")["y"]
        StochasticLabels.draw(y, num_classes=4, size=2, seed=seed, class_names=tuple("0123")).write(file)
        return Job(DataSource("own.npz"), tmp_path / "run", {"epochs": 2}, labels=file, device="cpu", resume=True)

    assert not train(job(0)).again
    assert train(job(0)).again
    with pytest.raises(InputError, match="run: a run on other data or other labels than these"):
        train(job(1))

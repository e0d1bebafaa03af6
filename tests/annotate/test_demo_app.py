"""The demo: one command, robots through the real API, a model beside the server that chooses the lists."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from shortlist.annotate import robots
from shortlist.annotate.db.schema import Question, Slot
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.robots import Manner, decide

from .running import COMMAND

LIST = [{"class": k, "name": name} for k, name in enumerate(["cat", "dog", "emu"])]


def test_robots_err_as_often_as_they_are_told():
    dice, manner = random.Random(0), Manner(slip=0.1, miss=0.2)
    given = [decide(LIST, "dog", manner, dice) for _ in range(4000)]
    assert given.count(None) / 4000 == pytest.approx(0.2, abs=0.03)
    assert (given.count(0) + given.count(2)) / 4000 == pytest.approx(0.1, abs=0.02)
    assert given.count(0) == pytest.approx(given.count(2), rel=0.3)
    assert {decide(LIST, "fox", manner, dice) for _ in range(50)} == {None}


@pytest.mark.slow
def test_the_demo_learns_from_robots(tmp_path: Path):
    command = [*COMMAND, "demo", "--robots", "6", "--think", "0.05", "--port", "0", "--folder", str(tmp_path / "p")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "/join#" in process.stdout.readline()
        assert "/join#" in process.stdout.readline()
        assert "6 robots" in process.stdout.readline()
        end = time.monotonic() + 60
        while True:
            with Project.open(tmp_path / "p") as project:
                found = Stats(project.store).status()
            accuracy = [m["value"] for m in found["measures"] if m["name"] == "accuracy" and m["answers"] > 300]
            if accuracy:
                break
            assert time.monotonic() < end, found["progress"]
            assert process.poll() is None
            time.sleep(0.3)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()
        process.stderr.close()
    assert accuracy[-1] > 0.6
    assert sum(who["gold"] for who in found["annotators"]) > 0
    with Project.open(tmp_path / "p") as project, project.store.read() as connection:
        asked = select(Question.policy, Question.shortlist).join(Slot, Slot.id == Question.slot_id).where(~Slot.gold)
        rows = connection.execute(asked.order_by(Question.id)).all()
    assert rows[-1].policy == "adaptive"
    late = [len(row.shortlist) for row in rows[-100:]]
    assert sum(late) / len(late) < 4, "five at first, fewer as the model learns"
    assert not _children(process.pid), "the crowd and the trainer went with the server"


def _children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


def test_examples_in_docstrings():
    import doctest

    assert doctest.testmod(robots).failed == 0


def test_the_crowd_needs_the_standard_library_and_pillow_only():
    code = "import shortlist.annotate.robots, sys; print(sorted({'torch', 'httpx', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"

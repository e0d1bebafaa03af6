"""The demo: one command, robots through the real API, a model beside the server that chooses the lists."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

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
    command = [*COMMAND, "demo", "--robots", "6", "--think", "0.1", "--port", "0", "--folder", str(tmp_path / "p")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **pipes)
    try:
        assert "/join#" in process.stdout.readline()
        assert "/join#" in process.stdout.readline()
        assert "6 robots" in process.stdout.readline()
        end = time.monotonic() + 120
        while not (learned := _learned(tmp_path / "p")):
            assert time.monotonic() < end, "five names at first, fewer as the model learns"
            assert process.poll() is None
            time.sleep(0.3)
    finally:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the crowd gets it too
        _, said = process.communicate(timeout=20)
    assert "Traceback" not in said
    assert [one["value"] for one in learned["measures"] if one["name"] == "accuracy"][-1] > 0.6
    assert sum(who["gold"] for who in learned["annotators"]) > 0
    assert not _children(process.pid), "the crowd and the trainer went with the server"


def _learned(folder: Path) -> dict[str, Any] | None:
    """The demo's status, once the model was scored after 300 answers and its latest lists are short."""
    with Project.open(folder) as project:
        found = Stats(project.store).status()
        asked = select(Question.policy, Question.shortlist).join(Slot, Slot.id == Question.slot_id).where(~Slot.gold)
        with project.store.read() as connection:
            late = connection.execute(asked.order_by(Question.id.desc()).limit(100)).all()
    scored = any(one["name"] == "accuracy" and one["answers"] > 300 for one in found["measures"])
    short = scored and late[0].policy == "adaptive" and sum(len(row.shortlist) for row in late) < 4 * len(late)
    return found if short else None


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

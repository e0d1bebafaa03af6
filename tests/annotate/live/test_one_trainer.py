"""Of several servers on one PostgreSQL project one trains; another takes over when that one ends or loses its claim."""

import time

import pytest

from shortlist.annotate.db import claim
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.live.supervisor import Supervisor
from shortlist.annotate.project.project import Project

from ..conftest import new_database
from ..db.test_writer import end_connections

pytestmark = pytest.mark.postgres


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def trains(supervisor) -> bool:
    return supervisor.trainer is not None and supervisor.trainer.poll() is None


def test_one_server_trains(make_project, postgres, monkeypatch, capfd):
    monkeypatch.setattr(claim, "LOOK_SECONDS", 0.02)
    url = new_database(postgres)
    folder = make_project(url, items=6, classes=3).folder
    said = ""

    def hear() -> str:
        nonlocal said
        said += capfd.readouterr().err
        return said

    with Project.open(folder) as one, Project.open(folder) as two:
        first, second = Supervisor(one, LivePlan()), Supervisor(two, LivePlan())
        try:
            first.start()
            until(lambda: trains(first))
            second.start()
            until(lambda: "another server trains" in hear())
            assert second.trainer is None
            assert hear().count("another server trains") == 1, "said once"
            end_connections(url)  # both lose theirs: whoever comes first has it, and only that one
            until(lambda: hear().count("live: OperationalError") >= 2)
            until(lambda: first.trains != second.trains and trains(first) == first.trains != trains(second))
            holder, other = (first, second) if first.trains else (second, first)
            holder.stop()
            until(lambda: trains(other))
            assert not trains(holder)
        finally:
            first.stop()
            second.stop()

"""Runs in processes of their own: when one of them fails, none is left behind."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from shortlist.errors import InputError
from shortlist.policies import LoopSettings
from shortlist.policies.simulation import Comparison
from shortlist.policies.simulation.processes import Run, play


class _Player(NamedTuple):
    """Most runs never end by themselves; one fails as soon as another is under way."""

    folder: Path
    """Holds an empty file for each process, named by its id."""
    killed: bool = False

    def play(self, run, data, tick):
        (self.folder / str(os.getpid())).touch()
        while run.way == "endless" or len(list(self.folder.iterdir())) < 2:
            time.sleep(0.01)
        if self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        raise InputError("this run cannot be done")


def _runs(process: str) -> bool:
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("killed", "message"), [(False, "^this run cannot be done$"), (True, "was killed: out of memory")]
)
def test_when_a_run_fails_the_others_are_ended(blobs, tmp_path, killed, message):
    runs = [Run("endless", 0), Run("failing", 0), Run("endless", 1)]
    with pytest.raises(InputError, match=message):
        list(play(runs, _Player(tmp_path, killed), blobs, lambda *_: None, jobs=2))
    begun, deadline = [path.name for path in tmp_path.iterdir()], time.monotonic() + 30
    assert len(begun) == 2
    while any(map(_runs, begun)):
        assert time.monotonic() < deadline, "a run goes on"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_run_that_fails_on_ray_is_told_in_one_line(blobs):
    pytest.importorskip("ray")
    with pytest.raises(InputError, match=r"^budget: 1 reads are not enough for one question$"):
        Comparison(LoopSettings(), budget=1, seeds=1, rivals=False).run(blobs, ray="local")

"""A class that is on every list: as the app shows it."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from shortlist.annotate.queue.chooser import Choice
from shortlist.annotate.queue.pinned import Pinned
from shortlist.cli.label import label
from shortlist.policies import LoopSettings, Policy
from shortlist.policies.choose import choose_one
from shortlist.policies.loop import Loop
from shortlist.policies.simulation.simulate import random_shortlists, run_loop

OWN = 4
SETTINGS = LoopSettings(policy=Policy("adaptive", max_size=3), representatives=0)


class _Top:
    """The app's chooser, on the beliefs of one item."""

    def __init__(self, policy, beliefs):
        self.policy, self.beliefs = policy, beliefs

    def choose(self, item, num_classes, refused, seed):
        shown, inclusion = choose_one(self.policy, self.beliefs, np.array(refused, np.int64), seed)
        return Choice(tuple(shown), tuple(inclusion), "adaptive", "1")


def test_every_list_is_the_one_that_the_app_would_show(blobs, monkeypatch):
    refused: dict[int, list[int]] = {}
    seen = {"with": 0, "without": 0}
    record = Loop.record

    def compared(loop, rows, lists, sizes, answer, typed=None):
        for row, shown, size, picked in zip(rows.tolist(), lists, sizes, answer, strict=True):
            before = refused.setdefault(row, [])
            beliefs = loop.beliefs(np.array([row]))[0]
            wanted = Pinned(_Top(SETTINGS.policy, beliefs), OWN).choose(row, 12, before, 0)
            assert tuple(shown[:size]) == wanted.shortlist
            assert (shown[size:] == 12).all()
            seen["with" if OWN in wanted.shortlist else "without"] += 1
            before += wanted.shortlist if picked < 0 else []
        record(loop, rows, lists, sizes, answer, typed)

    monkeypatch.setattr(Loop, "record", compared)
    end = run_loop(blobs, SETTINGS, way="w", seed=0, pinned=OWN).points[-1]
    assert (end.resolved, end.correct) == (1.0, 1.0)
    assert min(seen.values()) > 50, seen


def test_random_lists_have_it_too(blobs):
    """Each item is asked about once: 3 classes and the pinned one, and every item of that class is found."""
    settings = random_shortlists(SETTINGS, 3, again=False)
    plain, pinned = (run_loop(blobs, settings, way="w", seed=0, pinned=own).points[-1] for own in (None, OWN))
    assert (plain.questions, plain.reads) == (350, 3 * 350)
    assert (pinned.questions, pinned.reads) == (350, 4 * 350)
    assert pinned.hits - plain.hits > 0.5 * (blobs.y == OWN).sum()


def test_the_command_pins_by_name(tmp_path):
    app = typer.Typer()
    app.command()(label)
    words = ["card", "rate", "pin", "app", "none of these"]
    path = tmp_path / "t.csv"
    path.write_text("text,label\n" + "".join(f"my {words[i % 5]} now {i},{words[i % 5]}\n" for i in range(100)))
    base = [str(path), "--seeds", "1", "--no-rivals", "--json", "--out", str(tmp_path / "out")]
    found = json.loads(CliRunner().invoke(app, [*base, "--pinned", "none of these"]).stdout)
    assert found["pinned"] == "none of these"
    other = CliRunner().invoke(app, base)
    assert "holds another comparison (other pinned)" in str(other.exception)
    wrong = CliRunner().invoke(app, [*base, "--pinned", "pim"])
    assert "unknown class to pin 'pim'" in str(wrong.exception)
    assert "did you mean 'pin'" in str(wrong.exception)


@pytest.mark.parametrize("kind", ["top", "information", "uniform"])
def test_any_policy_ends(blobs, kind):
    settings = LoopSettings(policy=Policy(kind, size=2, max_size=3), representatives=0)
    assert run_loop(blobs, settings, way="w", seed=0, pinned=OWN).points[-1].resolved == 1.0

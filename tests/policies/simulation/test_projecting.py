"""What a few labelled items say of the cost of many: held against the loop played on many."""

import json
import re

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from shortlist.cli.plan import plan as command
from shortlist.data import UNLABELLED, Dataset, Split
from shortlist.errors import InputError
from shortlist.policies import TimeModel
from shortlist.policies.simulation import projecting
from shortlist.policies.simulation.projecting import project_cost

CLASSES = tuple("abcdefghijklmnop")


def blobs(count, seed=0, labelled=None):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).standard_normal((len(CLASSES), 12)) * 1.2
    y = rng.integers(0, len(CLASSES), count)
    x = (centres[y] + rng.standard_normal((count, 12))).astype(np.float32)
    y[count if labelled is None else labelled :] = UNLABELLED
    return Dataset("blobs", Split(x, y), None, CLASSES, "features")


def test_the_cost_of_many_is_told_by_few(monkeypatch):
    monkeypatch.setattr(projecting, "SEEDS", 2)
    ticks = []
    told = project_cost(blobs(160), 640, TimeModel(), tick=lambda: ticks.append(1))
    assert len(ticks) == 2
    count, real = projecting._play(blobs(800, seed=1), TimeModel(), 0)
    assert count == 640
    assert (told.questions, told.seconds) == pytest.approx((real[0], real[2]), rel=0.2)
    # blobs get cheaper faster than `POWER` says, and reads vary: 1.1 to 1.45 was seen, by the rounding of a processor
    assert 0.9 < told.reads / real[1] < 1.7
    few = project_cost(blobs(160), 128, TimeModel())
    assert few.reads > 1.3 * told.reads
    assert told.basis == "from 160 of your items"


def test_fewer_items_than_have_a_class_cost_what_so_few_cost(monkeypatch):
    """As many are played as are to be labelled, and not all that there are: few cost more each."""
    monkeypatch.setattr(projecting, "SEEDS", 1)
    few, all_of_them = (project_cost(blobs(900), items, TimeModel()) for items in (150, 900))
    assert (few.basis, all_of_them.basis) == ("from 150 of your items", "from 900 of your items")
    assert few.reads > 1.3 * all_of_them.reads


def test_no_items_to_tell_no_projection():
    assert project_cost(blobs(300, labelled=99), 1000, TimeModel()) is None
    unlabelled = blobs(300)
    assert project_cost(Dataset("x", Split(unlabelled.train.x), None, CLASSES, "features"), 9, TimeModel()) is None


def test_the_command_projects_from_labelled_items(tmp_path, monkeypatch):
    monkeypatch.setattr(projecting, "SEEDS", 1)
    words = ["lost card", "exchange rate", "cancel transfer", "change pin", "top up failed", "verify identity"]
    lines = [f"{i},hello about my {words[i % 6]} now {i},{words[i % 6] if i < 120 else ''}" for i in range(200)]
    (tmp_path / "mine.csv").write_text("\n".join(["item,text,label", *lines]))
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, ["--data", str(tmp_path / "mine.csv"), "--items", "5000", "--json"])
    content = json.loads(result.stdout)
    assert (content["classes"], content["items"]) == (6, 5000)
    resolved, mark = content["ways"][-2:]
    assert resolved["basis"] == mark["basis"] == "from 120 of your items"
    assert 5000 <= resolved["reads"] < 5500  # each class has words of its own
    assert mark["reads"] < resolved["reads"]
    fewer = CliRunner().invoke(app, ["--data", str(tmp_path / "mine.csv"), "--items", "110", "--json"])
    assert "110 items to label, fewer than the 120 of mine that have a class already" in fewer.stderr
    contradicted = CliRunner().invoke(app, ["--data", str(tmp_path / "mine.csv"), "--classes", "5"])
    assert "classes: 5 stated, and" in str(contradicted.exception)
    assert "mine.csv has 6" in str(contradicted.exception)
    names = tmp_path / "names.txt"
    for content, said in (
        ([*words, words[0]], "names.txt: class 'lost card' occurs 2 times"),
        (words[1:], "names.txt: class 'lost card' of .*mine.csv is missing"),
    ):
        names.write_text("\n".join(content))
        refused = CliRunner().invoke(app, ["--data", str(tmp_path / "mine.csv"), "--names", str(names)])
        assert re.search(said, str(refused.exception))
    nothing = CliRunner().invoke(app, ["--data", str(tmp_path / "mine.csv"), "--items", "0"])
    assert str(nothing.exception) == "items: expected at least 1, got 0"
    (tmp_path / "one.csv").write_text("\n".join(["item,text,label", *(f"{i},word {i},same" for i in range(200))]))
    refused = CliRunner().invoke(app, ["--data", str(tmp_path / "one.csv")])
    assert isinstance(refused.exception, InputError)

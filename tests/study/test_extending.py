"""What is added to the study needs one new file and one line in a registry.

A method of one's own needs the file alone (`--methods mine:Mine`): report/test_report.py puts one into the tables.
"""

import re
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

from shortlist.errors import InputError
from shortlist.methods import METHODS
from shortlist.methods.cc import CC
from shortlist.study.commands import Study
from shortlist.study.plan import datasets
from shortlist.study.plan.datasets import StudyDataset, study_dataset
from shortlist.study.plan.grid import Wanted, planned
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.run_keys import digest, own_code
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.page import write_report
from shortlist.study.run.engines import Local

from .conftest import FakeEngine

NEW_FILE = """
from dataclasses import replace

from shortlist.data import load


def read():
    return replace(load("digits"), name="scans")
"""


def test_a_new_dataset_is_one_file_and_one_entry(tmp_path, monkeypatch):
    (tmp_path / "scans.py").write_text(NEW_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "scans", raising=False)
    import scans

    entry = StudyDataset("scans", "Scans", "mlp", 2, in_paper=False, note="not in the paper", read=scans.read)
    monkeypatch.setitem(datasets._DATASETS, "scans", entry)
    wanted = Wanted(("table1",), ("scans",), ("sl", "likelihood"), sizes=(5,), trials=1)
    outcome = Study(tmp_path, device="cpu").run_tables(wanted, Local("cpu"))
    assert (outcome.stored, outcome.failed, outcome.left) == (2, 0, 0)
    text = write_report(tmp_path).text.read_text()
    assert "### Table 1: all classes, by size of the shortlist, Scans" in text
    assert "| Scans | l = 5 |" in text


OWN = """
from dataclasses import dataclass

from shortlist.methods.cc import CC


@dataclass(frozen=True)
class Mine(CC):
    name, title = "mine", "Mine"

    def objective(self, logits, batch):
        return SIGN * super().objective(logits, batch)
"""


def edit(folder, source):
    """What the method's file says from now on, as if in a process of its own."""
    (folder / "my_formula.py").write_text(source)
    sys.modules.pop("my_formula", None)
    own_code.cache_clear()


def test_a_changed_formula_is_run_again_and_stands_in_the_table(tmp_path, monkeypatch, shortlist):
    """Figures of what the file said before must not pass for those of what it says now."""
    monkeypatch.chdir(tmp_path)
    words = ["reproduce", "table1", "--quick", "--datasets", "digits", "--protocol", "fair", "--device", "cpu"]

    def reproduce(source):
        edit(tmp_path, source)
        done = shortlist(*words, "--methods", "my_formula:Mine")
        assert done.code == 0, done.err
        return done

    learned = reproduce(OWN.replace("SIGN", "1"))
    assert "1 run stored" in learned.err
    again = reproduce(OWN.replace("SIGN", "1"))
    assert again.out == learned.out
    assert "0 runs stored" in again.err
    outdated = "run before its file was changed, and not since"
    assert outdated not in write_report(tmp_path / "results-quick").text.read_text()
    edit(tmp_path, OWN.replace("SIGN", "-1"))
    told = write_report(tmp_path / "results-quick").text.read_text()
    assert told.count(outdated) == 2  # at a glance, and beside its row
    unlearned = reproduce(OWN.replace("SIGN", "-1"))
    assert "1 run stored" in unlearned.err
    assert outdated not in write_report(tmp_path / "results-quick").text.read_text()
    figures = [float(re.search(r"([\d.]+) \(1 trial\)", done.out)[1]) for done in (learned, unlearned)]
    assert figures[0] > 80
    assert figures[1] < 20
    assert f"{figures[1]:.2f}" in write_report(tmp_path / "results-quick").text.read_text()


def test_a_change_of_the_class_that_it_is_derived_from_is_a_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for sign in ("1", "1", "-1"):
        sys.modules.pop("my_derived", None)
        edit(tmp_path, OWN.replace("SIGN", sign))
        (tmp_path / "my_derived.py").write_text("from my_formula import Mine\n\n\nclass Derived(Mine):\n    pass\n")
        found.append([own_code(name)["code"] for name in ("my_derived:Derived", "my_formula:Mine")])
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    assert found[0][1] == digest({"source": OWN.replace("SIGN", "1")})  # as stored by users so far


def test_a_method_without_a_file_is_refused(monkeypatch):
    """After a change its stored runs would pass for those of the new formula."""
    typed = dataclass(frozen=True)(type("Typed", (CC,), {"name": "typed", "__module__": "a_notebook"}))
    monkeypatch.setitem(METHODS, "typed", typed)
    with pytest.raises(InputError, match="'typed': name your own module:Class"):
        Wanted(("table1",), ("digits",), ("typed",))
    notebook = ModuleType("a_notebook")
    notebook.Typed = typed
    monkeypatch.setitem(sys.modules, "a_notebook", notebook)
    with pytest.raises(InputError, match="'a_notebook:Typed': save it in a file"):
        planned(Wanted(("table1",), ("digits",), ("a_notebook:Typed",)), Recipes())


def test_a_formula_that_is_taken_back_has_its_own_settings_again(tmp_path, monkeypatch):
    """What was tuned with another formula stands only where nothing was tuned with this one."""
    monkeypatch.chdir(tmp_path)
    study, variant = Study(tmp_path, device="cpu"), MethodVariant("my_formula:Mine")

    def rate(source, tune_at=None):
        edit(tmp_path, source)
        if tune_at is not None:
            best = FakeEngine(level=lambda config: 0.9 if config.lr == tune_at else 0.6)
            study.tune(["digits"], ["my_formula:Mine"], ("fair",), best, epochs=1)
        return study.recipes.of(study_dataset("digits"), variant).lr

    first, second = OWN.replace("SIGN", "1"), OWN.replace("SIGN", "2")
    assert rate(first, tune_at=0.1) == 0.1
    assert rate(second) == 0.1
    assert rate(second, tune_at=0.01) == 0.01
    assert rate(first) == 0.1
    assert rate(first, tune_at=0.1) == 0.1
    (tmp_path / "my_formula.py").unlink()
    sys.modules.pop("my_formula")
    own_code.cache_clear()
    assert len(study.recipes) == 1  # a report reads them where the file is not

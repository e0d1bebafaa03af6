"""What is added to the study needs one new file and one line in a registry.

A method of one's own needs the file alone (`--methods mine:Mine`): report/test_report.py puts one into the tables.
"""

import sys

from shortlist.study.commands import Study
from shortlist.study.plan import datasets
from shortlist.study.plan.datasets import StudyDataset
from shortlist.study.plan.grid import Wanted
from shortlist.study.report.page import write_report
from shortlist.study.run.engines import Local

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

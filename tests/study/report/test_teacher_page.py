"""docs/teacher.md says what the stored runs say."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FIGURE = re.compile(r"[+-]?\d+\.\d\d(?: ± \d+\.\d\d)?")


def figures(table: str) -> set[str]:
    """Those with two decimals, with their standard errors, of the rows of tables."""
    return {figure for row in table.splitlines() if row.startswith("|") for figure in FIGURE.findall(row)}


@pytest.fixture
def printed(monkeypatch, capsys):
    """What the script that the page names prints."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["teacher_compare.py", "cifar10", "fashion"])
    runpy.run_path("benchmarks/teacher_compare.py", run_name="__main__")
    return capsys.readouterr().out


def test_every_figure_of_its_results_is_printed_from_the_ledger(printed):
    page = (ROOT / "docs" / "teacher.md").read_text()
    results = page[page.index("## Results") : page.index("**Goals and results")]
    stated = figures(results)
    assert len(stated) > 100
    assert stated <= figures(printed)

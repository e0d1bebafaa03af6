"""docs/teacher.md says what the stored runs say."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "teacher.md").read_text()
FIGURE = re.compile(r"[+-]?\d+\.\d\d(?: ± \d+\.\d\d)?")


def figures(table: str) -> set[str]:
    """Those with two decimals, with their standard errors, of the rows of tables."""
    return {figure for row in table.splitlines() if row.startswith("|") for figure in FIGURE.findall(row)}


@pytest.fixture
def printed(monkeypatch, capsys):
    """What a script prints that the page names."""

    def run(name: str, *arguments: str) -> str:
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        monkeypatch.syspath_prepend(ROOT / "benchmarks")  # as `python benchmarks/...` does
        runpy.run_path(f"benchmarks/{name}", run_name="__main__")
        return capsys.readouterr().out

    return run


def test_every_figure_of_its_results_is_printed_from_the_ledger(printed):
    results = PAGE[PAGE.index("## Results") : PAGE.index("**Goals and results")]
    stated = figures(results)
    assert len(stated) > 100
    assert stated <= figures(printed("teacher_compare.py", "cifar10", "fashion"))


def test_its_table_of_other_forms_is_printed_from_what_is_stored(printed):
    forms = PAGE[PAGE.index("### Other forms") : PAGE.index("## Settings and tries")]
    rows = [line for line in forms.splitlines() if line.startswith("|")]
    assert len(rows) > 20
    assert "\n".join(rows) in printed("teacher_ablation.py", "table", "cifar10")

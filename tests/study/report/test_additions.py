"""What is not in the paper has rows of its own: methods, augmentation, datasets."""

import sys

from shortlist.study.plan.grid import Cell, Wanted, plan_run, planned
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report import claims, tables
from shortlist.study.report.page import write_report
from shortlist.study.report.results import Results

from ..conftest import fake_row
from .conftest import NONE_CHOSEN, missing, write


def test_augmented_lines_have_rows_of_their_own():
    cell = Cell("cifar10", "1-10", 5, MethodVariant("likelihood", augment=True))
    results = Results([fake_row(plan_run(cell, t, NONE_CHOSEN), 0.9) for t in range(3)], NONE_CHOSEN)
    shown = tables.build_table("table1", "cifar10", results)
    titles = {group.title: [row.title for row in group.rows] for group in shown.groups}
    assert "likelihood, augmented" in titles["size 5"]
    assert "likelihood, augmented" not in titles["size 4"]
    row = next(r for g in shown.groups for r in g.rows if r.variant.augment)
    assert row.reported is None  # the paper did not augment, as far as it says
    (check,) = claims.checks(results)
    assert (check.held, check.cells, check.below, check.answer) == (1, 1, (), "not known yet")
    assert check.missing[:3] == ("size 8", "size 7", "size 6")
    assert len(check.missing) == 11
    assert "classes 5-10" in check.missing
    assert "with flip + crop" in check.claim


def test_two_views_are_held_against_nothing_of_the_paper():
    """Nor do they compete for the bold figure with methods that see the images as they are."""
    variants = MethodVariant("rc"), MethodVariant("rc", strong=True)
    cells = [Cell("fashion", "1-10", 5, variant) for variant in variants]
    rows = [fake_row(plan_run(cell, 0, NONE_CHOSEN), 0.9 + 0.05 * cell.variant.strong) for cell in cells]
    (group,) = (
        g for g in tables.build_table("table1", "fashion", Results(rows, NONE_CHOSEN)).groups if g.title == "size 5"
    )
    plain, views = (next(row for row in group.rows if row.variant.text == text) for text in ("rc", "rc+strong"))
    assert plain.reported is not None
    assert "fair" in plain.best
    assert (views.reported, views.best) == (None, set())


def test_a_size_that_the_paper_has_not_is_in_the_tables(tmp_path):
    wanted = Wanted(("table1",), ("fashion",), methods=("likelihood",), sizes=(9, 5, 2), trials=2)
    report = write_report(write(tmp_path / "results", [fake_row(run, 0.9) for run in planned(wanted, NONE_CHOSEN)]))
    text = report.text.read_text()
    assert "| Fashion | l = 9 | l = 8 | l = 7 | l = 6 | l = 5 | l = 4 | l = 3 | l = 2 |" in text
    assert "**size 9**" in text
    assert text.index("**size 9**") < text.index("**size 8**") < text.index("**size 2**")
    assert report.cells == 3


def test_data_that_the_paper_has_not_has_rows_of_what_was_run_only(tmp_path):
    wanted = Wanted(("table1",), ("digits",), methods=("likelihood", "proden"), sizes=(5,), trials=1)
    results = Results([fake_row(run, 0.9) for run in planned(wanted, NONE_CHOSEN)], NONE_CHOSEN)
    (group,) = tables.build_table("table1", "digits", results).groups
    assert [row.title for row in group.rows] == ["CC", "PRODEN", "likelihood"]  # CC with every answer is the likelihood


OWN = """
from dataclasses import dataclass

from shortlist.methods.cc import CC


@dataclass(frozen=True)
class Mine(CC):
    name = "mine"
"""


def test_a_method_of_ones_own_has_the_title_that_it_states(tmp_path, monkeypatch):
    (tmp_path / "my_titles.py").write_text(OWN + '    title = "Mine (CC, renamed)"\n')
    monkeypatch.chdir(tmp_path)
    assert MethodVariant.parse("my_titles:Mine+aug").title == "Mine (CC, renamed), augmented"


def test_a_method_of_ones_own_is_a_row_of_the_table(tmp_path, monkeypatch):
    (tmp_path / "my_rows.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    wanted = Wanted(("table1",), ("fashion",), methods=("my_rows:Mine",), sizes=(5,), trials=2)
    runs = planned(wanted, NONE_CHOSEN)
    assert {(run.config.method, run.config.protocol) for run in runs} == {
        ("my_rows:Mine", "paper"), ("my_rows:Mine", "fair")
    }  # fmt: skip
    folder = write(tmp_path / "results", [fake_row(run, 0.9) for run in runs])
    report = write_report(folder)
    only_fair = [fake_row(run, 0.9) for run in runs if run.config.protocol == "fair"]
    part = write_report(write(tmp_path / "part", only_fair))
    assert "| Mine | – | – |  |  | – | **90.00** ± 0.00 |" in part.text.read_text()
    assert "Mine" not in str(missing(part.text))  # the study does not owe it
    glance = report.text.read_text().split("at a glance")[1].split("## ")[0]
    for fed in ("None answers only", "every answer"):
        assert f"| Mine, {fed} | – | – | – | 90.00 ± 0.00 | – | – |" in glance
    assert "| Mine, None answers only |" not in part.text.read_text()
    table1 = report.text.read_text().split("### Table 1")[1].split("### Table 2")[0]
    (row,) = [line for line in table1.splitlines() if line.startswith("| Mine |")]
    assert row.count("**90.00** ± 0.00") == 2
    assert ">Mine<" in (folder / "figures" / "figure2-fashion.svg").read_text()
    # without the module the other tables are still written, and it is said what is not in them
    monkeypatch.delitem(sys.modules, "my_rows")
    monkeypatch.chdir("/")
    said = []
    assert "| Mine |" not in write_report(folder, said.append).text.read_text()
    assert "fashion: the runs of my_rows:Mine are in no table" in said[0]


def test_a_title_of_ones_own_stands_as_it_was_written(tmp_path, monkeypatch):
    """A bar would end a cell of a table; matplotlib refused a report whose title had a formula it cannot set."""
    (tmp_path / "my_signs.py").write_text(OWN + r'''    title = "Mine, |C| < 3 ($\\half$)"''')
    monkeypatch.chdir(tmp_path)
    wanted = Wanted(("table1", "figure2"), ("fashion",), methods=("my_signs:Mine",), sizes=(8, 5), trials=2)
    folder = write(tmp_path / "results", [fake_row(run, 0.9) for run in planned(wanted, NONE_CHOSEN)])
    text = write_report(folder).text.read_text()
    assert r"| Mine, \|C\| < 3 ($\half$), every answer |" in text
    assert r"| Mine, \|C\| < 3 ($\half$) | – |" in text
    for name in ("sizes", "figure2"):
        assert r">Mine, |C| &lt; 3 ($\half$)<" in (folder / "figures" / f"{name}-fashion.svg").read_text()


def test_additions_are_not_held_against_the_paper():
    for line in (MethodVariant("sl", augment=True), MethodVariant("sl", ema=True)):
        result = Results([fake_row(plan_run(Cell("fashion", "1-10", 5, line), 0, NONE_CHOSEN))], NONE_CHOSEN)
        found = result.of(Cell("fashion", "1-10", 5, line))
        assert found.last is not None
        assert found.paper is None
        assert found.difference is None
    assert "SL, averaged weights" in [
        r.title for g in tables.build_table("table1", "fashion", result).groups for r in g.rows
    ]


def test_beyond_the_paper(tmp_path):
    level = {"likelihood+aug+ema": 0.91, "likelihood+aug": 0.90, "sl+aug": 0.80, "rc+aug": 0.905, "ol+aug": 0.93}
    wanted = Wanted(("beyond",), ("cifar10",), sizes=(8, 3), trials=3, epochs=60)
    runs = [run for run in planned(wanted, NONE_CHOSEN) if run.cell.variant.text in level]
    assert {(run.config.ema, run.cell.variant.ema) for run in runs} == {(0.0, False), (0.999, True)}
    assert all(run.config.augment and run.config.protocol == "fair" for run in runs)
    report = write_report(write(tmp_path, [fake_row(run, level[run.cell.variant.text]) for run in runs]))
    part = report.text.read_text().split("## Beyond the paper")[1].split("## ")[0]
    assert "| likelihood, augmented, averaged weights | 91.00 ± 0.00 | 91.00 ± 0.00 |" in part
    told = (
        "Size 3: likelihood with averaged weights is best; +0.50 ± 0.00 above RC; +1.00 ± 0.00 above likelihood;"
        " -2.00 ± 0.00 to ordinary labels for all; averaged weights change the likelihood by +1.00 ± 0.00."
    )
    assert told in part
    assert "Ours: 60 epochs (the paper's: 200), 3 trials per cell." in part
    assert "- Not run: LOG, augmented; EXP, augmented; LW, augmented; PRODEN, augmented." in part
    assert told in report.page.read_text()
    table1 = report.text.read_text().split("### Table 1")[1].split("### Table 2")[0]
    assert "averaged weights" not in table1


def test_data_of_other_kinds_are_not_held_against_the_paper(tmp_path):
    runs = planned(Wanted(("table1",), ("kuzushiji-small",), methods=("sl", "likelihood"), sizes=(5,)), NONE_CHOSEN)
    report = write_report(write(tmp_path, [fake_row(run, 0.9) for run in runs]))
    part = report.text.read_text().split("### Table 1")[1]
    assert "not the paper's setting: only the 10,000 official test images, split 8,000 / 2,000 by seed 0" in part
    assert "93.15" not in part.split("### Table 2")[0]


def test_augmented_lines_do_not_compete():
    level = {"likelihood+aug": 0.95, "likelihood": 0.90, "rc": 0.85}
    cells = [Cell("cifar10", "1-10", 5, MethodVariant.parse(text)) for text in level]
    rows = [fake_row(plan_run(cell, 0, NONE_CHOSEN), level[cell.variant.text]) for cell in cells]
    shown = tables.build_table("table1", "cifar10", Results(rows, NONE_CHOSEN))
    best = {row.variant.text: row.best for group in shown.groups if group.title == "size 5" for row in group.rows}
    assert (best["likelihood"], best["likelihood+aug"]) == ({"paper", "fair"}, set())

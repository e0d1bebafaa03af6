"""What stands for a cell: its trials, their mean, what is level with it, and what is noted."""

import numpy as np
import pytest

from shortlist.study.plan.grid import Cell, Wanted, plan_run, planned
from shortlist.study.plan.recipes import CHOICE, Recipe, Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report import overview, tables
from shortlist.study.report.content import settings_rows
from shortlist.study.report.results import Results, over_trials, pooled

from ..conftest import fake_row
from .conftest import NONE_CHOSEN


def test_what_stands_for_a_cell_is_not_chosen_by_its_accuracy():
    cell = Cell("fashion", "1-10", 5, MethodVariant("sl"))

    def rows(recipe, level, epochs=100, trials=3, date="2026-01-01"):
        chosen = Recipes([choice(recipe)])
        runs = [plan_run(cell, trial, chosen, epochs) for trial in range(trials)]
        return [{**fake_row(run, level), "date": date} for run in runs]

    def choice(recipe):
        return {"kind": CHOICE, "dataset": "fashion", "line": "sl", "protocol": "fair", "augment": False,
                "settings": recipe.settings(), "source": "test"}  # fmt: skip

    good, bad = Recipe(0.3, 1e-3), Recipe(0.7, 1e-3)
    both = [*rows(good, 0.95), *rows(bad, 0.5)]
    assert Results(both, Recipes([choice(bad)])).of(cell).last.mean == pytest.approx(50, abs=0.01)
    assert Results(both, Recipes([choice(good)])).of(cell).last.mean == pytest.approx(95, abs=0.01)
    assert Results(both, Recipes([choice(good)])).of(cell).others == 3
    shown = tables.build_table("table1", "fashion", Results(both, Recipes([choice(good)])))
    (notes,) = [r.notes for g in shown.groups if g.title == "size 5" for r in g.rows if r.title == "SL"]
    assert notes == "3 of 5 trials; 3 runs with other settings are not shown"
    listed = settings_rows(both, Results(both, Recipes([choice(good)])))
    assert [(entry["config"]["lr"], entry["count"], entry["shown"]) for entry in listed] == [
        (0.3, 3, True), (0.7, 3, False)
    ]  # fmt: skip
    longer = [*rows(good, 0.95, epochs=10, trials=5), *rows(bad, 0.5, trials=2)]
    assert Results(longer, NONE_CHOSEN).of(cell).epochs == 100
    alone = [*rows(good, 0.95, trials=2), *rows(good, 0.99, epochs=200, trials=1)]
    assert Results(alone, Recipes([choice(good)])).of(cell).epochs == 100, "a single trial does not push out several"
    others = [{**row, "size": size} for size in (7, 3) for row in rows(good, 0.9)]
    both = [*rows(good, 0.95), *rows(good, 0.99, epochs=200), *others]
    assert Results(both, Recipes([choice(good)])).of(cell).epochs == 100, "as the other cells"
    assert Results(both[:6], Recipes([choice(good)])).of(cell).epochs == 200
    more = [*rows(good, 0.95, trials=2), *rows(bad, 0.5, trials=4)]
    assert len(Results(more, NONE_CHOSEN).of(cell).rows) == 4
    later = [*rows(good, 0.95), *rows(bad, 0.5, date="2026-02-02")]
    assert Results(later, NONE_CHOSEN).of(cell).last.mean == pytest.approx(50, abs=0.01)


def test_failures_fewer_trials_epochs_and_adam_are_noted():
    cell = Cell("mnist", "1-10", 5, MethodVariant("rc", "paper"))
    runs = [plan_run(cell, trial, NONE_CHOSEN, 40) for trial in range(3)]
    rows = [fake_row(run, 0.9, failed="the risk is nan" if run.trial == 1 else None) for run in runs]
    for row in rows:
        row["config"]["optimiser"] = "adam"
    shown = tables.build_table("table1", "mnist", Results(rows, NONE_CHOSEN))
    (row,) = [r for group in shown.groups if group.title == "size 5" for r in group.rows if r.title == "RC"]
    for part in (
        "3 of 5 trials",
        "1 trial diverged and is not in the mean",
        "40 epochs instead of 100",
        "Adam, as it fails under SGD",
    ):
        assert f"paper: {part}" in row.notes
    assert len(row.by["paper"].finished) == 2
    assert row.by["fair"].last is None


def cell_of(text, values, size=5):
    """A cell of one trial per value, in percent."""
    cell = Cell("cifar10", "1-10", None if text.startswith("ol") else size, MethodVariant.parse(text))
    runs = [plan_run(cell, trial, NONE_CHOSEN) for trial in range(len(values))]
    rows = [{**fake_row(run), "last": value / 100} for run, value in zip(runs, values, strict=True)]
    return Results(rows, NONE_CHOSEN).of(cell)


def test_what_is_level_with_the_best():
    """Within two standard errors, paired by trial; a single trial has none. One line alone is not the best."""
    found = {
        "rc+aug": cell_of("rc+aug", [93.4, 93.6, 93.5]),
        "proden+aug": cell_of("proden+aug", [93.3, 93.7, 93.3]),
        "lw+aug": cell_of("lw+aug", [93.0, 93.2, 93.1]),  # as far below in every trial: clearly so
        "likelihood+aug": cell_of("likelihood+aug", [93.2]),
        "ol+aug": cell_of("ol+aug", [94.0, 94.1, 94.2]),
    }
    assert overview._beyond_remark(5, found) == (
        "Size 5: RC is best, and within two standard errors of it PRODEN; +0.20 (1 trial) above likelihood;"
        " -0.60 ± 0.06 to ordinary labels for all."
    )
    alone = {text: cell_of(text, [100 * result.rows[0]["last"]]) for text, result in found.items()}
    assert overview._beyond_remark(5, alone).startswith(
        "Size 5: RC is best; +0.10 (1 trial) above PRODEN; +0.20 (1 trial) above likelihood; -0.60"
    )
    assert overview._beyond_remark(4, {text: found[text] for text in ("rc+aug", "ol+aug")}) == ""


def test_paired_differences_by_hand():
    one, other = cell_of("rc", [91.0, 92.0, 93.0]), cell_of("log", [90.0, 91.5, 90.5, 80.0])
    gap = one.minus(other)
    assert gap == pytest.approx((4 / 3, np.std([1.0, 0.5, 2.5], ddof=1) / 3**0.5))
    assert str(gap) == "+1.33 ± 0.60"
    assert gap.clear
    assert not one.minus(cell_of("log", [91.0, 91.5, 94.0])).clear
    assert str(one.minus(cell_of("log", [90.0]))) == "+1.00 (1 trial)"
    assert one.minus(cell_of("log", [])) is None
    # two cells of a trial are one observation
    both = pooled([(one, other), (cell_of("rc", [90.0, 90.0], 3), cell_of("log", [90.0, 91.0], 3))])
    assert both == pytest.approx((0.125, 0.375))


def test_runs_of_different_lengths_are_not_compared():
    """A rival of 3 epochs beside a method of 30 says nothing about either."""
    cells = [Cell("digits", "1-10", 5, MethodVariant(name)) for name in ("rc", "likelihood")]
    runs = [plan_run(cell, 0, NONE_CHOSEN, epochs) for cell, epochs in zip(cells, (3, 30), strict=True)]
    results = Results([fake_row(run, 0.9) for run in runs], NONE_CHOSEN)
    assert results.of(cells[0]).minus(results.of(cells[1])) is None
    (group,) = tables.build_table("table1", "digits", results).groups
    assert [row.to_likelihood for row in group.rows] == [None] * 3


def test_settings_that_are_no_longer_chosen_are_told():
    cell = Cell("fashion", "1-10", 5, MethodVariant("likelihood"))
    chosen = {"kind": CHOICE, "by": "tune", "dataset": "fashion", "line": "likelihood", "protocol": "fair",
              "augment": False, "settings": Recipe(0.7, 0.1).settings(), "source": "x"}  # fmt: skip
    row = fake_row(plan_run(cell, 0, NONE_CHOSEN))
    assert Results([row], NONE_CHOSEN).of(cell).current
    assert not Results([row], Recipes([chosen])).of(cell).current
    shown = tables.build_table("table1", "fashion", Results([row], Recipes([chosen])))
    told = [r.notes for g in shown.groups for r in g.rows if r.by["fair"].rows]
    assert "with settings chosen earlier; those chosen now were not run" in told[0]


def test_over_trials():
    assert over_trials([0.9]) == (90.0, None)
    assert over_trials([0.9, None]) == (90.0, None)
    assert over_trials([]) is None
    assert over_trials([0.8, 0.9]).std == pytest.approx(7.0711, abs=1e-4)


def test_what_is_not_the_papers_setting_says_so_at_a_glance():
    cell = Cell("kuzushiji-small", "1-10", 5, MethodVariant("likelihood"))
    shown = overview.table1_overview(
        "kuzushiji-small", Results([fake_row(plan_run(cell, 0, NONE_CHOSEN))], NONE_CHOSEN)
    )
    assert shown is not None
    assert (shown.sizes, {len(figures) for _, figures in shown.rows}) == ((5,), {1})
    assert shown.remarks[0].startswith("Not the paper's setting: only the 10,000 official test images")


def test_what_a_best_is_not_the_best_of_is_told():
    """The best of one is not the best of six."""
    variants = [MethodVariant("rc", "paper"), MethodVariant("cc", "paper"), MethodVariant("rc"), MethodVariant("ol")]
    cells = [Cell("fashion", "1-10", None if v.ordinary else 5, v) for v in variants]
    rows = [fake_row(plan_run(cell, 0, NONE_CHOSEN)) for cell in cells]
    rows.append(fake_row(plan_run(Cell("fashion", "1-10", 5, MethodVariant("exp")), 0, NONE_CHOSEN), failed="nan"))
    shown = overview.table1_overview("fashion", Results(rows, NONE_CHOSEN))
    assert shown.remarks[2] == (
        "Not run, in some columns at least, and so not among the best: LOG, EXP, LW, PRODEN (None answers only); "
        "LOG, LW, PRODEN (every answer); OL (OVR square) (all labels)."
    )
    whole = planned(Wanted(datasets=("fashion",), trials=1), NONE_CHOSEN)
    told = overview.table1_overview("fashion", Results(map(fake_row, whole), NONE_CHOSEN)).remarks
    assert not [remark for remark in told if remark.startswith("Not run")]


def test_rows_with_settings_that_nothing_chose_are_told():
    """A default beside settings that were tuned is no fair comparison."""
    sl, rc = (Cell("fashion", "1-10", 5, variant) for variant in (MethodVariant("sl"), MethodVariant("rc")))
    chosen = {"kind": CHOICE, "by": "tune", "dataset": "fashion", "line": "sl", "protocol": "fair",
              "augment": False, "settings": Recipe(0.7, 0.1).settings(), "source": "x"}  # fmt: skip
    recipes = Recipes([chosen])

    def remarks(*cells):
        rows = [fake_row(plan_run(cell, 0, recipes)) for cell in cells]
        return [r for r in overview.table1_overview("fashion", Results(rows, recipes)).remarks if "not tuned" in r]

    assert remarks(sl) == []
    assert remarks(rc) == ["With default settings, not tuned: all."]
    assert remarks(sl, rc) == ["With default settings, not tuned: RC (fair)."]
    groups = tables.build_table("table1", "fashion", Results([fake_row(plan_run(rc, 0, recipes))], recipes)).groups
    assert [r.notes for g in groups for r in g.rows if r.by["fair"].rows] == ["fair: 1 of 5 trials; fair: not tuned"]


def test_trials_on_different_hardware_are_told():
    cell = Cell("fashion", "1-10", 5, MethodVariant("likelihood"))
    rows = [fake_row(plan_run(cell, trial, NONE_CHOSEN)) for trial in range(5)]
    rows[3]["hardware"] = "another"
    (row,) = (
        row
        for group in tables.build_table("table1", "fashion", Results(rows, NONE_CHOSEN)).groups
        for row in group.rows
        if row.variant.text == "likelihood" and row.by["fair"].rows
    )
    assert f"trials on different hardware: {', '.join(sorted({'another', rows[0]['hardware']}))}" in row.notes

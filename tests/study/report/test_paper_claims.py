"""The paper's claims: where they hold, where not, by how much, and what is not known."""

import pytest

from shortlist.study.plan.grid import Cell, Wanted, plan_run, planned
from shortlist.study.plan.recipes import CHOICE, Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.epochs import epoch_table
from shortlist.study.report.paper_claims import paper_checks
from shortlist.study.report.results import Results

from ..conftest import fake_row

METHODS = ("sl", "sl+keep", "log", "exp", "lw", "rc", "cc", "proden", "ol", "ol-ovr")


def found(levels, sizes=(5, 3), trials=3):
    """Accuracies in percent by method; a `/paper` behind it goes first."""
    wanted = Wanted(("table1", "table2"), ("mnist",), methods=METHODS, sizes=sizes, trials=trials)
    rows = []
    for run in planned(wanted, Recipes()):
        variant = run.cell.variant
        level = levels.get(f"{variant.text}/{variant.protocol}", levels.get(variant.text, 50.0))
        rows.append({**fake_row(run), "last": level / 100 + 0.001 * run.trial})
        if variant.keep:
            rows[-1]["kept"] = {"epoch": 3, "accuracy": rows[-1].pop("last")}
    return {check.claim.removeprefix("MNIST: "): check for check in paper_checks(Results(rows, Recipes()))}


def test_sl_above_its_rivals_by_what_they_are_fed():
    checks = found({"sl": 90.0, "sl+keep": 91.0, "rc/paper": 89.5, "rc/fair": 90.5, "ol": 90.2, "ol-ovr": 80.0})
    claim = "SL is above every rival fed None answers only, as in the paper"
    assert (checks[claim].answer, checks[claim].held, checks[claim].below) == ("not known yet", 2, ())
    assert "classes 1-8" in checks[claim].missing
    fair = checks["SL is above every rival fed every answer"]
    assert fair.below == ("size 5: -0.50 ± 0.00 to RC", "size 3: -0.50 ± 0.00 to RC")
    assert checks["SL, epoch chosen is above every rival fed every answer"].held == 2
    ordinary = checks["SL with most classes shown is above ordinary labels (Table 2)"]
    assert ordinary.below == ("size 5: -0.20 ± 0.00 to OL (cross entropy)",)
    assert ordinary.missing == ("size 8", "size 7", "size 6")


def test_collapse_is_asked_where_the_paper_has_it():
    checks = found({"rc/paper": 12.0, "lw/paper": 99.0, "proden/paper": 11.0})
    (check,) = (check for claim, check in checks.items() if "collapse" in claim)
    assert (check.held, check.cells) == (2, 3)
    assert check.below == ("LW: 99.10 ± 0.10 (the paper: 40.48 ± 25.26)",)


def test_log_and_cc_are_one_objective():
    same = found({"log/paper": 98.0, "cc/paper": 98.0})
    (check,) = (check for claim, check in same.items() if claim.startswith("LOG and CC"))
    assert (check.answer, check.note) == ("yes", "+0.00 ± 0.00 over 2 cells")
    (check,) = (
        c for claim, c in found({"log/paper": 98.0, "cc/paper": 97.0}).items() if claim.startswith("LOG and CC")
    )
    assert (check.answer, check.held, check.note) == ("no", 0, "+1.00 ± 0.00 over 2 cells")


def test_what_the_rivals_were_fed():
    """The paper has 98.38 (LOG), 98.22 (EXP) and 98.33 (CC) at size 5."""
    checks = found({"log/paper": 98.0, "log/fair": 99.3, "exp/paper": 98.0, "exp/fair": 98.2, "cc/paper": 98.0}, (5,))
    (check,) = (check for claim, check in checks.items() if claim.startswith("LOG, EXP"))
    assert (check.held, check.cells, check.below) == (2, 3, ("size 5, EXP",))


@pytest.mark.parametrize("dataset", ["mnist", "digits"])
def test_sl_by_the_epoch_that_is_reported(dataset):
    rows = []
    for variant in (MethodVariant("sl"), MethodVariant("sl", keep=True)):
        for classes, size in (("1-10", 5), ("5-10", 3), ("4-9", 3)):
            rows += [fake_row(plan_run(Cell(dataset, classes, size, variant), trial, Recipes())) for trial in range(2)]
    table = epoch_table(dataset, Results(rows, Recipes()))
    if dataset == "digits":
        assert table is None  # the paper has nothing to compare with
        return
    assert [row.place for row in table.rows] == ["size 5", "classes 5-10"]
    row = table.rows[1]
    assert row.reported == (98.99, 0.58)  # printed as "4 ~ 9"
    assert row.best.mean == pytest.approx(99.9)
    stored = [r for r in rows if r["classes"] == "5-10" and r.get("keep")]
    assert row.chosen.last.mean == pytest.approx(50 * sum(r["kept"]["accuracy"] for r in stored))


def test_settings_chosen_earlier_are_marked_and_the_last_epoch_stays_known():
    """After a new choice a row of old runs has a star; the chosen runs still say where they ended."""
    cell, keep = (Cell("mnist", "1-4", 2, MethodVariant("sl", keep=flag)) for flag in (False, True))
    choice = {"kind": CHOICE, "by": "search", "dataset": "mnist", **cell.variant.to_dict(), "num_classes": 4}
    choice |= {"settings": {"lr": 0.07, "weight_decay": 0.03}, "source": "search"}
    new = Recipes([choice])
    rows = [fake_row(plan_run(cell, 0, Recipes())), fake_row(plan_run(keep, 0, new))]
    rows[1] |= {"kept": {"epoch": 7, "accuracy": 0.9}, "last": 0.4}
    (row,) = epoch_table("mnist", Results(rows, new)).rows
    assert (row.place, row.chosen.current, row.last.current) == ("classes 1-4 *", True, False)
    assert (row.chosen.last.mean, row.chosen.last_epoch.mean) == pytest.approx((90, 40))

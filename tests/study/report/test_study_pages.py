"""The pages about the study say what the stored runs say."""

from pathlib import Path

import pytest
from scipy.special import stdtr, stdtrit

from shortlist.study.plan.grid import Cell
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.run_keys import settings_key
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report.claims import MARGINS, PLACES
from shortlist.study.report.paper_claims import RIVALS
from shortlist.study.report.results import Results
from shortlist.study.run.ledger import TUNING, Ledgers

ROOT = Path(__file__).parents[3]
ALL = "1-10"


@pytest.fixture(scope="module")
def rows():
    ledgers = Ledgers(ROOT / "results")
    return [row for name in ledgers.datasets() for row in ledgers.of(name).rows()]


@pytest.fixture(scope="module")
def result(rows):
    results = Results(rows, Recipes(Ledgers(ROOT / "results").of(TUNING).rows()))

    def of(dataset, text, size, classes=ALL, protocol="fair"):
        return results.of(Cell(dataset, classes, size, MethodVariant.parse(text, protocol)))

    return of


def said(page):
    """Its text without line breaks."""
    return " ".join((ROOT / "docs" / page).read_text().split())


def test_how_much_was_run(rows):
    on_gpu = [row for row in rows if row["hardware"] == "NVIDIA H200"]
    hours, views = sum(row["seconds"] for row in on_gpu) / 3600, sum(bool(row.get("strong")) for row in on_gpu)
    page = said("reproduction.md")
    assert f"about {hours:.1f} hours for {len(on_gpu):,} runs ({views} of them with two views" in page
    others = [row for row in rows if row["hardware"] != "NVIDIA H200"]
    assert {(row["dataset"], row["augment"], row.get("strong")) for row in others} == {("fashion", True, None)}
    assert f"{len(others)} more, on Fashion with crops, were trained on a CPU." in page


@pytest.mark.parametrize(("extra", "fashion"), [("", (7, 6, 5, 4, 3)), ("+aug", (5, 4, 3))])
def test_what_others_are_above_the_likelihood(result, extra, fashion):
    def less_likelihood(dataset, name, sizes):
        return [
            result(dataset, name + extra, size).minus(result(dataset, "likelihood" + extra, size)) for size in sizes
        ]

    places = (("fashion", fashion), ("cifar10", (5, 3)))
    found = {name: [less_likelihood(where, name, sizes) for where, sizes in places] for name in ("rc", "proden")}
    on_fashion, on_cifar10 = (", ".join(map(str, gaps)) for gaps in found["rc"])
    page = said("study.md")
    assert f"of Fashion: {on_fashion}; at sizes 5 and 3 of CIFAR10: {on_cifar10}." in page
    if extra:
        assert "PRODEN less the likelihood there: " + "; ".join(", ".join(map(str, g)) for g in found["proden"]) in page
        both = [gap.mean for name in ("rc", "proden") for gap in found[name][1]]
        assert f"by {min(both):.1f} to {max(both):.1f} on CIFAR10 at sizes 5 and 3" in said("methods.md")


def test_where_another_method_is_above_the_likelihood(result):
    best = []
    for dataset in ("mnist", "fashion"):
        for classes, size in PLACES:
            ours = result(dataset, "likelihood", size, classes)
            gaps = [result(dataset, name, size, classes).minus(ours) for name in RIVALS]
            best.append(max(gaps, key=lambda gap: gap.mean))
    above = [gap for gap in best if gap.mean > 0]
    others = len(RIVALS) - 1  # CC is the likelihood here
    by_chance = len(best) * others // (others + 1)
    sure = sum(gap.mean > stdtrit(5 - 1, 0.975) * gap.error for gap in above)
    assert (
        f"above it in {len(above)} of these {len(best)} (it would be in {by_chance} if all six were equal), "
        f"in {sum(gap.clear for gap in above)} by more than two standard errors (in {sure} at 95 %"
    ) in said("study.md")


def test_how_often_two_standard_errors_are_passed_by_chance():
    five, three = (round(200 * stdtr(trials - 1, -2)) for trials in (5, 3))
    most = [round(float(stdtrit(trials - 1, 0.975)), 1) for trials in (5, 3)]
    told = (
        f"passed in {five} % of comparisons of five trials and in {three} % of three; 5 % takes {most[0]} and {most[1]}"
    )
    assert told in said("study.md")
    assert f"passed by chance in {five} %" in said("reproduction.md")


def test_where_sl_is_above_or_below_its_rivals(result):
    counts = {"above": [], "below": []}
    for dataset in ("mnist", "fashion"):
        above = below = 0
        for classes, size in PLACES:
            ours = result(dataset, "sl", size, classes, "paper")
            gaps = [ours.minus(result(dataset, name, size, classes, "paper")) for name in RIVALS]
            above += all(gap.clear and gap.mean > 0 for gap in gaps)
            below += any(gap.clear and gap.mean < 0 for gap in gaps)
        counts["above"].append(above)
        counts["below"].append(below)
    (a, b), (c, d) = counts["above"], counts["below"]
    rest = len(PLACES) - a - c, len(PLACES) - b - d
    told = f"above all rivals in {a} and {b}, below one in {c} and {d}, neither in {rest[0]} and {rest[1]}"
    assert told in said("reproduction.md")


def test_how_many_of_sls_rows_on_cifar10_are_reached_with_a_chosen_epoch(result):
    found = [result("cifar10", "sl+keep", size, classes).difference for classes, size in PLACES]
    run = [gap for gap in found if gap is not None]
    reached = sum(round(gap + MARGINS["cifar10"], 2) >= 0 for gap in run)
    assert f"with a chosen epoch in {reached} of the {len(run)} cells run" in said("paper-to-code.md")


def test_all_labels(result):
    page = said("study.md")
    ovr, entropy = ([result(name, text, None).last.mean for name in ("mnist", "fashion")] for text in ("ol-ovr", "ol"))
    assert f"OL has {ovr[0]:.2f} on MNIST and {ovr[1]:.2f} on Fashion with the OVR loss" in page
    assert f"({entropy[0]:.2f} and {entropy[1]:.2f} with cross entropy)" in page


def test_the_ledger_in_pandas_has_one_figure_for_one_cell_and_setting(rows, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)
    names = {}
    exec((ROOT / "docs" / "study.md").read_text().split("```python\n")[1].split("```")[0], names)
    told = [row for row in rows if row["dataset"] in names["names"] and row["failed"] is None]
    assert names["whole"].groupby(names["cell"], dropna=False).ngroups == len(
        {(Cell.from_dict(row), settings_key(row)) for row in told}
    )

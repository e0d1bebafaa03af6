"""The report: figures from the ledger and from nothing else, the best in bold, every missing cell named."""

import json
import re
import shutil
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from shortlist.errors import InputError
from shortlist.internal import drawing
from shortlist.study.plan.grid import Cell, Wanted, cells, plan_run, planned
from shortlist.study.plan.paper import Figure
from shortlist.study.plan.recipes import CHOICE, Recipe, Recipes
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report import claims, curves, overview, size_curves, tables
from shortlist.study.report.content import TABLES, settings_rows
from shortlist.study.report.page import MARKS, RESULTS_PAGE, write_report
from shortlist.study.report.results import Results, over_trials, pooled
from shortlist.study.run.ledger import Ledgers

from ..conftest import fake_row

NONE_CHOSEN = Recipes()


def write(folder, rows):
    ledgers = Ledgers(folder)
    for row in rows:
        ledgers.of(row["dataset"]).append(row)
    return folder


def level_of(run):
    """SL falls with the size; the likelihood is the best, RC the worst."""
    base = {"sl": 0.90, "likelihood": 0.93, "rc": 0.80, "ol": 0.94}.get(run.cell.variant.method, 0.88)
    return base + 0.002 * (run.cell.size or 9) + 0.001 * run.trial


@pytest.fixture(scope="module")
def fashion():
    runs = planned(Wanted(datasets=("fashion",)), NONE_CHOSEN)
    return [fake_row(run, level_of(run)) for run in runs]


@pytest.fixture(scope="module")
def written(fashion, tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("full"), fashion)
    return folder, write_report(folder)


class Page(HTMLParser):
    """What a page holds: tags that are open to the end, addresses, text of bold parts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.bold = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br", "link", "img", "path", "use"):
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "xlink:href", "data")]

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def test_one_file_and_nothing_from_elsewhere(written):
    folder, report = written
    text = report.page.read_text()
    page = Page(text)
    assert page.open == []
    assert all(address.startswith("#") for address in page.addresses)
    assert "@import" not in text
    assert "<script" not in text
    assert re.findall(r"url\((?!#)", text) == []
    assert text.count("<svg") == 2
    for name in ("figure2-fashion.svg", "sizes-fashion.svg"):
        drawn = (folder / "figures" / name).read_text()
        assert drawn.startswith("<svg")
        assert drawn.strip() in text
        assert f"(figures/{name})" in report.text.read_text()


def test_figures_are_the_last_epochs_never_the_best(written):
    folder, report = written
    text = report.text.read_text()
    # the fake curves peak at 99.9 in the middle, which only the diagnosis shows
    diagnosis = text.split("## Which epoch")[1].split("## ")[0]
    assert "| 99.90 ± 0.00 |" in diagnosis
    assert "99.9" not in text.replace(diagnosis, "")
    result = Results(Ledgers(folder).of("fashion").rows(), NONE_CHOSEN).of(
        Cell("fashion", "1-10", 5, MethodVariant("sl", "paper"))
    )
    values = 100 * np.array([0.91 + 0.001 * trial for trial in range(5)])
    assert result.last == pytest.approx((values.mean(), values.std(ddof=1)), abs=0.006)
    row = next(line for line in text.split("**size 5**")[1].splitlines() if line.startswith("| SL |"))
    assert row.startswith("| SL | **90.89** ± 0.26 |")
    assert f"{result.last.mean:.2f} ± {result.last.std:.2f}" in row
    assert f"| {result.last.mean - 90.89:+.2f} |" in row


def test_the_best_of_each_column_is_bold(written):
    _, report = written
    part = report.text.read_text().split("**size 5**")[1].split("**size 4**")[0]
    rows = {
        line.split("|")[1].strip(): [c.strip() for c in line.split("|")[2:]]
        for line in part.splitlines()
        if line.startswith("| ")
    }
    assert rows["SL"][0].startswith("**")  # the paper's own best
    assert rows["likelihood"][1].startswith("**")
    assert rows["likelihood"][5].startswith("**")
    assert rows["CC"][5] == rows["likelihood"][5]  # fed every answer it is the likelihood
    assert not rows["SL"][1].startswith("**")
    assert not rows["RC"][5].startswith("**")
    assert "fair: is the likelihood" in rows["CC"][-2]


def test_every_cell_is_there_or_named_as_missing(written, fashion, tmp_path):
    _, report = written
    assert (report.missing, _missing(report.text)) == (0, {})
    gone = [row for row in fashion if not (row["line"] == "rc" and row["size"] in (8, 3) and row["classes"] == "1-10")]
    partial = write_report(write(tmp_path, gone))
    assert partial.missing == 4
    head, line = "4 cells, about 2 minutes on one H200: not run yet", "table1, RC (paper and fair): size 8, size 3"
    assert _missing(partial.text) == {f"**fashion**, {head}": [line]}
    page = partial.page.read_text().split('id="missing"')[1]
    assert f"<strong>fashion</strong>, {head}" in page
    assert f"<li>{line}</li>" in page


def _missing(path):
    """The cells that the report names as missing, by what stands above them."""
    parts = re.split(r"^(?=\*\*)", path.read_text().split("## What was not run")[1].strip(), flags=re.MULTILINE)
    split = [part.strip().split("\n\n- ") for part in parts if part.startswith("**")]
    return {head: lines.split("\n- ") for head, lines in split}


def test_a_small_study_is_asked_for_its_own_datasets_only(tmp_path):
    """Every cell of Fashion that was not run is named, none of a dataset that nobody began."""
    runs = planned(Wanted(("table1",), ("fashion",), methods=("sl", "rc"), sizes=(5,), trials=1), NONE_CHOSEN)
    report = write_report(write(tmp_path, [fake_row(run) for run in runs]))
    ((head, lines),) = _missing(report.text).items()
    owed = {cell.canonical() for cell in cells(Wanted(datasets=("fashion",))) if cell.classes != "4-9"}
    shared = 2 * 4 - 1  # Table 2 names SL and likelihood again; of these SL at size 5 was run
    assert report.missing == len(owed) - len(runs) + shared
    assert re.fullmatch(rf"\*\*fashion\*\*, {report.missing} cells, about \d+ minutes on one H200: not run yet", head)
    assert "table1, RC (paper and fair): size 8, size 7, size 6, size 4, size 3" in lines
    assert "table2, OL (OVR square) (fair): all labels" in lines
    assert "table5, CC (paper): classes 1-4, classes 4-7, classes 7-10" in lines
    assert len(lines) == 8 + 4 + 3 * 8


def test_reasons_are_told(fashion, tmp_path):
    reasons = [
        {"dataset": "kuzushiji", "why": "its training images could not be had"},
        {"dataset": "mnist", "table": "table1", "why": "b"},
    ]
    (tmp_path / "not-run.json").write_text(json.dumps(reasons))
    report = write_report(write(tmp_path, fashion[:5]))
    found = _missing(report.text)
    heads = {head.replace("**", "").split(",")[0] + head.partition("H200")[2]: head for head in found}
    assert list(heads) == [
        "mnist: b", "mnist: not run yet", "fashion: not run yet", "kuzushiji: its training images could not be had"
    ]  # fmt: skip
    assert [line for line in found[heads["mnist: b"]] if not line.startswith("table1")] == []
    assert "table5, SL (fair): classes 1-4, classes 4-7, classes 7-10" in found[heads[list(heads)[-1]]]
    (tmp_path / "not-run.json").write_text("{")
    with pytest.raises(InputError, match=r"not-run\.json is no JSON"):
        write_report(tmp_path)
    (tmp_path / "not-run.json").write_text('{"why": 1}')
    with pytest.raises(InputError, match="expected a list of objects"):
        write_report(tmp_path)


def test_claims_are_checked(written):
    _, report = written
    text = report.text.read_text()
    assert "| Fashion: our SL row reaches the paper's SL row minus 1.0 at every size | yes | 6 of 6 |  |  |" in text
    claim = "Fashion: likelihood is at or above the paper's SL in every cell"
    held, below = re.search(rf"\| {claim} \| no \| (\d+) of 12 \| (.*) \|  \|", text).groups()
    assert 0 < int(held) < 12  # the fake level of 93 to 95 does not reach the easier class subsets
    assert len(below.split("; ")) == 12 - int(held)
    assert "classes 1-4: -" in below
    assert "MNIST: our SL" not in text  # nothing was run there, so nothing is claimed


def test_diverged_trials_are_told_wherever_a_mean_is(tmp_path):
    """A cell whose trials all broke is not one that was not run, and a mean of survivors is called one."""
    runs = planned(Wanted(("table1",), ("mnist",), methods=("sl", "rc"), trials=3), NONE_CHOSEN)
    broken = {(8, 0), (8, 1), (8, 2), (5, 1)}

    def row(run):
        bad = run.config.method == "sl" and (run.cell.size, run.trial) in broken
        return fake_row(run, 0.995, failed="the risk is nan" if bad else None)

    rows = [row(run) for run in runs]
    check = claims.checks(Results(rows, NONE_CHOSEN))[0]
    assert (check.answer, check.held, check.cells, check.missing) == ("no", 5, 6, ())
    assert check.below == ("size 8: every trial diverged",)
    text = write_report(write(tmp_path, rows)).text.read_text()
    assert "| no | 5 of 6 | size 8: every trial diverged; size 5: 1 of 3 trials diverged |  |" in text
    assert "- Trials that diverged and are not in the mean: SL, l = 8: 3 of 3; SL, l = 5: 1 of 3." in text
    some = [row for row in rows if row["size"] != 8]
    fine = [fake_row(run, 0.995) for run in runs if run.cell.size == 8]
    assert claims.checks(Results([*some, *fine], NONE_CHOSEN))[0].answer == "only for trials that did not diverge"


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
    for part in ("3 of 5 trials", "1 trials diverged", "40 epochs instead of 100", "Adam, as it fails under SGD"):
        assert f"paper: {part}" in row.notes
    assert len(row.by["paper"].finished) == 2
    assert row.by["fair"].last is None


def test_commands_name_their_cell(fashion):
    """Of every table, the command below it asks for this cell and nothing else."""
    results = Results(fashion, NONE_CHOSEN)
    shown = [(name, result) for name in TABLES for result in tables.build_table(name, "fashion", results).results()]
    assert {name for name, result in shown if result.rows} == set(TABLES)
    for name, result in shown:
        words = result.command(name, Path("results")).split()
        assert words[-4:] == ["--recipes", "results", "--results", "rerun"]
        options = dict(zip(words[3::2], words[4::2], strict=True))
        wanted = Wanted(
            (words[2],),
            (options["--datasets"],),
            (options["--methods"],),
            (int(options["--sizes"]),) if "--sizes" in options else None,
            (options["--classes"],) if "--classes" in options else None,
            (options["--protocol"],),
            int(options["--trials"]),
        )
        assert wanted.tables == (name,)
        assert cells(wanted) == [result.cell]


def test_curves_of_figure_2(fashion):
    results = Results(fashion, NONE_CHOSEN)
    svg = curves.figure2("fashion", results)
    assert 'role="img"' in svg
    for text in ("size 8, paper", "size 5, fair", "likelihood", "PRODEN", "OL (cross entropy)", "epoch"):
        assert text in svg
    assert curves.figure2("mnist", results) is None
    colours = [look[0] for look in drawing.LOOKS.values()]
    assert len(set(colours)) == len(colours)
    assert len({(str(look[1]), look[2]) for look in drawing.LOOKS.values()}) == len(colours)
    every = [*drawing.LOOKS.values(), *drawing.SPARE]
    assert len({look[0] for look in every}) == len({(str(look[1]), look[2]) for look in every}) == len(every)
    assert curves.figure2("fashion", results) == svg  # the same ledger, the same picture


def test_accuracy_by_size(fashion):
    """Points where the cells are; what was run at one size only, or not at all, has no line."""
    results = Results(fashion, NONE_CHOSEN)
    svg = size_curves.by_size("fashion", results)
    assert svg == size_curves.by_size("fashion", results)
    assert 'role="img"' in svg
    for text in (
        "without augmentation",
        "classes shown, of 10",
        ">SL<",
        ">RC<",
        ">likelihood<",
        ">OL (cross entropy)<",
    ):
        assert text in svg
    for text in ("with augmentation", "with two views", ">CC<"):  # CC with every answer is the likelihood
        assert text not in svg.replace("without augmentation", "")
    points = size_curves._methods("fashion", "", results)["rc"]
    assert points == {
        size: results.of(Cell("fashion", "1-10", size, MethodVariant("rc", "fair"))).last
        for size in size_curves.SIZES_SHOWN
    }
    alone = [row for row in fashion if row["size"] in (5, None)]
    assert size_curves.by_size("fashion", Results(alone, NONE_CHOSEN)) is None
    assert size_curves.by_size("mnist", results) is None
    low, high = size_curves._range([Figure(92.0, 0.1), Figure(88.0, None), Figure(30.0, 9.0)])
    assert 87 < low < 88
    assert 92 < high < 93


def test_figure_2_shows_where_the_curves_are():
    """Methods a point apart are told apart, every one that learned is in the picture, a collapsed one is not."""
    epochs = np.arange(80)
    shown = [level - 3 * np.exp(-epochs / 20) for level in (92.5, 92.0, 91.0, 90.5, 90.2, 90.1, 90.0, 88.5)]
    low, high = curves._range([*shown, np.full(80, 10.0)])
    assert 85 < low < 88.5
    assert 92.5 < high < 93.5
    assert curves._range([np.full(80, 99.9)])[1] == 100


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
    assert "Mine" not in str(_missing(part.text))  # the study does not owe it
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


def results_page(root: Path) -> Path:
    page = root / RESULTS_PAGE
    page.parent.mkdir()
    return page


def test_the_results_page_shows_what_the_ledger_holds(fashion, tmp_path):
    page, folder = results_page(tmp_path), tmp_path / "results"
    page.write_text("before\n" + "old".join(MARKS) + "\nafter\n")
    report = write_report(write(folder, fashion[:200]))
    text = page.read_text()
    assert text.startswith(f"before\n{MARKS[0]}\n\n| Fashion | l = 8 |")
    assert text.endswith(f"\n\n{MARKS[1]}\nafter\n")
    assert text.count("| SL, ours |") == 1
    row = next(line for line in text.splitlines() if line.startswith("| SL, ours |"))
    assert row in report.text.read_text()
    write_report(folder)
    assert page.read_text() == text
    page.write_text("nothing to fill in")
    write_report(folder)
    assert page.read_text() == "nothing to fill in"


def test_a_folder_of_ones_own_leaves_the_results_page_alone(fashion, tmp_path):
    page, said = results_page(tmp_path), []
    page.write_text("old".join(MARKS))
    for name in ("mine", "results-quick"):
        write_report(write(tmp_path / name, fashion[:5]), said.append)
    assert (page.read_text(), said) == ("old".join(MARKS), [])
    for _ in range(2):  # the second time nothing changes
        write_report(write(tmp_path / "results", fashion[:5]), said.append)
    (line,) = said
    assert str(RESULTS_PAGE) in line
    assert "renewed" in line


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("mine", "--recipes mine --results rerun"),
        ("rerun", "--recipes rerun --results rerun-again"),
        ("my runs", "--recipes &#39;my runs&#39; --results rerun"),
    ],
)
def test_commands_name_the_folder_they_are_of(fashion, tmp_path, monkeypatch, folder, words):
    monkeypatch.chdir(tmp_path)
    page = write_report(write(Path(folder), fashion[:1])).page.read_text()
    assert re.findall(r"--trials 1 (--recipes [^<]*)<", page) == [words] * page.count("--recipes")
    assert f"settings chosen in <code>{folder}</code>" in page


def test_our_results_page_is_up_to_date(tmp_path):
    """What stands between its marks is what `shortlist report results` would put there."""
    root = Path(__file__).parents[3]
    text = (root / RESULTS_PAGE).read_text()
    assert all(text.count(mark) == 1 for mark in MARKS)
    page = results_page(tmp_path)
    page.write_text("".join(MARKS))
    (tmp_path / "results").mkdir()
    ledger = root / "results" / "ledger"
    if ledger.is_dir():
        shutil.copytree(ledger, tmp_path / "results" / "ledger")
    else:
        (tmp_path / "results" / "ledger").mkdir()
    write_report(tmp_path / "results")
    assert page.read_text() in text


def test_data_of_other_kinds_are_not_held_against_the_paper(tmp_path):
    runs = planned(Wanted(("table1",), ("kuzushiji-small",), methods=("sl", "likelihood"), sizes=(5,)), NONE_CHOSEN)
    report = write_report(write(tmp_path, [fake_row(run, 0.9) for run in runs]))
    part = report.text.read_text().split("### Table 1")[1]
    assert "not the paper's setting: only the 10,000 official test images, split 8,000 / 2,000 by seed 0" in part
    assert "93.15" not in part.split("### Table 2")[0]


def test_an_empty_folder_is_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="holds no folder ledger"):
        write_report(tmp_path)
    (tmp_path / "ledger").mkdir()
    report = write_report(tmp_path)
    assert report.runs == 0
    assert "No run yet." in report.text.read_text()


def test_a_commit_is_counted_once_whichever_form_it_has(fashion, tmp_path):
    long = "47da5edd1011fbf1edb2cb25ebb07137c4198eea"
    commits = [long, long[:7], long[:12], long[:12] + "+", None]
    rows = [{**row, "commit": commit} for row, commit in zip(fashion, commits, strict=False)]
    report = write_report(write(tmp_path, rows))
    for path in (report.text, report.page):
        assert "commits: 47da5ed (3), 47da5ed+ (1), commit unknown (1)." in path.read_text()
    assert long[:8] not in report.page.read_text()
    assert Ledgers(tmp_path).of("fashion").rows()[0]["commit"] == long  # the ledger keeps what it has


def test_over_trials():
    assert over_trials([0.9]) == (90.0, None)
    assert over_trials([0.9, None]) == (90.0, None)
    assert over_trials([]) is None
    assert over_trials([0.8, 0.9]).std == pytest.approx(7.0711, abs=1e-4)


def test_what_is_written_in_the_ledger_is_escaped(tmp_path):
    run = planned(Wanted(("table1",), ("fashion",), sizes=(5,), trials=1), NONE_CHOSEN)[0]
    row = {**fake_row(replace(run, source="<b>x</b>"), 0.9), "hardware": "<script>alert(1)</script>"}
    page = write_report(write(tmp_path, [row])).page.read_text()
    assert "<script" not in page
    assert "<b>x" not in page


def test_a_line_alone_is_not_called_the_best(tmp_path):
    runs = [
        plan_run(Cell("cifar10", "1-10", 5, MethodVariant("likelihood", augment=True)), t, NONE_CHOSEN)
        for t in range(2)
    ]
    part = write_report(write(tmp_path, [fake_row(run) for run in runs])).text.read_text()
    part = part.split("## Beyond the paper")[1].split("## ")[0]
    assert "is best" not in part
    assert "- Not run: OL (cross entropy), augmented; " in part


def test_augmented_lines_do_not_compete():
    level = {"likelihood+aug": 0.95, "likelihood": 0.90, "rc": 0.85}
    cells = [Cell("cifar10", "1-10", 5, MethodVariant.parse(text)) for text in level]
    rows = [fake_row(plan_run(cell, 0, NONE_CHOSEN), level[cell.variant.text]) for cell in cells]
    shown = tables.build_table("table1", "cifar10", Results(rows, NONE_CHOSEN))
    best = {row.variant.text: row.best for group in shown.groups if group.title == "size 5" for row in group.rows}
    assert (best["likelihood"], best["likelihood+aug"]) == ({"paper", "fair"}, set())


def test_what_is_not_the_papers_setting_says_so_at_a_glance():
    cell = Cell("kuzushiji-small", "1-10", 5, MethodVariant("likelihood"))
    shown = overview.table1_overview(
        "kuzushiji-small", Results([fake_row(plan_run(cell, 0, NONE_CHOSEN))], NONE_CHOSEN)
    )
    assert shown is not None
    assert (shown.sizes, {len(figures) for _, figures in shown.rows}) == ((5,), {1})
    assert shown.remarks[0].startswith("Not the paper's setting: only the 10,000 official test images")


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

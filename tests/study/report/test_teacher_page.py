"""docs/teacher.md says what the stored runs say."""

import contextlib
import io
import json
import re
import runpy
import sys
from pathlib import Path
from statistics import mean, stdev

import pytest

from shortlist.study.plan.recipes import Recipes
from shortlist.study.run.ledger import TUNING, Ledgers

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "teacher.md").read_text()
SAID = " ".join(PAGE.split())
NOT_STORED = ("The mask was chosen on three tenths", "On images the mask")
"""What the page says is printed and not stored stands between these."""
PAIRED = re.compile(r"[+-]?\d+\.\d\d ± \d+\.\d\d")


@pytest.fixture(scope="module")
def printed():
    """What the scripts that the page names print from what is stored."""
    calls = (
        ("teacher_compare.py", "cifar10", "fashion"),
        ("teacher_ablation.py", "table"),
        ("teacher_beyond.py",),
        ("calibration.py", "--table"),
    )
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.syspath_prepend(ROOT / "benchmarks")  # as `python benchmarks/...` does
        for name, *arguments in calls:
            patch.setattr(sys, "argv", [name, *arguments])
            with contextlib.redirect_stdout(io.StringIO()) as out:
                runpy.run_path(f"benchmarks/{name}", run_name="__main__")
            found[name] = out.getvalue()
    return found


def test_every_row_of_figures_is_printed_from_what_is_stored(printed):
    goals = PAGE.split("### Goals and results")[1].split("\n## ")[0]
    rows = [line for line in PAGE.replace(goals, "").splitlines() if PAIRED.search(line) and line.startswith("|")]
    assert len(rows) > 70
    everything = {line for text in printed.values() for line in text.splitlines()}
    assert [row for row in rows if row not in everything] == []


def test_its_comparisons_are_whole(printed):
    accuracies, cifar10, _, fashion, second_view = printed["teacher_compare.py"].strip().split("\n\n")
    assert all(table in PAGE for table in (accuracies, cifar10, fashion, second_view))


def test_every_difference_in_its_words_is_printed_from_what_is_stored(printed):
    everything = "\n".join(printed.values())
    before, after = (SAID.partition(mark) for mark in NOT_STORED)
    told = before[0] + after[2]
    stated = {figure.lstrip("+-") for figure in PAIRED.findall(told)}  # "0.31 below" is -0.31
    gone = "0.75 ± 0.45"  # of a script that was not kept, as the page says
    assert {figure for figure in stated if figure not in everything} == {gone}


def test_its_numbers_of_standard_errors():
    compare = runpy.run_path(str(ROOT / "benchmarks" / "teacher_compare.py"))
    ledgers, ours, group = Ledgers(ROOT / "results"), compare["ours"], compare["Group"]
    recipes = Recipes(ledgers.of(TUNING).rows())
    found = {name: compare["by_size"](name, ledgers.of(name), recipes) for name in ("cifar10", "fashion")}

    def errors(dataset, size, rival):
        one, other = (found[dataset][size][of] for of in (ours(100), group(rival, "two views", "", 100)))
        gaps = [one[trial]["last"] - other[trial]["last"] for trial in {*one} & {*other}]
        return abs(mean(gaps)) / (stdev(gaps) / len(gaps) ** 0.5)

    crdpll, rc, likelihood = (errors("cifar10", 3, name) for name in ("crdpll", "rc", "likelihood"))
    assert f"CRDPLL, RC and likelihood: {crdpll:.1f}, {rc:.1f} and {likelihood:.1f} of them" in SAID
    proden, rc, likelihood, crdpll = (errors("cifar10", 5, name) for name in ("proden", "rc", "likelihood", "crdpll"))
    assert f"PRODEN {proden:.1f}, RC {rc:.1f}, likelihood {likelihood:.1f} of them" in SAID
    assert f"for CRDPLL ({crdpll:.2f})" in SAID
    proden, rc = (errors("fashion", 6, name) for name in ("proden", "rc"))
    assert f"above PRODEN and RC by {proden:.1f} and {rc:.1f} standard errors" in SAID
    assert f"at size 8 below PRODEN by {errors('fashion', 8, 'proden'):.1f}" in SAID


def test_what_it_costs():
    views = json.loads((ROOT / "results" / "fleet_speed.json").read_text())["views"]
    seconds = {(row["model"], row["method"], row["views"]): row["seconds_per_epoch_and_run"] for row in views}
    times = {
        (model, method): seconds[model, method, 2] / seconds[model, "likelihood", 1]
        for model, method, count in seconds
        if count == 2
    }
    teacher, rc, dirk = (
        [f"{times[model, name]:.2f}" for model in ("resnet32", "lenet")] for name in ("teacher", "rc", "dirk")
    )
    assert f"takes {teacher[0]} (ResNet-32) and {teacher[1]} (LeNet) times as long" in SAID
    assert f"RC {rc[0]} and {rc[1]}, DIRK {dirk[0]} and {dirk[1]}" in SAID
    big, small = (
        sorted({f"{times[model, name]:.2f}" for name in ("likelihood", "proden", "crdpll")})
        for model in ("resnet32", "lenet")
    )
    assert f"with two views {' to '.join(big)} and {small[0]} to {small[-1]}" in SAID
    ratio = seconds["resnet32", "proden", 2] / seconds["resnet32", "teacher", 2]
    assert f"about as good in {ratio:.2f} of the time (ResNet-32)" in SAID


def test_the_tries_are_those_that_are_stored(printed):
    stored = (ROOT / "results" / "teacher_ablation.md").read_text()
    assert printed["teacher_ablation.py"] == stored
    rows = [line[2:-2].split(" | ") for line in stored.split("\n\n")[2].splitlines()[2:]]
    assert f"All {len(rows)} rows" in PAGE
    rivals = ("PRODEN", "RC", "CRDPLL", "DIRK", "likelihood", "full labels")
    ours = [row for row in rows if not row[0].startswith((*rivals, "weight decay"))]
    cifar10, fashion = (sum(any(map(str.strip, row[part])) for row in ours) for part in (slice(1, 4), slice(4, 5)))
    assert f"The teacher had {cifar10} option sets and forms on CIFAR10 and {fashion} on Fashion" in SAID

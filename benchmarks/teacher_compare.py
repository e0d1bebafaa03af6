"""The teacher beside RC, PRODEN, CRDPLL and the likelihood, paired by trial: the tables of docs/teacher.md.

Measured on an H200 (results/ledger/*.jsonl), CIFAR10 with 3 of 10 classes shown and two views of each image: teacher
92.70 ± 0.06 %, PRODEN 92.56 ± 0.10, the likelihood 90.66 ± 0.05, full labels 93.69 ± 0.08.

    python benchmarks/teacher_compare.py cifar10 fashion       # prints the page's tables from the ledger
    SHORTLIST_DATA=... python benchmarks/teacher_compare.py cifar10 --run     # trains what the ledger lacks, on a GPU
    SHORTLIST_DATA=... python benchmarks/teacher_compare.py cifar10 --run size3 full       # these parts of it alone

A run of 100 epochs takes about 35 s on an H200 for CIFAR10, 3 s for Fashion. Runs train together and are stored when
all of a batch have ended: where time is short, name parts. After new runs paste the tables into the page;
tests/study/report/test_teacher_page.py compares them.

Test accuracy after the last of 100 epochs, ± standard error over the trials. The same trial has the same shortlists,
initial weights and order of items. Settings are those of results/ledger/tuning.jsonl; runs with other settings have
rows of their own. ECE is the expected calibration error in percent, where it was stored. The teacher takes 1.16 times
as long as the likelihood with the same views, so "at equal seconds" compares its 86 epochs with the rival's 100.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from shortlist.study.plan.grid import Cell, PlannedRun, plan_run
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.run_keys import canonical
from shortlist.study.plan.variants import MethodVariant, stated_options
from shortlist.study.run.driver import Budget, drive, open_engine
from shortlist.study.run.ledger import RUN, TUNING, Ledger, Ledgers, Row
from shortlist.training import RunConfig

EPOCHS, FEWER = 100, 86
SIZES = (3, 4, 5, 6, 7, 8)
NUM_CLASSES = 10
METHODS = ("teacher", "proden", "rc", "crdpll", "likelihood")
AS_SLOW = ("teacher", "rc", "dirk")
"""Methods that take as long as the teacher: their difference at equal seconds is the one at equal epochs."""
ONE_VIEW = ("proden", "rc", "likelihood")
SECOND_VIEW = (("cifar10", 3), ("cifar10", 5), ("fashion", 3))
"""Where the gain by the second view is shown."""
TITLES = {
    **{"cifar10": "CIFAR10", "fashion": "Fashion", "ol": "full labels", "teacher": "**teacher**"},
    **{name: name.upper() for name in ("proden", "rc", "crdpll", "dirk")},
}
Runs = list[tuple[str, int | None, int, int]]
"""Methods, each with a size, a number of trials and epochs; with two views, or one where the name ends in `+aug`."""
OTHER = "teacher?"
"""The teacher with the options of --options."""
PLAN: dict[str, dict[str, Runs]] = {
    "fashion": {
        **{f"size{size}": [(name, size, 5, EPOCHS) for name in METHODS] for size in SIZES},
        "one-view": [(f"{name}+aug", size, 5, EPOCHS) for name in ONE_VIEW for size in SIZES],
        "options": [(OTHER, size, 5, EPOCHS) for size in SIZES],
        "full": [("ol", None, 5, EPOCHS), ("ol+aug", None, 5, EPOCHS)],
        "equal": [("teacher", 3, 5, FEWER)],
        "dirk": [("dirk", 3, 5, EPOCHS)],
    },
    "cifar10": {
        "size3": [(name, 3, 5, EPOCHS) for name in METHODS],
        "size5": [(name, 5, 3, EPOCHS) for name in METHODS],
        "size8": [(name, 8, 3, EPOCHS) for name in ("teacher", "likelihood")],
        "one-view": [(f"{name}+aug", size, trials, EPOCHS) for name in ONE_VIEW for size, trials in ((3, 5), (5, 3))],
        "options": [(OTHER, 3, 5, EPOCHS), (OTHER, 5, 3, EPOCHS), (OTHER, 8, 3, EPOCHS)],
        "full": [("ol", None, 5, EPOCHS)],
        "equal": [("teacher", 3, 3, FEWER)],
        "dirk": [("dirk", 3, 3, EPOCHS)],
        "longer": [
            *((name, 3, 3, 2 * EPOCHS) for name in ("teacher", "proden")),
            ("crdpll", 3, 1, 2 * EPOCHS),
            ("ol", None, 1, 2 * EPOCHS),
        ],
    },
}
Trials = dict[int, Row]


class Group(NamedTuple):
    """The runs behind one row of a table: they differ in nothing but the trial."""

    method: str
    views: str
    unlike: str
    """Their settings that are not the chosen ones."""
    epochs: int

    def __str__(self) -> str:
        longer = "" if self.epochs == EPOCHS else f", {self.epochs} epochs"
        name = "teacher" if self.method == "teacher" and self != ours(EPOCHS) else TITLES.get(self.method, self.method)
        return f"{name}, {self.views}{self.unlike}{longer}"


BySize = dict[int, dict[Group, Trials]]


def ours(epochs: int) -> Group:
    return Group("teacher", "two views", "", epochs)


def run(dataset: str, wanted: Runs, options: dict[str, float], ledgers: Ledgers) -> None:
    """Train what the ledger lacks, all at once."""
    recipes = Recipes(ledgers.of(TUNING).rows())
    runs: list[PlannedRun] = []
    for text, size, trials, epochs in wanted:
        name = text.removesuffix("?")
        variant = MethodVariant.parse(name if "+" in name else f"{name}+aug+strong")
        cell = Cell(dataset, "1-10", size, variant)
        usual = [plan_run(cell, trial, recipes, epochs) for trial in range(trials)]
        runs += [with_options(run, options) for run in usual] if text == OTHER else usual
    with open_engine("fleet") as engine:
        drive(runs, lambda _: ledgers.of(dataset), engine, Budget(batch_minutes=60), score_every=20, say=print)


def with_options(run: PlannedRun, options: dict[str, float]) -> PlannedRun:
    """The same run with other values of some of its method's options."""
    config = replace(run.config, method_options={**run.config.method_options, **options})
    said = "".join(f", {name}={value:g}" for name, value in options.items())
    return replace(run, config=canonical(config, NUM_CLASSES), source=run.source + said)


def parsed(text: str) -> dict[str, float]:
    """`pull=0.5,decay=0.999` as a mapping."""
    return {name: float(value) for name, _, value in (part.partition("=") for part in text.split(",") if part)}


def groups(dataset: str, size: int, ledger: Ledger, recipes: Recipes) -> dict[Group, Trials]:
    """What the ledger holds at a size of the methods of the plan."""
    found: dict[Group, Trials] = defaultdict(dict)
    for row in ledger.rows():
        variant, epochs = MethodVariant.from_row(row), row["config"]["epochs"]
        plain = variant.augment and not variant.ema and variant.protocol == "fair"
        listed = variant.name in (*METHODS, "ol", "dirk") and epochs in (FEWER, EPOCHS, 2 * EPOCHS)
        here = row["size"] == (None if variant.ordinary else size) and row["classes"] == "1-10"
        if plain and listed and here and row["kind"] == RUN and row["last"]:
            usual = plan_run(Cell(dataset, "1-10", row["size"], variant), row["trial"], recipes, epochs)
            views = ("two views" if variant.strong else "one view") + (", mixed" if variant.mix else "")
            other = "" if usual.key == row["key"] else unlike(row["config"], usual.config)
            found[Group(variant.name, views, other, epochs)][row["trial"]] = row
    return found


def by_size(dataset: str, ledger: Ledger, recipes: Recipes) -> BySize:
    """Every size at which the teacher was run."""
    found = {size: groups(dataset, size, ledger, recipes) for size in SIZES}
    return {size: of for size, of in found.items() if ours(EPOCHS) in of}


def unlike(config: dict[str, Any], usual: RunConfig) -> str:
    """The settings of a stored run that are not the chosen ones, in words."""
    options = stated_options(config["method"], config["method_options"])
    changed = [f"{name} {value}" for name, value in options.items() if usual.method_options.get(name) != value]
    if config["weight_decay"] != usual.weight_decay:
        changed.insert(0, f"weight decay {config['weight_decay']:g}")
    return "".join(f", {change}" for change in changed)


def figure(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard error in percent; their number where it is not five; a single value in italics, without."""
    if not values:
        return ""
    text = f"{100 * mean(values):{sign}.2f}"
    if len(values) == 1:
        return f"*{text}*"
    return f"{text} ± {100 * stdev(values) / len(values) ** 0.5:.2f}" + (f" ({len(values)})" * (len(values) != 5))


def paired(one: Trials, other: Trials) -> str:
    """The mean difference over the trials that both have."""
    return figure([one[trial]["last"] - other[trial]["last"] for trial in sorted({*one} & {*other})], "+")


def accuracies(dataset: str, found: BySize) -> list[str]:
    """The methods with two views at every size."""
    lines = heading([f"{TITLES[dataset]}, two views", *(f"{size} of 10" for size in reversed(found))])
    for name in ("ol", *METHODS):
        cells = [by.get(Group(name, "two views", "", EPOCHS), {}) for by in reversed(found.values())]
        lines.append(line([TITLES.get(name, name), *(figure([row["last"] for row in of.values()]) for of in cells)]))
    return lines


def differences(dataset: str, found: BySize) -> list[str]:
    """What the teacher is above everything else, the best first: by size, over the sizes, and at equal seconds."""
    sizes = [f"size {size}" for size in found]
    lines = heading([TITLES[dataset], "accuracy, size 3", *sizes, "all sizes", "at equal seconds", "ECE"])
    third = found[SIZES[0]]
    for group, rows in sorted(third.items(), key=lambda entry: -mean(row["last"] for row in entry[1].values())):
        each = [(by.get(ours(group.epochs), {}), by.get(group, {})) for by in found.values()]
        trials = sorted(set.intersection(*({*a} & {*b} for a, b in each)))
        pooled = [mean(a[trial]["last"] - b[trial]["last"] for a, b in each) for trial in trials]
        faster = group.method not in AS_SLOW and group.views == "two views" and group.epochs == EPOCHS
        errors = [row["calibration_error"] for row in rows.values() if row.get("calibration_error") is not None]
        minus = [*(paired(a, b) for a, b in each), figure(pooled, "+")]
        if group.method == "teacher" and group == ours(group.epochs):
            minus = [""] * len(minus)
        equal = paired(third.get(ours(FEWER), {}), rows) if faster else ""
        lines.append(line([str(group), figure([row["last"] for row in rows.values()]), *minus, equal, figure(errors)]))
    return lines


def second_view(found: dict[str, BySize]) -> list[str]:
    """What a second view gives a method that has one."""
    places = [(dataset, size) for dataset, size in SECOND_VIEW if dataset in found]
    lines = heading(["gain by the second view", *(f"{TITLES[dataset]}, size {size}" for dataset, size in places)])
    for name in ("ol", *ONE_VIEW):
        one, two = (Group(name, views, "", EPOCHS) for views in ("one view", "two views"))
        by = [found[dataset][size] for dataset, size in places]
        lines.append(line([TITLES.get(name, name), *(paired(of.get(two, {}), of.get(one, {})) for of in by)]))
    return lines


def heading(titles: Sequence[str]) -> list[str]:
    return [line(titles), "|" + "---|" * len(titles)]


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="+", choices=tuple(PLAN))
    parser.add_argument("--run", nargs="*", metavar="PART", help="first train these parts of the plan; none named: all")
    parser.add_argument("--options", type=parsed, default={}, help="of the part of that name: pull=0.5,decay=0.999")
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    ledgers = Ledgers(args.results)
    for dataset in args.datasets:
        if args.run is not None:
            parts = PLAN[dataset]
            if unknown := set(args.run).difference(parts):
                parser.error(f"no part {unknown.pop()!r} of {dataset}: expected {', '.join(parts)}")
            names = args.run or [name for name in parts if name != "options"]
            run(dataset, [entry for name in names for entry in parts[name]], args.options, ledgers)
    recipes = Recipes(ledgers.of(TUNING).rows())
    found = {dataset: by_size(dataset, ledgers.of(dataset), recipes) for dataset in args.datasets}
    for dataset, of in found.items():
        print("", *accuracies(dataset, of), "", *differences(dataset, of), sep="\n")
    print("", *second_view(found), sep="\n")


if __name__ == "__main__":
    main()

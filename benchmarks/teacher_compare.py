"""The methods with two views of each image beside each other, paired by trial: the tables of docs/teacher.md.

    python benchmarks/teacher_compare.py cifar10 fashion       # from results/ledger, as Markdown
    SHORTLIST_DATA=... python benchmarks/teacher_compare.py cifar10 --run     # on a GPU, what the ledger does not hold

About 35 s a run of 100 epochs on an H200 for CIFAR10, 3 s for Fashion. All that is asked for trains together and is
stored when it has ended: where time is short, name parts of the plan.

Test accuracy after the last of 100 epochs, standard errors over the trials; the same trial has the same shortlists,
initial weights and order of items. Settings are those of results/ledger/tuning.jsonl; runs with others have a row of
their own. ECE is the expected calibration error in percent, of the runs that have it stored. The teacher takes 1.16
times the time of the likelihood with the same views, so that 86 epochs of it take as long as 100 of that; the column
"at equal seconds" is the teacher of 86 epochs minus the rival of 100.
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
"""What takes as long as the teacher, so that nothing is to be said of equal seconds."""
ONE_VIEW = ("proden", "rc", "likelihood")
Runs = list[tuple[str, int | None, int, int]]
"""Methods, each with a size, its trials and epochs; two views unless the name says `+aug`; `?` before options."""
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
    """What has a row in a table: runs that differ in nothing but the trial."""

    method: str
    views: str
    unlike: str
    """What they have otherwise than the settings that stand."""
    epochs: int

    def __str__(self) -> str:
        longer = "" if self.epochs == EPOCHS else f", {self.epochs} epochs"
        return f"{self.method}, {self.views}{self.unlike}{longer}"


def ours(epochs: int) -> Group:
    return Group("teacher", "two views", "", epochs)


def run(dataset: str, wanted: Runs, options: dict[str, float], ledgers: Ledgers) -> None:
    """Train what the ledger does not hold, all at once."""
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
    """Of `name=value,name=value`."""
    return {name: float(value) for name, _, value in (part.partition("=") for part in text.split(",") if part)}


def groups(dataset: str, size: int, ledger: Ledger, recipes: Recipes) -> dict[Group, Trials]:
    """The trials at a size of every method of the plan, with crops."""
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


def unlike(config: dict[str, Any], usual: RunConfig) -> str:
    """What a stored run has otherwise than the settings that stand."""
    options = stated_options(config["method"], config["method_options"])
    changed = [f"{name} {value}" for name, value in options.items() if usual.method_options.get(name) != value]
    if config["weight_decay"] != usual.weight_decay:
        changed.insert(0, f"weight decay {config['weight_decay']:g}")
    return "".join(f", {change}" for change in changed)


def figure(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard error in percent; a single value, which has none, in italics."""
    if not values:
        return ""
    text = f"{100 * mean(values):{sign}.2f}"
    return f"{text} ± {100 * stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else f"*{text}*"


def minus(ours: Trials, rows: Trials) -> str:
    """The teacher less a rival, of the trials that both have; how many, where that is not all of the rival's."""
    pairs = [ours[trial]["last"] - row["last"] for trial, row in rows.items() if trial in ours]
    return figure(pairs, "+") + (f" ({len(pairs)})" if 0 < len(pairs) < len(rows) else "")


def table(dataset: str, size: int, ledger: Ledger, recipes: Recipes) -> None:
    """One size, the best first; those with more epochs beside a teacher with as many."""
    found = groups(dataset, size, ledger, recipes)
    if ours(EPOCHS) not in found:
        return
    print(f"\n| {dataset}, size {size} | trials | accuracy | teacher minus it | at equal seconds | ECE |")
    print("|---|---|---|---|---|---|")
    for group, rows in sorted(found.items(), key=lambda entry: -mean(row["last"] for row in entry[1].values())):
        difference = "" if group == ours(group.epochs) else minus(found.get(ours(group.epochs), {}), rows)
        faster = group.method not in AS_SLOW and group.views == "two views" and group.epochs == EPOCHS
        equal = minus(found.get(ours(FEWER), {}), rows) if faster else ""
        errors = [row["calibration_error"] for row in rows.values() if row.get("calibration_error") is not None]
        accuracy = figure([row["last"] for row in rows.values()])
        print(f"| {group} | {len(rows)} | {accuracy} | {difference} | {equal} | {figure(errors)} |")


def all_sizes(dataset: str, ledger: Ledger, recipes: Recipes) -> None:
    """The teacher less each rival at every size, and over the sizes: a mean for each trial that has them all."""
    found = {size: by for size in SIZES if ours(EPOCHS) in (by := groups(dataset, size, ledger, recipes))}
    rivals = [group for group in found[SIZES[0]] if group.epochs == EPOCHS and not group.unlike]
    print(f"\n| {dataset}, teacher minus | {' | '.join(f'size {size}' for size in found)} | all sizes |")
    print("|---|" + "---|" * (len(found) + 1))
    for group in sorted(rivals, key=lambda group: (group.views == "one view", group.method)):
        each = [(by[ours(EPOCHS)], by.get(group, {})) for by in found.values()]
        trials = set.intersection(*(set(a) & set(b) for a, b in each))
        pooled = [mean(a[trial]["last"] - b[trial]["last"] for a, b in each) for trial in sorted(trials)]
        cells = [*(minus(a, b) for a, b in each), figure(pooled, "+")]
        if group == ours(EPOCHS):
            cells = [*(figure([row["last"] for row in a.values()]) for a, _ in each), ""]
        print(f"| {group} | {' | '.join(cells)} |")


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
        ledger, recipes = ledgers.of(dataset), Recipes(ledgers.of(TUNING).rows())
        for size in SIZES:
            table(dataset, size, ledger, recipes)
        all_sizes(dataset, ledger, recipes)


if __name__ == "__main__":
    main()

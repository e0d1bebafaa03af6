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
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from shortlist.study.plan.grid import Cell, PlannedRun, plan_run
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import MethodVariant, stated_options
from shortlist.study.run.driver import Budget, drive, open_engine
from shortlist.study.run.ledger import RUN, TUNING, Ledger, Ledgers, Row
from shortlist.training import RunConfig

EPOCHS, FEWER, SIZES = 100, 86, (3, 4, 5, 6, 7, 8)
OURS = MethodVariant("teacher", augment=True, strong=True)
NAMES = ("ol", "teacher", "proden", "rc", "crdpll", "dirk", "likelihood")
Trials = dict[int, Row]
RIVALS = ("teacher", "proden", "rc", "crdpll", "likelihood")
Runs = list[tuple[str, int | None, int, int]]
"""Methods with two views, each with a size, its trials and epochs."""
PLAN: dict[str, dict[str, Runs]] = {
    "fashion": {
        "rest": [*((name, 3, 5, EPOCHS) for name in RIVALS), ("ol", None, 5, EPOCHS)],
        "dirk": [("dirk", 3, 5, EPOCHS)],
        "equal": [("teacher", 3, 5, FEWER)],
        **{f"size{size}": [(name, size, 5, EPOCHS) for name in RIVALS] for size in (8, 5, 7, 6, 4)},
    },
    "cifar10": {
        "rest": [*((name, 3, 5, EPOCHS) for name in RIVALS if name != "likelihood"), ("ol", None, 3, EPOCHS)],
        "size5": [(name, 5, 3, EPOCHS) for name in RIVALS],
        "size8": [(name, 8, 3, EPOCHS) for name in ("teacher", "likelihood")],
        "longer": [(name, 3, 1, 2 * EPOCHS) for name in ("teacher", "proden", "crdpll")],
        "equal": [("teacher", 3, 3, FEWER)],
        "dirk": [("dirk", 3, 3, EPOCHS)],
    },
}


def run(dataset: str, wanted: Runs, ledgers: Ledgers) -> None:
    """Train what the ledger does not hold, all at once."""
    recipes = Recipes(ledgers.of(TUNING).rows())
    runs: list[PlannedRun] = []
    for name, size, trials, epochs in wanted:
        cell = Cell(dataset, "1-10", size, MethodVariant(name, augment=True, strong=True))
        runs += [plan_run(cell, trial, recipes, epochs) for trial in range(trials)]
    with open_engine("fleet") as engine:
        drive(runs, lambda _: ledgers.of(dataset), engine, Budget(batch_minutes=60), score_every=20, say=print)


def groups(dataset: str, size: int, ledger: Ledger, recipes: Recipes) -> dict[str, Trials]:
    """The trials of every variant with crops at a size, those with the settings that stand first."""
    found: dict[str, Trials] = defaultdict(dict)
    for row in ledger.rows():
        variant, epochs = MethodVariant.from_row(row), row["config"]["epochs"]
        plain = variant.augment and not variant.ema and variant.protocol == "fair" and variant.name in NAMES
        here = row["size"] == (None if variant.ordinary else size) and row["classes"] == "1-10"
        if not (plain and here and row["kind"] == RUN and epochs in (FEWER, EPOCHS, 2 * EPOCHS) and row["last"]):
            continue
        usual = plan_run(Cell(dataset, "1-10", row["size"], variant), row["trial"], recipes, epochs)
        views = ("two views" if variant.strong else "one view") + (", mixed" if variant.mix else "")
        other = "" if usual.key == row["key"] else unlike(row["config"], usual.config)
        longer = "" if epochs == EPOCHS else f", {epochs} epochs"
        found[f"{variant.name}, {views}{other}{longer}"][row["trial"]] = row
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
    ours = f"{OURS.name}, two views"
    if ours not in found:
        return
    print(f"\n| {dataset}, size {size} | trials | accuracy | teacher minus it | at equal seconds | ECE |")
    print("|---|---|---|---|---|---|")
    for name, rows in sorted(found.items(), key=lambda group: -mean(row["last"] for row in group[1].values())):
        epochs = next(iter(rows.values()))["config"]["epochs"]
        same = found.get(ours if epochs == EPOCHS else f"{ours}, {epochs} epochs", {})
        difference = "" if rows is same else minus(same, rows)
        shorter = "two views" in name and not name.startswith((OURS.name, "rc", "dirk")) and epochs == EPOCHS
        equal = minus(found.get(f"{ours}, {FEWER} epochs", {}), rows) if shorter else ""
        errors = [row["calibration_error"] for row in rows.values() if row.get("calibration_error") is not None]
        accuracy = figure([row["last"] for row in rows.values()])
        print(f"| {name} | {len(rows)} | {accuracy} | {difference} | {equal} | {figure(errors)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="+", choices=tuple(PLAN))
    parser.add_argument("--run", nargs="*", metavar="PART", help="first train these parts of the plan; none named: all")
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    ledgers = Ledgers(args.results)
    for dataset in args.datasets:
        if args.run is not None:
            parts = PLAN[dataset]
            run(dataset, [entry for name in args.run or parts for entry in parts[name]], ledgers)
        for size in SIZES:
            table(dataset, size, ledgers.of(dataset), Recipes(ledgers.of(TUNING).rows()))


if __name__ == "__main__":
    main()

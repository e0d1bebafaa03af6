"""The methods with two views of each image beside each other, paired by trial: the tables of docs/teacher.md.

    python benchmarks/teacher_compare.py cifar10 fashion       # from results/ledger, as Markdown

The runs, on a GPU (about 35 s each on an H200 for CIFAR10, 3 s for Fashion; what the ledger holds is not run again):

    shortlist reproduce table1 --datasets cifar10 --epochs 100 --trials 5 --sizes 3,5,8 --protocol fair \\
        --methods teacher+aug+strong,proden+aug+strong,rc+aug+strong,crdpll+aug+strong,ol+aug+strong

Test accuracy after the last of 100 epochs, standard errors over the trials; the same trial has the same shortlists,
initial weights and order of items. Settings are those of results/ledger/tuning.jsonl; runs with others have a row of
their own. ECE is the expected calibration error in percent, of the runs that have it stored.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from shortlist.study.plan.grid import Cell, plan_run
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.variants import MethodVariant, stated_options
from shortlist.study.run.ledger import RUN, TUNING, Ledger, Ledgers, Row
from shortlist.training import RunConfig

EPOCHS, SIZES = 100, (3, 5, 8)
OURS = MethodVariant("teacher", augment=True, strong=True)
NAMES = ("ol", "teacher", "proden", "rc", "crdpll", "dirk", "likelihood")
Trials = dict[int, Row]


def groups(dataset: str, size: int, ledger: Ledger, recipes: Recipes) -> dict[str, Trials]:
    """The trials of every variant with crops at a size, those with the settings that stand first."""
    found: dict[str, Trials] = defaultdict(dict)
    for row in ledger.rows():
        variant = MethodVariant.from_row(row)
        plain = variant.augment and not variant.ema and variant.protocol == "fair" and variant.name in NAMES
        here = row["size"] == (None if variant.ordinary else size) and row["classes"] == "1-10"
        if not (plain and here and row["kind"] == RUN and row["config"]["epochs"] == EPOCHS and row["last"]):
            continue
        usual = plan_run(Cell(dataset, "1-10", row["size"], variant), row["trial"], recipes, EPOCHS)
        views = ("two views" if variant.strong else "one view") + (", mixed" if variant.mix else "")
        other = "" if usual.key == row["key"] else unlike(row["config"], usual.config)
        found[f"{variant.name}, {views}{other}"][row["trial"]] = row
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


def table(dataset: str, size: int, ledger: Ledger, recipes: Recipes) -> None:
    """One size, the best first."""
    found = groups(dataset, size, ledger, recipes)
    ours = found.get(f"{OURS.name}, two views", {})
    if not ours:
        return
    print(f"\n| {dataset}, size {size} | trials | accuracy | teacher minus it | ECE |\n|---|---|---|---|---|")
    for name, rows in sorted(found.items(), key=lambda group: -mean(row["last"] for row in group[1].values())):
        pairs = [ours[trial]["last"] - row["last"] for trial, row in rows.items() if trial in ours]
        errors = [row["calibration_error"] for row in rows.values() if row.get("calibration_error") is not None]
        minus = "" if rows is ours else figure(pairs, "+") + (f" ({len(pairs)})" if len(pairs) < len(rows) else "")
        accuracy = figure([row["last"] for row in rows.values()])
        print(f"| {name} | {len(rows)} | {accuracy} | {minus} | {figure(errors)} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    ledgers = Ledgers(args.results)
    for dataset in args.datasets:
        for size in SIZES:
            table(dataset, size, ledgers.of(dataset), Recipes(ledgers.of(TUNING).rows()))


if __name__ == "__main__":
    main()

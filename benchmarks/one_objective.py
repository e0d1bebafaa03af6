"""LOG with the settings that make it CC: where the difference of two rows of the study comes from.

Measured on an H200 (results/one_objective.jsonl), 12 cells, 5 trials: -0.235 ± 0.019 as tuned, +0.041 ± 0.035 with CC's
settings for both.

From None answers LOG is CC times (K - 1)/l, so LOG at CC's rate divided by that factor, and CC's weight decay times it,
is CC step by step (tests/training/test_one_objective.py). This runs every cell of Fashion so, None answers alone, and
prints LOG less CC, paired by trial: with the settings that each was tuned to, and with CC's for both.

    SHORTLIST_DATA=... python benchmarks/one_objective.py         # 60 runs, about a minute on an H200
    python benchmarks/one_objective.py --print                    # what is stored in results/one_objective.jsonl
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from shortlist.internal.provenance import provenance
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import Cell, Wanted, cells, plan_run
from shortlist.study.plan.recipes import Recipes
from shortlist.study.plan.run_keys import key_of
from shortlist.study.run.ledger import TUNING, Ledger, Ledgers
from shortlist.training import Engine, RunConfig, train_fleet

DATASET, TRIALS = "fashion", 5
CLASSES = ("1-10", "1-8", "1-6", "5-10", "1-4", "4-7", "7-10")


def as_cc(cell: Cell, trial: int, recipes: Recipes) -> RunConfig:
    """LOG's run of a cell of CC with CC's settings, the factor undone."""
    assert cell.size is not None
    cc, factor = plan_run(cell, trial, recipes).config, (cell.num_classes - 1) / cell.size
    return replace(cc, method="log", lr=cc.lr / factor, weight_decay=cc.weight_decay * factor)


def run(wanted: dict[str, RunConfig], ledger: Ledger) -> None:
    """Train what is not stored yet."""
    configs = [config for key, config in wanted.items() if key not in ledger]
    if not configs:
        return
    engine = Engine().resolve(10**9)
    for result in train_fleet(datasets.load(DATASET), configs, engine=Engine(), score_every=100):
        entry = {"key": key_of(DATASET, result.config), "kind": "tried", "dataset": DATASET}
        found = {"last": result.history[-1].test_accuracy, "failed": result.failed}
        ledger.append({**entry, **found, **provenance(engine.device), "config": result.config.to_dict()})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    stored, same = Ledgers(args.results), Ledger(args.results / "one_objective.jsonl")
    recipes = Recipes(stored.of(TUNING).rows())
    places = cells(Wanted(datasets=(DATASET,), methods=("cc",), protocols=("paper",), classes=CLASSES))
    if not args.print:
        configs = [as_cc(cell, trial, recipes) for cell in places for trial in range(TRIALS)]
        run({key_of(DATASET, config): config for config in configs}, same)
    tuned, undone = [], []
    for cell in places:
        found = []
        for trial in range(TRIALS):
            cc = stored.of(DATASET).get(plan_run(cell, trial, recipes).key)
            log_cell = replace(cell, variant=replace(cell.variant, name="log"))
            log = stored.of(DATASET).get(plan_run(log_cell, trial, recipes).key)
            twin = same.get(key_of(DATASET, as_cc(cell, trial, recipes)))
            if cc and log and twin:
                found.append((log["last"] - cc["last"], twin["last"] - cc["last"]))
        if found:
            by_cell = 100 * np.array(found)
            tuned.append(by_cell[:, 0])
            undone.append(by_cell[:, 1])
            means = by_cell.mean(0)
            print(f"{cell.classes:>5} size {cell.size}: as tuned {means[0]:+.2f}, CC's settings {means[1]:+.2f}")
    for name, differences in (("as tuned", tuned), ("CC's settings for both", undone)) if tuned else ():
        by_trial = np.mean(differences, 0)  # cells of one trial share a seed: a trial is one observation
        error = by_trial.std(ddof=1) / len(by_trial) ** 0.5
        print(f"LOG less CC, {name}: {by_trial.mean():+.3f} ± {error:.3f} ({len(differences)} cells, {TRIALS} trials)")


if __name__ == "__main__":
    main()

"""Options and settings of the methods with two views, scored on held-out answers alone: docs/teacher.md's ablation.

Measured on an H200 (results/teacher_ablation.jsonl; most rows by an earlier form of this script), CIFAR10, 3 of 10
classes shown: `decay=0.99, memory=0.5, temperature=1` leads with 89.18 %, PRODEN has 88.98 %; see docs/teacher.md.

    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py options cifar10    # 23 runs, about 6 minutes on an H200
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py settings fashion   # learning rates, weight decays, views
    python benchmarks/teacher_ablation.py table cifar10                         # prints what is stored

40 epochs, a tenth of the training items held out, size 3, seeds that no trial has; test items are not there. The score
is the accuracy by all held-out answers, None among them, mean of the last ten epochs. What is stored is not run again.
`options` has one seed, `settings` two; the best points of `settings` are choices in results/ledger/tuning.jsonl.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from shortlist.internal.provenance import provenance
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import HOLDOUT, Cell, config_of
from shortlist.study.plan.recipes import Recipe
from shortlist.study.plan.run_keys import key_of
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.run.ledger import Ledger, Row
from shortlist.training import Engine, RunConfig, mean_of_last, train_fleet

EPOCHS, SIZE, SEEDS, NUM_CLASSES = 40, 3, (1000, 1001), 10
METHODS = ("teacher", "rc", "proden", "crdpll", "likelihood", "ol")


@dataclass(frozen=True)
class Point:
    """What is tried."""

    method: str
    options: dict[str, Any] = field(default_factory=dict)
    lr: float = 0.1
    weight_decay: float = 1e-3
    strong: bool = True

    @property
    def variant(self) -> MethodVariant:
        return MethodVariant(self.method, augment=True, strong=self.strong)

    def config(self, dataset: str, seed: int) -> RunConfig:
        cell = Cell(dataset, "1-10", None if self.method == "ol" else SIZE, self.variant)
        recipe = Recipe(self.lr, self.weight_decay, method_options=dict(self.options))
        return config_of(cell, seed, recipe, EPOCHS, HOLDOUT)


def teacher(temperature: float = 1.0, decay: float = 0.99, memory: float = 0.5, **others: Any) -> Point:
    return Point("teacher", {"temperature": temperature, "decay": decay, "memory": memory, **others})


FIRST = {"temperature": 0.5, "decay": 0.999, "memory": 0.0}
"""The form that was run first."""
OPTIONS = [
    *(Point(method) for method in ("ol", "likelihood", "rc", "proden")),
    teacher(),
    *(Point("teacher", {**FIRST, **change}) for change in ({}, {"decay": 0.99}, {"temperature": 1.0})),
    *(Point("teacher", {**FIRST, **change}) for change in ({"ramp": 0.3}, {"pull": 0.5})),
    *(teacher(memory=0.0, decay=decay) for decay in (0.99, 0.9995)),
    *(teacher(memory=memory, decay=decay) for memory, decay in product((0.7, 0.9), (0.0, 0.99))),
    teacher(memory=0.9, decay=0.999),
    teacher(memory=0.9, temperature=0.7),
    teacher(memory=0.0, fresh=False),
    *(teacher(memory=0.5, decay=0.0, temperature=t, fresh=False) for t in (1.0, 0.7)),
    *(teacher(memory=0.7, decay=decay, fresh=False) for decay in (0.0, 0.99)),
]
SETTINGS = {
    "cifar10": [
        *(Point(m, weight_decay=wd) for m, wd in product(("proden", "crdpll"), (5e-4, 1e-3))),
        Point("crdpll", {"ramp": 0.1}),
    ],
    "fashion": [
        *(Point(m, {}, lr, wd) for m, lr, wd in product(METHODS, (0.1, 0.05), (1e-4, 5e-4))),
        *(Point(m, {}, 0.1, 1e-4, strong=False) for m in METHODS),
    ],
}


def score(row: Row) -> float:
    """The accuracy by all held-out answers; earlier rows have it in two parts, which inverse variances join."""
    if row.get("estimate") is not None:
        return float(row["estimate"])
    if row["validation_of_none"] is None:
        return float(row["validation"])
    size, wrong = row["size"], 0.1
    among = wrong * size / (NUM_CLASSES - 1)
    by_answer = wrong * (1 - wrong) / (size / NUM_CLASSES)
    by_none = ((NUM_CLASSES - 1) / size) ** 2 * among * (1 - among) / (1 - size / NUM_CLASSES)
    joined = by_none * row["validation"] + by_answer * row["validation_of_none"]
    return float(joined / (by_answer + by_none))


def run(dataset: str, points: Sequence[Point], seeds: Sequence[int], ledger: Ledger) -> None:
    """Train what is not stored yet, without the test items."""
    data, engine = replace(datasets.load(dataset), test=None), Engine().resolve(10**9)
    wanted = {key_of(dataset, c): c for c in (point.config(dataset, seed) for point in points for seed in seeds)}
    configs = [config for key, config in wanted.items() if key not in ledger]
    results = train_fleet(data, configs, engine=Engine(), score_every=EPOCHS) if configs else []
    for result in results:
        config, whole = result.config, result.failed is None
        entry = {"key": key_of(dataset, config), "kind": "tried", "dataset": dataset, "size": config.size}
        found = {
            "validation": mean_of_last(result.history, "validation_accuracy") if whole else None,
            "estimate": mean_of_last(result.history, "validation_estimate") if whole else None,
        }
        about = {"seed": config.seed, "failed": result.failed, **provenance(engine.device), "config": config.to_dict()}
        ledger.append({**entry, **found, "validation_of_none": None, **about})


def table(dataset: str, ledger: Ledger) -> None:
    """Every stored point of a dataset, the best first, and its paired difference to PRODEN of the same settings."""
    groups: dict[str, dict[int, Row]] = {}
    for row in ledger.rows():
        c = row["config"]
        if row["dataset"] == dataset and row["validation"] is not None:
            views = "two views" if c["strong"] else "one view"
            name = f"{c['method']} {c['method_options'] or ''} lr {c['lr']:g} wd {c['weight_decay']:g} {views}"
            groups.setdefault(name, {})[row["seed"]] = row
    for name, rows in sorted(groups.items(), key=lambda group: -mean(map(score, group[1].values()))):
        settings = name[name.index(" lr ") :]
        rival = next((r for n, r in groups.items() if n.startswith("proden") and n.endswith(settings)), {})
        pairs = ", ".join(f"{100 * (score(rows[s]) - score(rival[s])):+.2f}" for s in sorted(rows) if s in rival)
        print(f"{100 * mean(map(score, rows.values())):6.2f} ({len(rows)})  minus PRODEN: {pairs or '-':16} {name}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("options", "settings", "table"))
    parser.add_argument("dataset", choices=tuple(SETTINGS))
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    ledger = Ledger(args.results / "teacher_ablation.jsonl")
    if args.what == "options":
        run(args.dataset, OPTIONS, SEEDS[:1], ledger)
    if args.what == "settings":
        run(args.dataset, SETTINGS[args.dataset], SEEDS, ledger)
    table(args.dataset, ledger)


if __name__ == "__main__":
    main()

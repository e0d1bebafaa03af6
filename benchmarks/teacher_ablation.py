"""Options and settings of the methods with two views, scored on held-out answers alone: docs/teacher.md's ablation.

Measured on an H200 (results/teacher_ablation.jsonl; most rows by an earlier form of this script), CIFAR10, 3 of 10
classes shown: `decay=0.99, memory=0.5, temperature=1` leads with 89.18 %, PRODEN has 88.98 %; see docs/teacher.md.

    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py options cifar10    # 23 runs, about 6 minutes on an H200
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py settings fashion   # learning rates, weight decays, views
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py changes cifar10    # one change of the defaults at a time
    python benchmarks/teacher_ablation.py table cifar10                         # prints what is stored

40 epochs, a tenth of the training items held out, size 3, seeds that no trial has; test items are not there. The score
is the accuracy by all held-out answers, None among them, mean of the last ten epochs. What is stored is not run again.
`options` has one seed, `settings` two; the best points of `settings` are choices in results/ledger/tuning.jsonl.
`changes` holds out three tenths, which triples what a score rests on, with two seeds of 40 epochs on CIFAR10 and four
of 100 on Fashion; then it runs all changes that gained together, and once more the two that gained most.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from shortlist.internal.provenance import provenance
from shortlist.study.choose.points import SETTINGS
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import HOLDOUT, Cell, config_of
from shortlist.study.plan.recipes import CHOICE, Recipe
from shortlist.study.plan.run_keys import digest, key_of
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.run.ledger import TUNING, Ledger, Ledgers, Row
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
    mix: bool = False
    epochs: int = EPOCHS
    holdout: float = HOLDOUT

    @property
    def variant(self) -> MethodVariant:
        return MethodVariant(self.method, augment=True, strong=self.strong, mix=self.mix)

    def config(self, dataset: str, seed: int) -> RunConfig:
        cell = Cell(dataset, "1-10", None if self.method == "ol" else SIZE, self.variant)
        recipe = Recipe(self.lr, self.weight_decay, method_options=dict(self.options))
        return config_of(cell, seed, recipe, self.epochs, self.holdout)


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
TRIED = {
    "cifar10": [
        *(Point(m, weight_decay=wd) for m, wd in product(("proden", "crdpll"), (5e-4, 1e-3))),
        Point("crdpll", {"ramp": 0.1}),
    ],
    "fashion": [
        *(Point(m, {}, lr, wd) for m, lr, wd in product(METHODS, (0.1, 0.05), (1e-4, 5e-4))),
        *(Point(m, {}, 0.1, 1e-4, strong=False) for m in METHODS),
    ],
}
CHANGES: dict[str, dict[str, Any]] = {
    "apart": {"apart": True},
    "pull=0.5": {"pull": 0.5},
    "pull=2": {"pull": 2.0},
    "whole=0.2": {"whole": 0.2},
    "whole=0.5": {"whole": 0.5},
    "confident=0.7": {"confident": 0.7},
    "mix": {},
}
"""Of the defaults, one at a time; of two values of an option the better one goes on."""
PLACES = {"cifar10": (1e-3, 1e-3, 40, (2000, 2001)), "fashion": (5e-4, 1e-4, 100, (2000, 2001, 2002, 2003))}
"""Weight decay of the teacher and of PRODEN, epochs and seeds of `changes`."""


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
    wanted = {key_of(dataset, c): c for c in (point.config(dataset, seed) for point in points for seed in seeds)}
    configs = [config for key, config in wanted.items() if key not in ledger]
    if not configs:
        return
    data, engine = replace(datasets.load(dataset), test=None), Engine().resolve(10**9)
    for result in train_fleet(data, configs, engine=Engine(), score_every=100):
        config, whole = result.config, result.failed is None
        entry = {"key": key_of(dataset, config), "kind": "tried", "dataset": dataset, "size": config.size}
        found = {
            "validation": mean_of_last(result.history, "validation_accuracy") if whole else None,
            "estimate": mean_of_last(result.history, "validation_estimate") if whole else None,
        }
        about = {"seed": config.seed, "failed": result.failed, **provenance(engine.device), "config": config.to_dict()}
        ledger.append({**entry, **found, "validation_of_none": None, **about})


def changed(dataset: str, names: Sequence[str], method: str = "teacher") -> Point:
    """The defaults with these changes, as `changes` runs them."""
    ours, theirs, epochs, _ = PLACES[dataset]
    options = {key: value for name in names for key, value in CHANGES[name].items()}
    weight_decay = ours if method == "teacher" else theirs
    return Point(method, options, 0.1, weight_decay, mix="mix" in names, epochs=epochs, holdout=0.3)


def keep(dataset: str, leader: str, tried: dict[str, Point], base: Point, ledger: Ledger, tuning: Ledger) -> None:
    """Store what `changes` came to as the study's choice for its variant."""
    point, seeds = tried.get(leader, base), PLACES[dataset][3]
    keys = [key_of(dataset, p.config(dataset, s)) for p in (base, *tried.values()) for s in seeds]
    place = {"dataset": dataset, **point.variant.to_dict()}
    rows = [row for s in seeds if (row := ledger.get(key_of(dataset, point.config(dataset, s))))]
    accuracy, epochs = mean(map(score, rows)), PLACES[dataset][2]
    source = (
        f"options: {leader or 'the defaults'} of {len(tried) + 1} sets, {epochs} epochs at size {SIZE}, "
        f"{len(seeds)} seeds, held-out accuracy {100 * accuracy:.2f} by all answers (results/teacher_ablation.jsonl)"
    )
    row = {
        "key": digest({"kind": CHOICE, "by": "search", **place, "points": keys, "chosen": leader}),
        "kind": CHOICE,
        "by": "search",
        **place,
        "settings": {name: rows[0]["config"][name] for name in SETTINGS},
        "score": round(accuracy, 6),
        "source": source,
        "chosen": rows[0]["key"],
        "points": keys,
        "date": rows[0]["date"],
    }
    tuning.append(row)


def changes(dataset: str, ledger: Ledger, tuning: Ledger) -> None:
    """One change at a time beside the defaults, then those that gained together.

    The choice is the best of them, or the defaults where these are within its standard error, as in all of the study.
    """
    seeds = PLACES[dataset][3]
    single = {name: changed(dataset, [name]) for name in CHANGES}
    rivals = [changed(dataset, [], "proden"), changed(dataset, ["mix"], "proden")]
    base = changed(dataset, [])
    run(dataset, [base, *single.values(), *rivals], seeds, ledger)

    def gain(point: Point) -> list[float]:
        ours, theirs = ([ledger.get(key_of(dataset, p.config(dataset, s))) for s in seeds] for p in (point, base))
        pairs = zip(ours, theirs, strict=True)
        return [100 * (score(a) - score(b)) for a, b in pairs if a and b and not (a["failed"] or b["failed"])]

    gains = {name: mean(gain(point)) for name, point in single.items()}
    best: dict[str, str] = {}
    for name in sorted(gains, key=lambda name: -gains[name]):
        if gains[name] > 0:
            best.setdefault(name.partition("=")[0], name)
    together = [list(best.values()), list(best.values())[:2]]
    run(dataset, [changed(dataset, names) for names in together if len(names) > 1], seeds, ledger)
    shown = {**single, **{" + ".join(n): changed(dataset, n) for n in together}}
    ours = {name: point for name, point in shown.items() if gain(point)}
    leader = max(ours, key=lambda name: mean(gain(ours[name])))
    best_gain = gain(ours[leader])
    keep(dataset, leader if mean(best_gain) > error(best_gain) else "", ours, base, ledger, tuning)
    shown |= {"PRODEN": rivals[0], "PRODEN, mix": rivals[1]}
    for name, point in shown.items():
        found = gain(point)
        print(f"{name:40} {mean(found):+.2f} ± {error(found):.2f}  {[round(value, 2) for value in found]}")


def error(values: Sequence[float]) -> float:
    """The standard error of a mean; of one value it is not known, and nothing is sure."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("inf")


def table(dataset: str, ledger: Ledger) -> None:
    """Every stored point of a dataset, the best first, and its paired difference to PRODEN of the same settings."""
    groups: dict[str, dict[int, Row]] = {}
    for row in ledger.rows():
        c = row["config"]
        if row["dataset"] == dataset and row["validation"] is not None:
            views = ("two views" if c["strong"] else "one view") + (", mixed" if c.get("mix") else "")
            length = "" if (c["epochs"], c["holdout"]) == (EPOCHS, HOLDOUT) else f", {c['epochs']} epochs of 7 tenths"
            settings = f" lr {c['lr']:g} wd {c['weight_decay']:g} {views}{length}"
            name = f"{c['method']} {c['method_options'] or ''}{settings}"
            groups.setdefault(name, {})[row["seed"]] = row
    for name, rows in sorted(groups.items(), key=lambda group: -mean(map(score, group[1].values()))):
        settings = name[name.index(" lr ") :]
        rival = next((r for n, r in groups.items() if n.startswith("proden") and n.endswith(settings)), {})
        pairs = ", ".join(f"{100 * (score(rows[s]) - score(rival[s])):+.2f}" for s in sorted(rows) if s in rival)
        print(f"{100 * mean(map(score, rows.values())):6.2f} ({len(rows)})  minus PRODEN: {pairs or '-':16} {name}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("options", "settings", "changes", "table"))
    parser.add_argument("dataset", choices=tuple(TRIED))
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    ledger = Ledger(args.results / "teacher_ablation.jsonl")
    if args.what == "options":
        run(args.dataset, OPTIONS, SEEDS[:1], ledger)
    if args.what == "settings":
        run(args.dataset, TRIED[args.dataset], SEEDS, ledger)
    if args.what == "changes":
        changes(args.dataset, ledger, Ledgers(args.results).of(TUNING))
    else:
        table(args.dataset, ledger)


if __name__ == "__main__":
    main()

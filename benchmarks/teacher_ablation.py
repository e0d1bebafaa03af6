"""Options and settings of the methods with two views, scored on held-out answers alone: docs/teacher.md's ablation.

Measured on an H200 (results/teacher_ablation.jsonl; most rows by an earlier form of this script), CIFAR10, 3 of 10
classes shown: `decay=0.99, memory=0.5, temperature=1` leads with 89.18 %, PRODEN has 88.98 %; see docs/teacher.md.

    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py options cifar10    # 23 runs, about 6 minutes on an H200
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py settings fashion   # learning rates, weight decays, views
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py changes cifar10    # one change of the defaults at a time
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py forms fashion      # other forms of it (teacher_*forms.py)
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py decays fashion     # weight decays at 100 epochs
    python benchmarks/teacher_ablation.py table cifar10                         # prints what is stored

40 epochs, a tenth of the training items held out, size 3, seeds that no trial has; test items are not there. The score
is the accuracy by all held-out answers, None among them, mean of the last ten epochs. What is stored is not run again.
`options` has one seed, `settings` two; the best points of `settings` are choices in results/ledger/tuning.jsonl.
`changes` holds out three tenths, which triples what a score rests on, with two seeds of 40 epochs on CIFAR10 and four
of 100 on Fashion; then it runs together the changes that gained more than their standard error. PRODEN and DIRK have a
few tries there, too. `decays` has 100 epochs, a tenth held out; six seeds on Fashion, two on CIFAR10. Of each method's
points the best is its choice, unless the first is within a standard error of it.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev, variance
from typing import Any

from shortlist.internal.provenance import provenance
from shortlist.study.choose.points import SETTINGS
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import HOLDOUT, Cell, config_of
from shortlist.study.plan.recipes import CHOICE, Recipe
from shortlist.study.plan.run_keys import digest, key_of, own_code
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.run.ledger import TUNING, Ledger, Ledgers, Row
from shortlist.training import Engine, RunConfig, mean_of_last, train_fleet
from teacher_beliefs import right_of_none

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
    "temperature=1.5": {"temperature": 1.5},
    "aligned": {"aligned": True},
    "mix": {},
}
"""Of the defaults, one at a time; of two values of an option the better one goes on."""
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "the w of the epoch before": ("teacher", {"fresh": False}),
    "no memory": ("teacher", {"memory": 0.0}),
    "own passes": ("teacher", {"decay": 0.0}),
    "own passes, no memory": ("teacher", {"decay": 0.0, "memory": 0.0}),
    "own passes, both views": ("teacher_forms:BothViews", {}),
    "ramp": ("teacher", {"ramp": 0.3}),
    "confident": ("teacher", {"confident": 0.7}),
    "annealed": ("teacher_forms:Annealed", {}),
    "soft answers": ("teacher_forms:SoftAnswers", {}),
    "heavy answers": ("teacher_more_forms:HeavyAnswers", {}),
    "memory that grows": ("teacher_more_forms:Settling", {}),
    "memory that fades": ("teacher_more_forms:Settling", {"memory": 0.9, "end": 0.0}),
    "strong view only": ("teacher_forms:StrongOnly", {}),
    "strong view only, sharpened": ("teacher_forms:StrongOnly", {"memory": 0.0, "temperature": 0.5}),
    "agreement in all classes": ("teacher_forms:Agreement", {}),
    "slow": ("teacher", {"decay": 0.999}),
    "slow, no memory": ("teacher", {"decay": 0.999, "memory": 0.0}),
    "slow, sharpened, half": ("teacher", {**FIRST, "pull": 0.5}),
    "slow, sharpened a little, half": ("teacher", {**FIRST, "temperature": 0.7, "pull": 0.5}),
    "slow, sharpened, half, memory": ("teacher", {**FIRST, "memory": 0.5, "pull": 0.5}),
    "slow, sharpened, ramp": ("teacher", {**FIRST, "ramp": 0.3}),
    "slow, sharpened, confident": ("teacher", {**FIRST, "confident": 0.8}),
    "slow, sharpened, strong view only": ("teacher_forms:StrongOnly", FIRST),
}
"""Other forms, each a method with its options; what is not stated is as the defaults have it."""
PLACES = {"cifar10": (40, (2000, 2001)), "fashion": (100, (2000, 2001, 2002, 2003))}
"""Epochs and seeds of `changes`."""
DEFAULTS = "the defaults"
SIDES = ("trained", "held")
FORM_EPOCHS = 100
"""Of `forms`: in 40 epochs whatever learns slowly loses, whether or not it would end higher."""
DECAYS: dict[str, dict[str, tuple[float, ...]]] = {
    "cifar10": {"teacher": (1e-3,), "proden": (1e-3,), "dirk": (1e-3,), "likelihood": (5e-4, 1e-3), "ol": (5e-4, 1e-3)},
    "fashion": {"teacher": (5e-4, 1e-4), "proden": (1e-4, 5e-4), "dirk": (5e-4, 1e-4), "likelihood": (5e-4, 1e-4)},
}
"""Weight decays of `changes` and `decays`: the one that stands first, then others."""
CHANGED = ("teacher", "proden", "dirk")
"""Methods of `changes`."""
LONG = {
    "cifar10": (("likelihood", "ol"), range(3000, 3002)),
    "fashion": (("teacher", "proden", "likelihood"), range(3000, 3006)),
}
"""Methods and seeds of `decays`."""


def score(row: Row) -> float:
    """The accuracy by all held-out answers; earlier rows have it in two parts, which inverse variances join."""
    if row.get("estimate") is not None:
        return float(row["estimate"])
    if row.get("validation_of_none") is None:
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
        entry |= own_code(config.method)
        found: dict[str, Any] = {
            "validation": mean_of_last(result.history, "validation_accuracy") if whole else None,
            "estimate": mean_of_last(result.history, "validation_estimate") if whole else None,
            "right_of_none": right_of_none(data, result, engine.device),
        }
        about = {"seed": config.seed, "failed": result.failed, **provenance(engine.device), "config": config.to_dict()}
        ledger.append({**entry, **found, **about})


def changed(dataset: str, names: Sequence[str], method: str = "teacher", weight_decay: float | None = None) -> Point:
    """The defaults with these changes, as `changes` runs them."""
    options = {key: value for name in names for key, value in CHANGES[name].items()}
    decay = weight_decay or DECAYS[dataset][method][0]
    return Point(method, options, 0.1, decay, mix="mix" in names, epochs=PLACES[dataset][0], holdout=0.3)


def points_of(dataset: str, method: str) -> dict[str, Point]:
    """What `changes` tries of a method; the first is what stands."""
    names = {"teacher": list(CHANGES), "proden": ["mix"]}.get(method, [])
    decays = DECAYS[dataset][method]
    return {
        method: changed(dataset, [], method),
        **{f"{method}, {name}": changed(dataset, [name], method) for name in names},
        **{f"{method}, weight decay {decay:g}": changed(dataset, [], method, decay) for decay in decays[1:]},
    }


@dataclass
class Tries:
    """Points on a dataset with some seeds each, and what is stored of them."""

    dataset: str
    ledger: Ledger
    seeds: Sequence[int]

    def rows(self, point: Point) -> list[Row]:
        """By seed."""
        keys = (key_of(self.dataset, point.config(self.dataset, seed)) for seed in self.seeds)
        return [row for key in keys if (row := self.ledger.get(key)) and not row["failed"]]

    def gain(self, point: Point, over: Point) -> list[float]:
        """Of held-out accuracy, in points, by seed."""
        theirs = {row["seed"]: row for row in self.rows(over)}
        pairs = [(row, theirs[row["seed"]]) for row in self.rows(point) if row["seed"] in theirs]
        return [100 * (score(ours) - score(other)) for ours, other in pairs]

    def error(self, points: Sequence[Point], base: Point) -> float:
        """The standard error of a gain, pooled over points: that of a few seeds alone is hardly known."""
        gains = [self.gain(point, base) for point in points if point != base]
        return float((mean(map(variance, gains)) / len(self.seeds)) ** 0.5)

    def choice(self, points: dict[str, Point], error: float) -> Row:
        """Of a method's points the best; the first, where that is within a standard error of it."""
        (first, base), *_ = points.items()
        gains = {name: mean(self.gain(point, base)) for name, point in points.items()}
        best = max(gains, key=lambda name: gains[name])
        chosen = best if gains[best] > error else first
        rows, epochs, seeds = self.rows(points[chosen]), points[chosen].epochs, self.seeds
        accuracy = mean(map(score, rows))
        keys = [key_of(self.dataset, point.config(self.dataset, seed)) for point in points.values() for seed in seeds]
        place = {"dataset": self.dataset, **points[chosen].variant.to_dict()}
        return {
            "key": digest({"kind": CHOICE, "by": "search", **place, "points": keys, "chosen": chosen}),
            "kind": CHOICE,
            "by": "search",
            **place,
            "settings": {name: rows[0]["config"][name] for name in SETTINGS},
            "score": round(accuracy, 6),
            "source": f"{chosen}: of {len(points)} points, {epochs} epochs at size {SIZE}, {len(seeds)} seeds, "
            f"held-out accuracy {100 * accuracy:.2f} by all answers (results/teacher_ablation.jsonl)",
            "chosen": rows[0]["key"],
            "points": keys,
            "date": rows[0]["date"],
        }


def changes(dataset: str, ledger: Ledger, tuning: Ledger) -> None:
    """One change at a time beside the defaults, then those that gained together; each method's choice is stored."""
    seeds = PLACES[dataset][1]
    tries = Tries(dataset, ledger, seeds)
    points = {method: points_of(dataset, method) for method in CHANGED}
    run(dataset, [point for of in points.values() for point in of.values()], seeds, ledger)
    base, best = points["teacher"]["teacher"], dict[str, str]()
    gains = {name: mean(tries.gain(points["teacher"][f"teacher, {name}"], base)) for name in CHANGES}
    error = tries.error(list(points["teacher"].values()), base)
    for name in sorted(gains, key=lambda name: -gains[name]):
        if gains[name] > error:
            best.setdefault(name.partition("=")[0], name)
    if len(best) > 1:
        together = changed(dataset, list(best.values()))
        run(dataset, [together], seeds, ledger)
        points["teacher"][f"teacher, {', '.join(best.values())}"] = together
    for of in points.values():
        settle(tries, of, base, error, tuning)


def settle(tries: Tries, points: dict[str, Point], base: Point, error: float, tuning: Ledger) -> None:
    """Store a method's choice, and print what each of its points gained over `base`."""
    choice = tries.choice(points, error)
    tuning.append(choice)
    for name, point in points.items():
        print(f"{name:40} {gain_text(tries.gain(point, base))}")
    print(choice["source"])


def decays(dataset: str, ledger: Ledger, tuning: Ledger) -> None:
    """Weight decays at the length and, but for a tenth, with the items of the study; each method's choice is stored."""
    methods, seeds = LONG[dataset]
    tries = Tries(dataset, ledger, seeds)
    points = {
        method: {
            f"{method}, weight decay {decay:g}": Point(method, {}, 0.1, decay, epochs=100)
            for decay in DECAYS[dataset][method]
        }
        for method in methods
    }
    run(dataset, [point for of in points.values() for point in of.values()], seeds, ledger)
    for of in points.values():
        base, other = of.values()
        settle(tries, of, base, tries.error([other], base), tuning)


def form_points(dataset: str, names: Sequence[str]) -> dict[str, Point]:
    """The defaults, PRODEN and these forms; all forms where none is named."""
    base, proden = (replace(changed(dataset, [], method), epochs=FORM_EPOCHS) for method in ("teacher", "proden"))
    points = {DEFAULTS: base, "PRODEN": proden}
    for name in names or FORMS:
        method, options = FORMS[name]
        points[name] = replace(base, method=method, options=options)
    return points


def forms(dataset: str, ledger: Ledger, names: Sequence[str], count: int | None) -> None:
    """Train other forms, then print all that are stored."""
    seeds = PLACES[dataset][1] if count is None else tuple(range(2000, 2000 + count))
    run(dataset, list(form_points(dataset, names).values()), seeds, ledger)
    forms_table(ledger)


def forms_table(ledger: Ledger) -> None:
    """What each stored form gained, as Markdown."""
    points = {dataset: form_points(dataset, ()) for dataset in PLACES}
    tries = {dataset: Tries(dataset, ledger, seeds) for dataset, (_, seeds) in PLACES.items()}
    gains = {
        dataset: {name: tries[dataset].gain(point, of[DEFAULTS]) for name, point in of.items()}
        for dataset, of in points.items()
    }
    print("\n| form | options | CIFAR10 | right about None: trained on | held out | Fashion |")
    print("|---|---|---|---|---|---|")
    for name, point in points["cifar10"].items():
        first, second = (gains[dataset][name] for dataset in PLACES)
        beliefs = beliefs_text(tries["cifar10"].rows(point))
        options = ", ".join(f"{option}={value}" for option, value in point.options.items())
        if first or second:
            print(f"| {name} | {options and f'`{options}`'} | {figure(first)} | {beliefs} | {figure(second)} |")


def figure(gains: Sequence[float]) -> str:
    """Mean and standard error; a single gain, which has none, in italics."""
    if len(gains) < 2:
        return "".join(f"*{gain:+.2f}*" for gain in gains)
    return f"{mean(gains):+.2f} ± {stdev(gains) / len(gains) ** 0.5:.2f}"


def beliefs_text(rows: Sequence[Row]) -> str:
    """How often the beliefs about None items are right, of items trained on and held out, as two cells of a table."""
    known = [row["right_of_none"] for row in rows if row.get("right_of_none")]
    return " | ".join(f"{100 * mean(right[which] for right in known):.2f}" if known else "" for which in SIDES)


def gain_text(found: Sequence[float]) -> str:
    """Mean, standard error and each."""
    error = stdev(found) / len(found) ** 0.5 if len(found) > 1 else float("nan")
    return f"{mean(found):+.2f} ± {error:.2f}  {[f'{g:+.2f}' for g in found]}"


def table(dataset: str, ledger: Ledger) -> None:
    """Every stored point of a dataset, the best first, and its paired difference to PRODEN of the same settings."""
    groups: dict[tuple[str, str], dict[int, Row]] = defaultdict(dict)
    for row in ledger.rows():
        c = row["config"]
        if row["dataset"] == dataset and row["validation"] is not None:
            views = ("two views" if c["strong"] else "one view") + (", mixed" if c.get("mix") else "")
            length = f"{c['epochs']} epochs, held out {c['holdout']:g}"
            settings = f"lr {c['lr']:g} wd {c['weight_decay']:g} {views}, {length}"
            groups[f"{c['method']} {c['method_options'] or ''}", settings][row["seed"]] = row
    for (what, settings), rows in sorted(groups.items(), key=lambda group: -mean(map(score, group[1].values()))):
        rival = groups.get(("proden ", settings), {})
        pairs = ", ".join(f"{100 * (score(rows[s]) - score(rival[s])):+.2f}" for s in sorted(rows) if s in rival)
        accuracy = 100 * mean(map(score, rows.values()))
        print(f"{accuracy:6.2f} ({len(rows)})  minus PRODEN: {pairs or '-':16} {what} {settings}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("options", "settings", "changes", "forms", "decays", "table"))
    parser.add_argument("dataset", choices=tuple(TRIED))
    parser.add_argument("--only", nargs="*", default=[], choices=tuple(FORMS), help="of the forms")
    parser.add_argument("--seeds", type=int, help="how many of the forms, instead of the dataset's")
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    ledger = Ledger(args.results / "teacher_ablation.jsonl")
    if args.what == "options":
        run(args.dataset, OPTIONS, SEEDS[:1], ledger)
    if args.what == "settings":
        run(args.dataset, TRIED[args.dataset], SEEDS, ledger)
    if args.what == "changes":
        changes(args.dataset, ledger, Ledgers(args.results).of(TUNING))
    elif args.what == "decays":
        decays(args.dataset, ledger, Ledgers(args.results).of(TUNING))
    elif args.what == "forms":
        forms(args.dataset, ledger, args.only, args.seeds)
    else:
        table(args.dataset, ledger)
        forms_table(ledger)


if __name__ == "__main__":
    main()

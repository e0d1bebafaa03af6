"""Options, settings and other forms of the methods with two views, scored on held-out answers: docs/teacher.md.

Measured on an H200 (results/teacher_ablation.jsonl), CIFAR10, 3 of 10 classes shown, 40 epochs: the teacher's defaults
89.18 %, PRODEN 88.98 %. No change of the defaults gains more than its error (results/teacher_ablation.md).

    python benchmarks/teacher_ablation.py table                                 # prints all that is stored; no GPU
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py options cifar10    # 23 runs, about 6 minutes on an H200
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py settings fashion   # learning rates, weight decays, views
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py changes cifar10    # one change of the defaults at a time
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py forms fashion      # other forms of it (teacher_*forms.py)
    SHORTLIST_DATA=... python benchmarks/teacher_ablation.py decays cifar10     # weight decays at 100 epochs

Size 3, seeds that no trial has, the test items never loaded. The score is the accuracy by all held-out answers, None
among them, mean of the last ten epochs. `options` and `settings` have 40 epochs, one and two seeds, and hold out a
tenth. `changes` (40 epochs and two seeds on CIFAR10, 100 and four on Fashion) and `forms` (100 epochs; one seed, four)
hold out three tenths, so that a score rests on three times as many answers. `decays` has 100 epochs, two seeds on
CIFAR10 and six on Fashion, and holds out a tenth. What is stored is not run again.

`changes` also runs together the changes that gained more than their standard error. `changes` and `decays` store a
choice for each method: its best point, or its first where that is within a standard error of the best.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev, variance
from typing import Any

import torch

from shortlist.data import Dataset
from shortlist.internal.files import atomic_write
from shortlist.internal.provenance import provenance
from shortlist.methods import Feed
from shortlist.study.choose.points import SETTINGS
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import HOLDOUT
from shortlist.study.plan.recipes import CHOICE
from shortlist.study.plan.run_keys import digest, key_of, own_code
from shortlist.study.plan.variants import stated_options
from shortlist.study.run.ledger import TUNING, Ledger, Ledgers, Row
from shortlist.training import Engine, FleetResult, logits_of, mean_of_last, train_fleet
from shortlist.training.task import build_task
from teacher_points import (
    CHANGED,
    CHANGES,
    DECAYS,
    EPOCHS,
    FORM_EPOCHS,
    FORM_SEEDS,
    FORMS,
    LONG,
    OPTIONS,
    PLACES,
    SEEDS,
    SIZE,
    TRIED,
    Point,
    changed,
    decay_points,
    points_of,
    teacher,
)  # fmt: skip

NUM_CLASSES = 10
COLUMNS = {
    "CIFAR10, 40 epochs, a tenth held out": ("cifar10", 40, 0.1),
    "CIFAR10, 40 epochs": ("cifar10", 40, 0.3),
    "CIFAR10, 100 epochs": ("cifar10", 100, 0.3),
    "Fashion, 100 epochs": ("fashion", 100, 0.3),
}
"""Of the first table: a dataset, the epochs and the share held out."""
HEADING = """# Every stored try of the teacher and its rivals with two views, size 3, held-out answers

Written by `benchmarks/teacher_ablation.py`, which says how the runs were made. The first table has the gain over the
teacher's defaults in points, paired by seed, ± standard error; single seeds in italics, the defaults' own accuracy in
the first row. Where the title does not say, three tenths are held out."""
DEFAULTS, PRINTED = "the defaults", {"cifar10": "CIFAR10", "fashion": "Fashion"}
TITLES = {"ol": "full labels", "likelihood": "likelihood", "teacher": ""}
"""Of methods; others are shown in capitals, and the forms by the names that FORMS gives their classes."""


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
        gains = tries.gain(point, base)
        print(f"{name:40} {figure(gains)}  {[f'{gain:+.2f}' for gain in gains]}")
    print(choice["source"])


def decays(dataset: str, ledger: Ledger, tuning: Ledger) -> None:
    """Weight decays at the length and, but for a tenth, with the items of the study; each method's choice is stored."""
    methods, seeds = LONG[dataset]
    tries = Tries(dataset, ledger, seeds)
    points = {method: decay_points(dataset, method) for method in methods}
    run(dataset, [point for of in points.values() for point in of.values()], seeds, ledger)
    for of in points.values():
        base, other = of.values()
        settle(tries, of, base, tries.error([other], base), tuning)


def forms(dataset: str, ledger: Ledger, names: Sequence[str]) -> None:
    """Train the defaults, PRODEN and other forms: all of them where none is named."""
    base, proden = (replace(changed(dataset, [], method), epochs=FORM_EPOCHS) for method in ("teacher", "proden"))
    others = [replace(base, method=FORMS[name][0], options=FORMS[name][1]) for name in names or FORMS]
    run(dataset, [base, proden, *others], FORM_SEEDS[dataset], ledger)


def right_of_none(data: Dataset, result: FleetResult, device: str) -> dict[str, float] | None:
    """How often the likeliest candidate of a None item is its class: of items trained on, and of held-out ones.

    A network that confirmed its own mistakes would be wrong more often about the items it was trained on. True classes
    are used to measure, never to choose. None for a run that broke, or that has no None answer.
    """
    if result.state is None or result.config.size is None:
        return None
    assert data.train.y is not None
    task = build_task(data, result.config)
    task.model.load_state_dict(result.state)
    logits = logits_of(task.model.to(device), data.train.x, device).cpu()
    everything = Feed.of(task.labels, range(len(task.labels))).batch(torch.arange(len(task.labels)))
    right = logits.masked_fill(~everything.candidates, -torch.inf).argmax(-1) == torch.from_numpy(data.train.y)
    none = torch.from_numpy(~task.labels.answered)
    held = torch.zeros(len(right), dtype=torch.bool)
    held[task.held_rows] = True
    return {
        "trained": right[none & ~held].double().mean().item(),
        "held": right[none & held].double().mean().item(),
    }


def title(row: Row) -> str:
    """What tells a stored run from the teacher's defaults."""
    config, decays = row["config"], DECAYS[row["dataset"]]
    method = config["method"]
    for name, (form, options) in FORMS.items():
        if ":" in method and (method, config["method_options"]) == (form, options):
            return name
    usual = teacher().options if method == "teacher" else {}
    options = stated_options(method, config["method_options"])
    words = [f"`{option}={value}`" for option, value in options.items() if value != usual.get(option)]
    words = [TITLES.get(method, method.upper()), *words, "`mix`" * bool(config.get("mix"))]
    if config["weight_decay"] != decays.get(method, decays["teacher"])[0]:
        words.append(f"weight decay {config['weight_decay']:g}")
    return ", ".join(filter(None, words)) or DEFAULTS


def table(ledger: Ledger) -> str:
    """What every stored try gained over the defaults, paired by seed, in Markdown: the fewest changes first."""
    found: dict[str, dict[tuple[str, int, float], dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in ledger.rows():
        config = row["config"]
        if config["strong"] and config["lr"] == 0.1 and row["validation"] is not None:
            found[title(row)][row["dataset"], config["epochs"], config["holdout"]][row["seed"]] = row
    lines = [f"| change of the defaults | {' | '.join(COLUMNS)} | right about None: trained on, held out |"]
    lines.append("|" + "---|" * (len(COLUMNS) + 2))
    for name in sorted(found, key=lambda name: (name != DEFAULTS, name.count("=") + name.count(","), name)):
        gains = []
        for place in COLUMNS.values():
            base = found[DEFAULTS][place]
            pairs = [(row, base[seed]) for seed, row in sorted(found[name][place].items()) if seed in base]
            gains.append(figure([100 * (score(row) - score(other)) for row, other in pairs]))
        if name == DEFAULTS:
            gains = [f"{100 * mean(map(score, found[name][place].values())):.2f}" for place in COLUMNS.values()]
        rows = found[name]["cifar10", FORM_EPOCHS, 0.3].values()
        known = [row["right_of_none"] for row in rows if row.get("right_of_none")]
        beliefs = ", ".join(
            f"{100 * mean(right[side] for right in known):.2f}" for side in ("trained", "held") if known
        )
        if any(gains):
            lines.append(f"| {name} | {' | '.join(gains)} | {beliefs} |")
    return "\n".join(lines)


def decays_table(ledger: Ledger) -> str:
    """What the stored runs of `decays` say, in Markdown."""
    lines = ["| 100 epochs, a tenth held out | first weight decay | second | second minus first |", "|---|---|---|---|"]
    for dataset, (methods, seeds) in LONG.items():
        tries = Tries(dataset, ledger, seeds)
        for method in methods:
            points = list(decay_points(dataset, method).values())
            if gains := tries.gain(points[1], points[0]):
                scores = [
                    f"{point.weight_decay:g}: {100 * mean(map(score, tries.rows(point))):.2f}" for point in points
                ]
                name = TITLES.get(method, method.upper()) or method
                lines.append(f"| {PRINTED[dataset]}, {name} | {' | '.join(scores)} | {figure(gains)} |")
    return "\n".join(lines)


def settings_table(ledger: Ledger) -> str:
    """What each setting of a method reached in 40 epochs with a tenth held out, in Markdown: the best first."""
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in ledger.rows():
        config = row["config"]
        method, options = config["method"], stated_options(config["method"], config["method_options"])
        usual = teacher().options if method == "teacher" else options
        if (config["epochs"], config["holdout"], options) == (EPOCHS, HOLDOUT, usual) and row["validation"] is not None:
            stated = [f"`{option}={value}`" for option, value in options.items() if method != "teacher"]
            name = ", ".join([TITLES.get(method, method.upper()) or method, *stated])
            views = "two" if config["strong"] else "one"
            place = PRINTED[row["dataset"]], name, views, f"{config['lr']:g}", f"{config['weight_decay']:g}"
            found[place].append(100 * score(row))
    lines = ["| 40 epochs, a tenth held out | method | views | lr | weight decay | held-out accuracy | seeds |"]
    lines.append("|" + "---|" * 7)
    for words, scores in sorted(found.items(), key=lambda entry: (entry[0][0], -mean(entry[1]))):
        lines.append(f"| {' | '.join(words)} | {mean(scores):.2f} | {len(scores)} |")
    return "\n".join(lines)


def figure(gains: Sequence[float]) -> str:
    """Mean and standard error; a single gain, which has none, in italics."""
    if len(gains) < 2:
        return "".join(f"*{gain:+.2f}*" for gain in gains)
    return f"{mean(gains):+.2f} ± {stdev(gains) / len(gains) ** 0.5:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("options", "settings", "changes", "forms", "decays", "table"))
    parser.add_argument("dataset", nargs="?", choices=tuple(TRIED), default="cifar10")
    parser.add_argument("--only", nargs="*", default=[], choices=tuple(FORMS), help="of the forms")
    parser.add_argument("--results", type=Path, default=Path("results"))
    args = parser.parse_args()
    ledger, tuning = Ledger(args.results / "teacher_ablation.jsonl"), Ledgers(args.results).of(TUNING)
    if args.what == "options":
        run(args.dataset, OPTIONS, SEEDS[:1], ledger)
    elif args.what == "settings":
        run(args.dataset, TRIED[args.dataset], SEEDS, ledger)
    elif args.what == "changes":
        changes(args.dataset, ledger, tuning)
    elif args.what == "decays":
        decays(args.dataset, ledger, tuning)
    elif args.what == "forms":
        forms(args.dataset, ledger, args.only)
    text = "\n\n".join((HEADING, table(ledger), decays_table(ledger), settings_table(ledger))) + "\n"
    if args.what != "table":
        atomic_write(args.results / "teacher_ablation.md", text)
    print(text, end="")


if __name__ == "__main__":
    main()

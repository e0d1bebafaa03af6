"""What model-chosen shortlists save: accuracy against reads and seconds on BANKING77, letter and digits.

Measured on two x86 cores, 5 seeds (results/label_economy_*.json): 99 % of the full-label accuracy at 4.2 % of the reads
and 11.5 % of the seconds on BANKING77, 5.2 % and 15.2 % on letter, 6.1 % and 17.7 % on digits.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/label_economy.py banking77 --seeds 5
    python benchmarks/label_economy.py --table          # prints the committed figures

Answers are simulated from the true classes. The inner model is a linear softmax on 400 features (texts: TF-IDF reduced
by SVD; others: random Fourier features), the same for full labels. Its penalty, the policy's `hit`, the number of first
items and the order of items were chosen on a fifth of the *training* data held out (`--held-out` runs there); the test
data is only scored. The 99 % mark is the cost from which on the mean accuracy over the seeds stays at 99 % of that of
full labels. Seconds: 1 per question + 0.25 per name looked at; looking stops at the right name; shortlists are shown
most likely first, full lists in a fixed order. Beside these: a type-ahead box over all classes (4.5 s a class), active
learning with full lists, and lists by split conformal prediction (simulation/rivals.py). Writes
results/label_economy_DATA.{json,csv,svg,png}.
"""

import argparse
import csv
import json
import os
import platform
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import LoopData, loop_data
from shortlist.policies.noise import Mistakes
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.curves import at_cost, by_way, curves_csv, summarise
from shortlist.policies.simulation.economy import GOLD, RIVALS
from shortlist.policies.simulation.journal import Journal
from shortlist.policies.simulation.plot import draw_curves
from shortlist.policies.simulation.processes import Run, play
from shortlist.policies.simulation.rivals import ACTIVE, type_ahead
from shortlist.policies.simulation.simulate import FULL, Curve, Point, Tick, full_labels, random_shortlists, run_loop

RESULTS = Path(__file__).parent.parent / "results"
L2 = {"banking77": 0.1, "letter": 0.01, "digits": 0.03}
SIZE = {"banking77": 8, "letter": 5, "digits": 3}
FEATURES = {"digits": "pixels"}
"""The simple ones of all data but texts: what saves here must not rest on a good model."""
NOISE = Mistakes(miss=0.05, slip=0.02)
COMPARED = ("mark_reads", "reads")
NOISE_BUDGET = 0.12
"""Share of the full-label reads at which loops with mistakes are compared."""


def ways(data: LoopData) -> list[tuple[str, LoopSettings, Mistakes, int, int | None]]:
    """(name, settings, annotators' mistakes, gold questions, budget) of every loop."""
    size, clean = SIZE[data.name], Mistakes()
    chosen = LoopSettings(policy=Policy("adaptive", max_size=size), l2=L2[data.name], retrain_every=1000)
    everything = len(data.y) * data.num_classes
    rare = replace(chosen, retrain_every=4000)
    runs: list[tuple[str, LoopSettings, Mistakes, int, int | None]] = [
        ("adaptive", chosen, clean, 0, None),
        ("information", replace(chosen, policy=Policy("information", max_size=size)), clean, 0, None),
        (f"random {size}, once", random_shortlists(rare, size, again=False), clean, 0, None),
    ]
    if data.name == "banking77":
        budget = int(NOISE_BUDGET * everything)
        runs.append(("mistakes modelled", chosen.modelling_mistakes(), NOISE, GOLD, budget))
        runs.append(("mistakes taken as right", chosen, NOISE, 0, budget))
    else:
        runs.append((f"top {size}", replace(chosen, policy=Policy("top", size=size)), clean, 0, None))
        runs.append((f"random {size}, again on None", random_shortlists(rare, size, again=True), clean, 0, None))
    return runs


def held_out(name: str) -> LoopData:
    """A fifth of the training items as the test part: what choices were made on."""
    dataset = load(name)
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(dataset.train))
    cut = len(order) // 5
    train, test = dataset.train.take(np.sort(order[cut:])), dataset.train.take(np.sort(order[:cut]))
    return loop_data(replace(dataset, train=train, test=test), features=FEATURES.get(name))


@dataclass(frozen=True)
class Economy:
    """Everything that is compared on one dataset."""

    name: str

    def runs(self, data: LoopData, seeds: int) -> list[Run]:
        """All that is run, by seed; active learning where scikit-activeml is installed."""
        rivals = [way for way in RIVALS if way != ACTIVE or find_spec("skactiveml")]
        own = [way[0] for way in ways(data)]
        return [Run(way, seed) for seed in range(seeds) for way in (FULL, *rivals, *own)]

    def play(self, run: Run, data: LoopData, tick: Tick) -> Curve:
        """One of the runs."""
        base = LoopSettings(l2=L2[data.name])
        if run.way == FULL:
            return full_labels(data, base, seed=run.seed, tick=tick)
        if run.way in RIVALS:
            return RIVALS[run.way](data, replace(base, retrain_every=1000), seed=run.seed, tick=tick)
        how = next(way for way in ways(data) if way[0] == run.way)
        _, settings, mistakes, gold, budget = how
        more: dict[str, Any] = {"budget": budget, "mistakes": mistakes, "gold": gold, "tick": tick}
        return run_loop(data, settings, way=run.way, seed=run.seed, **more)


def run(data: LoopData, seeds: int, folder: Path, jobs: int) -> list[Curve]:
    """Every way on every seed; what the folder holds is not run again, so machines can share the work."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = [
        [way, asdict(settings), asdict(mistakes), gold, budget] for way, settings, mistakes, gold, budget in ways(data)
    ]
    economy, journal = Economy(data.name), Journal(folder, {"data": data.name, "ways": settings})
    wanted = economy.runs(data, seeds)
    found = {run: curve for run in wanted if (curve := journal.of(*run)) is not None}
    left = [run for run in wanted if run not in found]
    for one, curve in play(left, economy, data, lambda run, point: journal.point(*run, point), jobs):
        journal.run(curve)
        found[one] = curve
        end = curve.points[-1]
        print(f"{one.way}, seed {one.seed}: {end.accuracy:.4f}, {end.reads} reads", flush=True)
    curves: list[Curve] = []
    for one in wanted:
        curves.append(found[one])
        if one.way == FULL:
            curves.append(type_ahead(found[one], LoopSettings().time))
    return curves


def ablations(seeds: int) -> dict[str, Any]:
    """What each part of the loop is worth, on held-out training items of BANKING77: where choices were made."""
    data = held_out("banking77")
    full = [full_labels(data, LoopSettings(l2=L2["banking77"]), seed=0, shares=(0.5, 1.0))]
    chosen = LoopSettings(l2=L2["banking77"], retrain_every=1000)
    variants = {
        "as it is": chosen,
        "no typical items first": replace(chosen, representatives=0),
        "no temperature": replace(chosen, calibrate=False),
        "no search for unseen classes": replace(chosen, explore=False),
        "items at random": replace(chosen, order="random"),
        "hit 0.9": replace(chosen, policy=Policy("adaptive", hit=0.9)),
    }
    rows = []
    for way, settings in variants.items():
        for seed in range(seeds):
            curve = run_loop(data, settings, way=way, seed=seed)
            rows.append({"seed": seed, **asdict(summarise([curve], full))})
            print(rows[-1], flush=True)
    return {"data": "banking77, a fifth of the training items held out", "runs": rows}


def summary(data: LoopData, curves: list[Curve], seconds: float) -> dict[str, Any]:
    groups = by_way(curves)
    full = groups["full labels"]
    everything = len(data.y) * data.num_classes
    result: dict[str, Any] = {
        "data": data.name,
        "items": len(data.y),
        "classes": data.num_classes,
        "features": int(data.x.shape[1]),
        "l2": L2[data.name],
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}",
        "run_seconds": round(seconds),
        "full_labels": {
            "accuracy": float(np.mean([c.points[-1].accuracy for c in full])),
            "reads": everything,
            "seconds": float(np.mean([c.points[-1].seconds for c in full])),
        },
        "ways": [asdict(summarise(runs, full)) for runs in groups.values()],
    }
    if "mistakes modelled" in groups:
        cost = np.array([NOISE_BUDGET * everything])
        names = {"noiseless": "adaptive", "aware": "mistakes modelled", "naive": "mistakes taken as right"}
        result["accuracy_at_12_percent"] = {
            key: float(np.mean([at_cost(c, "reads", cost)[0] for c in groups[way]])) for key, way in names.items()
        }
        result["mistakes"] = asdict(NOISE)
    return result


def against(curves: list[Curve], earlier: list[Curve]) -> list[dict[str, Any]]:
    """What an earlier version cost at the 99 % mark and in all, paired by seed: the mean ratio - 1 and its error."""
    now, before, found = by_way(curves), by_way(earlier), []
    for way in now:
        if way == FULL or way not in before or "mistakes" in way:
            continue
        for figure in COMPARED:
            pairs = [
                (getattr(summarise([own], now[FULL]), figure), getattr(summarise([old], before[FULL]), figure))
                for own, old in zip(now[way], before[way], strict=True)
            ]
            ratios = np.array([own / old - 1 for own, old in pairs if own and old])
            if len(ratios) > 1:
                error = float(ratios.std(ddof=1) / np.sqrt(len(ratios)))
                found.append({"way": way, "of": figure, "ratio": float(ratios.mean()), "standard_error": error})
    return found


def read_curves(path: Path) -> list[Curve]:
    """What `curves_csv` wrote."""
    points: dict[tuple[str, int], list[Point]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = row.pop("way"), int(row.pop("seed"))
            counts = (int(row[name]) for name in ("questions", "reads"))
            rest = (float(row[name]) for name in ("seconds", "accuracy", "resolved", "correct"))
            points.setdefault(key, []).append(Point(*counts, *rest))
    return [Curve(way, seed, tuple(found)) for (way, seed), found in points.items()]


def table(result: dict[str, Any]) -> str:
    full = result["full_labels"]
    lines = [
        f"{result['data']}: {result['items']} items, {result['classes']} classes; full labels {full['accuracy']:.2%}, "
        f"{full['reads']:,} reads, {full['seconds'] / 3600:.1f} h; costs as shares of that",
        "",
        "| way | accuracy | resolved | reads | seconds | 99 % mark: reads | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for way in result["ways"]:
        marks = ["never" if way[k] is None else f"{way[k]:.2%}" for k in ("mark_reads", "mark_seconds")]
        figures = [f"{way['accuracy']:.2%}", f"{way['resolved']:.1%}", f"{way['reads']:.2%}", f"{way['seconds']:.2%}"]
        lines.append(f"| {' | '.join([way['way'], *figures, *marks])} |")
    if "accuracy_at_12_percent" in result:
        at = {key: f"{value:.2%}" for key, value in result["accuracy_at_12_percent"].items()}
        rates = result["mistakes"]
        lines.append("")
        lines.append(
            f"With miss {rates['miss']:.0%} and slip {rates['slip']:.0%}, at 12 % of the reads: "
            f"mistakes modelled {at['aware']}, taken as right {at['naive']}; without mistakes {at['noiseless']}."
        )
    if "against_earlier" in result:
        lines += ["", "Reads against an earlier version, paired by seed, with the standard error:", ""]
        lines += ["| way | 99 % mark | all resolved |", "|---|---|---|"]
        for way in dict.fromkeys(row["way"] for row in result["against_earlier"]):
            own = {row["of"]: row for row in result["against_earlier"] if row["way"] == way}
            cells = [f"{r['ratio']:+.1%} ± {r['standard_error']:.1%}" if (r := own.get(of)) else "" for of in COMPARED]
            lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", nargs="?", choices=sorted(L2))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a process each")
    parser.add_argument("--runs", type=Path, help="a folder that keeps every run: what it holds is not run again")
    parser.add_argument("--against", type=Path, help="curves of an earlier version (.csv), compared seed by seed")
    parser.add_argument("--held-out", action="store_true", help="score on held-out training data, write nothing")
    parser.add_argument("--ablations", action="store_true", help="what each part is worth, on held-out training data")
    parser.add_argument("--table", action="store_true", help="print the committed figures")
    options = parser.parse_args()
    if options.ablations:
        result = ablations(options.seeds)
        atomic_write(RESULTS / "label_economy_ablations.json", json.dumps(result, indent=1) + "\n")
        return
    if options.table or options.data is None:
        for name in L2:
            print(table(json.loads((RESULTS / f"label_economy_{name}.json").read_text())), end="\n\n")
        return
    data = (
        held_out(options.data)
        if options.held_out
        else loop_data(load(options.data), features=FEATURES.get(options.data))
    )
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="label-economy-") as made:
        curves = run(data, options.seeds, options.runs or Path(made), options.jobs)
    result = summary(data, curves, time.perf_counter() - started)
    if options.against is not None:
        result["against_earlier"] = against(curves, read_curves(options.against))
    print(table(result))
    if not options.held_out:
        stem = RESULTS / f"label_economy_{data.name}"
        atomic_write(stem.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
        atomic_write(stem.with_suffix(".csv"), curves_csv(curves))
        if find_spec("matplotlib"):
            draw_curves(curves, stem, title=f"{data.name}, {data.num_classes} classes")


if __name__ == "__main__":
    main()

"""What model-chosen shortlists save: accuracy against reads and seconds on BANKING77, letter and digits.

Measured on two x86 cores, 5 seeds (results/label_economy_*.json): 99 % of the full-label accuracy at 4.1 % of the reads
and 11.3 % of the seconds on BANKING77, 5.3 % and 15.4 % on letter, 6.2 % and 18.2 % on digits.

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
import json
import os
import platform
import time
from dataclasses import asdict, replace
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
from shortlist.policies.simulation.economy import GOLD, aware
from shortlist.policies.simulation.plot import draw_curves
from shortlist.policies.simulation.rivals import active_learning, conformal_sets, type_ahead
from shortlist.policies.simulation.simulate import Curve, full_labels, random_shortlists, run_loop

RESULTS = Path(__file__).parent.parent / "results"
L2 = {"banking77": 0.1, "letter": 0.01, "digits": 0.03}
SIZE = {"banking77": 8, "letter": 5, "digits": 3}
NOISE = Mistakes(miss=0.05, slip=0.02)
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
        runs.append(("mistakes modelled", aware(chosen), NOISE, GOLD, budget))
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
    return loop_data(replace(dataset, train=train, test=test))


def run(data: LoopData, seeds: int) -> list[Curve]:
    curves = []
    for seed in range(seeds):
        started = time.perf_counter()
        base = LoopSettings(l2=L2[data.name])
        curves.append(full_labels(data, base, seed=seed))
        curves.append(type_ahead(curves[-1], base.time))
        for rival in (active_learning, conformal_sets):
            curves.append(rival(data, replace(base, retrain_every=1000), seed=seed))
        for way, settings, mistakes, gold, budget in ways(data):
            curve = run_loop(data, settings, way=way, seed=seed, budget=budget, mistakes=mistakes, gold=gold)
            curves.append(curve)
            end = curve.points[-1]
            print(
                f"seed {seed} {way}: {end.accuracy:.4f} at {end.reads / len(data.y) / data.num_classes:.2%}, "
                f"resolved {end.resolved:.1%} [{time.perf_counter() - started:.0f} s]",
                flush=True,
            )
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
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", nargs="?", choices=sorted(L2))
    parser.add_argument("--seeds", type=int, default=5)
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
    data = held_out(options.data) if options.held_out else loop_data(load(options.data))
    started = time.perf_counter()
    curves = run(data, options.seeds)
    result = summary(data, curves, time.perf_counter() - started)
    print(table(result))
    if not options.held_out:
        stem = RESULTS / f"label_economy_{data.name}"
        atomic_write(stem.with_suffix(".json"), json.dumps(result, indent=1) + "\n")
        atomic_write(stem.with_suffix(".csv"), curves_csv(curves))
        draw_curves(curves, stem, title=f"{data.name}, {data.num_classes} classes")


if __name__ == "__main__":
    main()

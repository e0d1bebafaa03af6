"""What a head start is worth: class names, labels and scores that one has already, alone and together.

Measured on two cores (results/label_start_banking77.json), 5 seeds: 99 % of full-label accuracy at 4.2 % of the reads
from nothing, 2.4 % with names, 1.9 % with 5 labels per class, 1.5 % with names, labels and scores.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/label_start.py --seeds 5
    python benchmarks/label_start.py --table            # prints the committed figures

BANKING77 (77 classes, 10,003 texts), the loop and the time model of label_economy.py, answers simulated. Each start is
paired with the loop that knows nothing by seed. `names shuffled` gives every class the name of another: what a useless
expert costs. `scores`: the likeliest class is right in half of the cases, the numbers are far too sure of themselves
and a fifth of them is missing (`scores_like_a_poor_model`). Defaults were chosen on held-out training data
(`--held-out` scores there). `typed`: of the lists that miss, half are followed by the class typed, at the cost that
`TimeModel.typed` states. `mistakes`: people overlook the right class in 5 % of the lists and pick a wrong one in 2 %;
modelled, with 300 gold questions in between to measure that, or taken as right. Writes
results/label_start_banking77.json; with `--only` the rows named replace the old ones.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from label_economy import L2, NOISE, SIZE, held_out
from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies import LoopSettings, Policy, loop_data
from shortlist.policies.experts import Expert, experts_from_scores
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.names import names_expert
from shortlist.policies.simulation.curves import at_cost, summarise
from shortlist.policies.simulation.economy import GOLD
from shortlist.policies.simulation.journal import Journal
from shortlist.policies.simulation.simulate import Curve, Start, full_labels, run_loop

RESULTS = Path(__file__).parent.parent / "results" / "label_start_banking77.json"
KNOWN = 5
"""Labels per class that one has."""
BASE = "nothing"
NAIVE, MODELLED = "names, mistakes taken as right", "names, mistakes modelled"
BUDGET = 0.1
"""Share of the full-label reads up to which the loops with mistakes (5 %, 2 %) run."""
TYPED = 0.5
"""Share of the misses after which somebody types, in the rows that say so."""


def starts(data: LoopData) -> dict[str, Callable[[int], Start]]:
    """What is known before the first question, by seed."""
    names = names_expert(data.texts, data.class_names, data.x)

    def shuffled(seed: int) -> Start:
        order = np.random.Generator(np.random.PCG64([seed, 3])).permutation(data.num_classes)
        return Start((names_expert(data.texts, [data.class_names[i] for i in order], data.x),))

    def scores(seed: int) -> tuple[Expert, Expert]:
        return experts_from_scores(scores_like_a_poor_model(data.y, data.num_classes, seed))

    def known(seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rng = np.random.Generator(np.random.PCG64([seed, 4]))
        each = [rng.permutation(np.nonzero(data.y == k)[0])[:KNOWN] for k in range(data.num_classes)]
        rows = np.sort(np.concatenate(each))
        return rows, data.y[rows]

    return {
        BASE: lambda seed: Start(),
        "names": lambda seed: Start((names,)),
        "typed": lambda seed: Start(),
        "names, typed": lambda seed: Start((names,)),
        "names shuffled": shuffled,
        f"{KNOWN} labels per class": lambda seed: Start((), known(seed)),
        "scores": lambda seed: Start(scores(seed)),
        f"names, {KNOWN} labels per class": lambda seed: Start((names,), known(seed)),
        "names, scores": lambda seed: Start((names, *scores(seed))),
        "names, labels, scores": lambda seed: Start((names, *scores(seed)), known(seed)),
        NAIVE: lambda seed: Start((names,)),
        MODELLED: lambda seed: Start((names,)),
    }


def scores_like_a_poor_model(y: NDArray[np.int64], num_classes: int, seed: int) -> NDArray[np.float32]:
    """(N, K) probabilities whose largest is the right class's in half of the rows, overconfident, a fifth missing."""
    rng = np.random.Generator(np.random.PCG64([seed, 5]))
    logits = rng.standard_normal((len(y), num_classes))
    favourite = np.where(rng.random(len(y)) < 0.5, y, rng.integers(0, num_classes, len(y)))
    logits[np.arange(len(y)), favourite] = logits.max(axis=1) + 1.0
    logits *= 4.0  # a calibrated model with one chance in two would not be nearly as sure
    table = np.exp(logits - logits.max(axis=1, keepdims=True))
    table /= table.sum(axis=1, keepdims=True)
    table[rng.random(table.shape) < 0.2] = np.nan
    overconfident: NDArray[np.float32] = table.astype(np.float32)
    return overconfident


def run(data: LoopData, seeds: int, wanted: str | None, jobs: int, folder: Path | None) -> dict[str, Any]:
    settings = LoopSettings(
        policy=Policy("adaptive", max_size=SIZE["banking77"]), l2=L2["banking77"], retrain_every=1000
    )
    full = [full_labels(data, settings, seed=0, shares=(0.5, 1.0))]
    known = starts(data)
    ways = [way for way in known if wanted is None or way in (BASE, *wanted.split(";"))]
    _work.update(data=data, settings=settings, starts=known)  # what the processes are born with
    curves: dict[str, list[Curve]] = {}
    journal = None if folder is None else Journal(folder, {"settings": asdict(settings), "items": len(data.y)})
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        runs = {
            (way, seed): old if journal is not None and (old := journal.of(way, seed)) else pool.submit(_run, way, seed)
            for way in ways
            for seed in range(seeds)
        }
        for way in ways:
            curves[way] = []
            for seed in range(seeds):
                found = runs[way, seed]
                curves[way].append(found if isinstance(found, Curve) else found.result())
                if journal is not None and not isinstance(found, Curve):
                    journal.run(curves[way][-1])
            print(row(figures(curves[way], curves[BASE], full)), flush=True)
    return {
        "data": data.name,
        "items": len(data.y),
        "classes": data.num_classes,
        "seeds": seeds,
        "full_label_accuracy": full[0].points[-1].accuracy,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}",
        "starts": [figures(runs, curves[BASE], full) for runs in curves.values()],
        **(
            {"modelled_against_naive": behind(curves[MODELLED], curves[NAIVE], len(data.y) * data.num_classes)}
            if MODELLED in curves and NAIVE in curves
            else {}
        ),
    }


_work: dict[str, Any] = {}


def _run(way: str, seed: int) -> Curve:
    return one_run(_work["data"], _work["settings"], way, seed, _work["starts"][way](seed))


def one_run(data: LoopData, settings: LoopSettings, way: str, seed: int, start: Start) -> Curve:
    """One start, with what people do there."""
    if way not in (NAIVE, MODELLED):
        typed = TYPED if "typed" in way else 0.0
        return run_loop(data, settings, way=way, seed=seed, start=start, typed=typed)
    budget, gold = int(BUDGET * len(data.y) * data.num_classes), GOLD if way == MODELLED else 0
    settings = settings.modelling_mistakes() if way == MODELLED else settings
    return run_loop(data, settings, way=way, seed=seed, start=start, mistakes=NOISE, gold=gold, budget=budget)


def behind(modelled: list[Curve], naive: list[Curve], everything: int) -> dict[str, float]:
    """How far modelling mistakes is behind taking answers as right at its worst, and at which share of the reads."""
    first = max(curve.points[0].reads for curve in (*modelled, *naive))
    cost = np.linspace(first, BUDGET * everything, 2000)
    means = [np.mean([at_cost(c, "reads", cost) for c in runs], axis=0) for runs in (modelled, naive)]
    gap = means[0] - means[1]
    return {"points": float(100 * gap.min()), "at_reads": float(cost[gap.argmin()] / everything)}


def figures(runs: list[Curve], base: list[Curve], full: list[Curve]) -> dict[str, Any]:
    """The marks of one start, and its paired difference to the start that knows nothing, in percent of that."""
    each = [(summarise([own], full), summarise([other], full)) for own, other in zip(runs, base, strict=True)]
    ratios = np.array(
        [own.mark_reads / other.mark_reads - 1 for own, other in each if own.mark_reads and other.mark_reads]
    )
    return {
        **asdict(summarise(runs, full)),
        "mark_reads_by_seed": [own.mark_reads for own, _ in each],
        "relative_to_nothing": float(ratios.mean()) if len(ratios) else None,
        "standard_error": float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else None,
        "hits_of_100": share_of_hits(runs, 100),
        "hits_of_500": share_of_hits(runs, 500),
    }


def share_of_hits(runs: list[Curve], questions: int) -> float:
    """Of the first questions, how many named a class: by the last training that had no more than these."""
    last = [max((p for p in run.points if p.questions <= questions), key=lambda p: p.questions) for run in runs]
    return float(np.mean([point.hits / point.questions for point in last]))


def row(way: dict[str, Any]) -> str:
    against = "" if way["relative_to_nothing"] is None else f"{way['relative_to_nothing']:+.1%}"
    error = "" if way["standard_error"] is None else f" ± {way['standard_error']:.1%}"
    marks = ["never" if way[key] is None else f"{way[key]:.2%}" for key in ("mark_reads", "mark_seconds")]
    return (
        f"| {way['way']} | {marks[0]} | {marks[1]} | {way['reads']:.2%} "
        f"| {against}{error} | {way['hits_of_100']:.0%} | {way['hits_of_500']:.0%} |"
    )


def table(result: dict[str, Any]) -> str:
    head = [
        f"{result['data']}, {result['classes']} classes, {result['seeds']} seeds; costs as shares of full labels",
        "",
        "| known at the start | 99 % mark: reads | seconds | all resolved: reads | mark against nothing known "
        "| hits of the first 100 | of 500 |",
        "|---|---|---|---|---|---|---|",
    ]
    lines = [*head, *(row(way) for way in result["starts"])]
    if "modelled_against_naive" in result:
        gap = result["modelled_against_naive"]
        lines += ["", f"Mistakes modelled against taken as right: {gap['points']:+.1f} points at the worst cost"]
        lines[-1] += f" ({gap['at_reads']:.2%} of the reads)."
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", help="some starts, separated by ;")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time, a process each")
    parser.add_argument("--runs", type=Path, help="a folder that keeps every run: what it holds is not run again")
    parser.add_argument("--held-out", action="store_true", help="score on held-out training data, write nothing")
    parser.add_argument("--table", action="store_true", help="print the committed figures")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    data = held_out("banking77") if options.held_out else loop_data(load("banking77"))
    started = time.perf_counter()
    result = run(data, options.seeds, options.only, options.jobs, options.runs)
    result["run_seconds"] = round(time.perf_counter() - started)
    print(table(result))
    if not options.held_out:
        if options.only is not None:
            result = merged(json.loads(RESULTS.read_text()), result)
        atomic_write(RESULTS, json.dumps(result, indent=1) + "\n")


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The committed figures with the rows that were run again; what nothing known costs must be as it was."""
    again = {way["way"]: way for way in new["starts"]}
    before = {way["way"]: way for way in old["starts"]}
    if old["seeds"] != new["seeds"] or before[BASE]["mark_reads_by_seed"] != again[BASE]["mark_reads_by_seed"]:
        raise SystemExit("the rows of the file were made by another loop: run all of them")
    return {**old, **new, "run_seconds": old["run_seconds"], "starts": list({**before, **again}.values())}


if __name__ == "__main__":
    main()

"""The first minutes of a live project with and without the names of its classes: 20 robots on BANKING77's texts.

Measured on two cores of an AMD EPYC (results/annotate_live_start.json), 3 runs: with the names 71 % of the first 500
answers picked a class, simulated 69 %; at all 11 costs within noise of the simulation.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/annotate_live_start.py --live 4     # about 25 minutes
    python benchmarks/annotate_live_start.py --table                                           # the committed figures

Each run is a real server with its trainer; robots begin when the first publication is there, as in annotate_live.py.
Beside it the simulation of the same setting (annotate_live_crowd.py: 20 at once, each training as long as it took live)
on as many seeds and more, as far as the live runs came. Prints how often the first answers picked a class (by chance a
list of 8 of 77 holds it in 10 %), the model's accuracy on the 3,080 test texts at several costs, live and simulated,
and how long people waited. Noise is twice the standard error of the difference of the two means. Writes
results/annotate_live_start.json.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from annotate_live import ROBOTS, compare, drive, history, live_curve, pooled
from annotate_live_crowd import simulate_crowd
from annotate_servers import about
from shortlist.annotate.db.schema import Answer
from shortlist.annotate.live.items import FEATURES
from shortlist.annotate.live.plan import LivePlan
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source
from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.names import names_expert
from shortlist.policies.simulation.simulate import Curve

RESULTS = Path(__file__).parents[1] / "results" / "annotate_live_start.json"
FIRST = (50, 100, 200, 500, 1000)
COSTS = (200, 400, 600, 800, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 7000)
SIZE, TESTED = 8, 3080
POLLS = 0.05
"""Seconds until the trainer sees an answer and the server a publication, on average."""


def make_project(folder: Path, plan: LivePlan) -> Project:
    data = load("banking77")
    project = Project.create(folder, Settings("banking77", plan.size, live=plan.to_dict()))
    add_classes(project, data.class_names)
    add_items(project, [Source(f"text {i}", f"text {i}", text=text) for i, text in enumerate(data.train.x)])
    return project


def live(names: bool, seconds: float, seed: int) -> tuple[Curve, dict[str, Any]]:
    """One run of the server; what its trainer noted, and what the robots saw."""
    plan = LivePlan(policy="adaptive", size=SIZE, test="banking77", names=names, seed=seed)
    with tempfile.TemporaryDirectory(prefix="annotate-live-") as made:
        folder = Path(made) / "project"
        found = drive(make_project(folder, plan), "banking77", seed, seconds)
        found["lags"] = lags_of(history(folder)[1:])  # the first line came before any answer
        with Project.open(folder) as project, project.store.read() as connection:
            answers = list(connection.execute(select(Answer.class_id).order_by(Answer.id)).scalars())
        found["picked"] = picked(np.array([answer is not None for answer in answers]))
        return live_curve(folder, seed), {"load_average": os.getloadavg(), **found}


def lags_of(lines: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Of each training, the seconds to its publication and those that the trainer worked in all."""
    worked = [line["worked"] for line in lines[1:]] + [lines[-1]["ended"] - lines[-1]["begun"]]
    return [
        (round(line["ended"] - line["begun"] + POLLS, 3), round(all_, 3))
        for line, all_ in zip(lines, worked, strict=True)
    ]


def picked(hits: NDArray[np.bool_]) -> dict[str, float]:
    """The share of the first answers that picked a class."""
    return {str(n): round(float(hits[:n].mean()), 3) for n in FIRST if n <= len(hits)}


def simulated(names: bool, questions: int, seed: int, lags: list[tuple[float, float]]) -> tuple[Curve, dict[str, Any]]:
    """The same setting without a server."""
    data = loop_data(load("banking77"), size=FEATURES, seed=seed)
    plan = LivePlan(policy="adaptive", size=SIZE, seed=seed)
    experts = [names_expert(data.texts, data.class_names, data.x, seed=seed)] if names else []
    how: dict[str, Any] = {"people": ROBOTS, "experts": experts, "questions": questions, "lags": lags}
    curve = simulate_crowd(data, plan.loop_settings(), seed, **how)
    asked, hits = curve.column("questions"), curve.column("hits")
    return curve, {"picked": {str(n): round(float(np.interp(n, asked, hits) / n), 3) for n in FIRST if n <= asked[-1]}}


def side_by_side(names: bool, runs: int, seeds: int, seconds: float) -> dict[str, Any]:
    """Live runs and simulated ones, and where they differ by more than noise."""
    lives = [live(names, seconds, seed) for seed in range(runs)]
    asked = max(curve.points[-1].questions for curve, _ in lives)
    others = [simulated(names, asked, seed, lives[seed % runs][1]["lags"]) for seed in range(seeds)]
    ours, theirs = ([curve for curve, _ in side] for side in (lives, others))
    least = min(curve.points[-1].reads for curve in (*ours, *theirs))
    costs = [cost for cost in COSTS if cost <= least]
    waited = pooled([found for _, found in lives])
    for _, found in lives:
        found.pop("taken_while_training")
    return {
        "names": names,
        **compare(ours, theirs, costs, TESTED),
        "picked": {
            way: _mean([f["picked"] for _, f in side]) for way, side in (("live", lives), ("simulated", others))
        },
        "waited_while_training": waited,
        "live": [found for _, found in lives],
        "curves": [[curve.way, curve.seed, _points(curve)] for curve in (*ours, *theirs)],
    }


def _points(curve: Curve) -> list[list[float]]:
    return [[point.questions, point.reads, round(point.accuracy, 4)] for point in curve.points]


def _mean(parts: list[dict[str, float]]) -> dict[str, list[float]]:
    """The mean over the runs and its standard error."""
    keys = [key for key in parts[0] if all(key in part for part in parts)]
    found = {key: np.array([part[key] for part in parts]) for key in keys}
    return {k: [round(float(v.mean()), 3), round(float(v.std(ddof=1) / np.sqrt(len(v))), 3)] for k, v in found.items()}


def table(result: dict[str, Any]) -> str:
    """The committed figures as Markdown."""
    lines: list[str] = []
    for side in result["sides"]:
        with_or_without = "names known" if side["names"] else "no names"
        lines += [f"{with_or_without}: {side['runs'][0]} live runs, {side['runs'][1]} simulated", ""]
        lines += ["| reads | live | simulated | differs (noise) |", "|---|---|---|---|"]
        for row in side["rows"]:
            differs = f"{100 * row['difference']:+.1f} ({100 * row['noise']:.1f})"
            lines.append(f"| {row['reads']:,} | {row['live']:.1%} | {row['simulated']:.1%} | {differs} |")
        lines += [
            "",
            f"Within noise: {side['within_noise']} of {len(side['rows'])}. Of the first answers picked a class:",
            "",
        ]
        lines += ["| answers | live | simulated |", "|---|---|---|"]
        for count, (mean, error) in side["picked"]["live"].items():
            other = side["picked"]["simulated"].get(count)
            beside = "" if other is None else f"{other[0]:.0%} ± {other[1]:.0%}"
            lines.append(f"| {int(count):,} | {mean:.0%} ± {error:.0%} | {beside} |")
        pair = side["waited_while_training"]["pair"]
        lines += ["", f"next + answer while it trains: p50 {pair['p50_ms']:.0f} ms, p99 {pair['p99_ms']:.0f} ms, "]
        lines[-1] += f"longest {pair['max_ms']:.0f} ms, {pair['count']} of them."
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--live", type=int, default=4, help="live runs, at least 2")
    parser.add_argument("--simulations", type=int, default=12, help="seeds of the simulation, at least 2")
    parser.add_argument("--names-only", action="store_true", help="leave out the runs without names")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the committed figures")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.out.read_text())))
        return
    result: dict[str, Any] = {**about(), "seconds": options.seconds}
    ways = (True,) if options.names_only else (True, False)
    result["sides"] = [side_by_side(names, options.live, options.simulations, options.seconds) for names in ways]
    print(table(result))
    atomic_write(options.out, json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

"""Is the score that a labelling project gives itself right as often as it promises? 200 simulated projects.

Measured on two cores (results/label_score.json): the 95 % interval holds the truth in 94.5 % of projects with right
answers, in 95.5 % with modelled mistakes.

Each project: 1,500 made-up items of 20 classes, an adaptive policy, a sample of 150 items that is asked about and not
learned from. The truth is the model's accuracy on 20,000 further items. Once with answers that are right, once with
mistakes (miss 5 %, slip 2 %) that are modelled; and without a sample, to see what it costs.

    OMP_NUM_THREADS=1 python benchmarks/label_score.py              # writes results/label_score.json
    python benchmarks/label_score.py --table                        # its tables, as in docs/labelling.md
"""

import argparse
import json
import os
import platform
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.internal.files import atomic_write
from shortlist.policies import LoopSettings, Mistakes, Policy
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.score.audit import usual_size
from shortlist.policies.simulation.simulate import Curve, run_loop

RESULT = Path(__file__).parent.parent / "results" / "label_score.json"
CLASSES, ITEMS, FEATURES, TEST = 20, 1500, 30, 20_000
MOMENTS = (100, 200, 400, 800, 1200, 1600)
"""Questions; and the end."""
PEOPLE = Mistakes(miss=0.05, slip=0.02)


def made_up(seed: int) -> LoopData:
    """Clouds around 20 centres that overlap: full labels reach some 89 %."""
    rng = np.random.Generator(np.random.PCG64([seed, 7]))
    centres = rng.standard_normal((CLASSES, FEATURES))
    y = rng.integers(0, CLASSES, ITEMS + TEST)
    x = (centres[y] + 1.5 * rng.standard_normal((len(y), FEATURES))).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    names = tuple(map(str, range(CLASSES)))
    return LoopData("made up", x[:ITEMS], y[:ITEMS], x[ITEMS:], y[ITEMS:], names)


def project(seed: int, mistakes: Mistakes, score: int) -> Curve:
    """One of them, from the first question to the last."""
    policy = Policy("adaptive", max_size=5, deduce=not mistakes)
    settings = LoopSettings(policy=policy, mistakes=mistakes)
    return run_loop(made_up(seed), settings, way="adaptive", seed=seed, mistakes=mistakes, score=score)


def play(projects: int, mistakes: Mistakes, score: int) -> list[Curve]:
    """All of them, on all cores."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(project, mistakes=mistakes, score=score), range(projects)))


def scored_at(curves: list[Curve], moment: float) -> dict[str, Any]:
    """How well the score did after so many questions."""
    found = []
    for curve in curves:
        place = int(np.searchsorted(curve.column("questions"), moment, side="right")) - 1
        score, truth = curve.scores[place], curve.points[place].accuracy
        if score is not None:
            holds = score.low <= truth <= score.high
            found.append((holds, truth, score.accuracy - truth, score.high - score.low, score.items, score.undecided))
    holds, truth, off, width, items, undecided = np.array(found, np.float64).T
    return {
        "questions": None if np.isinf(moment) else moment,
        "projects": len(found),
        "holds": float(holds.mean()),
        "true_accuracy": float(truth.mean()),
        "bias": float(off.mean()),
        "error": float(np.sqrt(np.square(off).mean())),
        "width": float(width.mean()),
        "items": float(items.mean()),
        "undecided": float(undecided.mean()),
    }


def cost(scored: list[Curve], plain: list[Curve]) -> dict[str, float]:
    """What the sample costs: ends, and the questions to an accuracy that both reach, paired."""
    ends = [(a.points[-1], b.points[-1]) for a, b in zip(scored, plain, strict=True)]
    marks = [_reached(a, 0.85) / _reached(b, 0.85) for a, b in zip(scored, plain, strict=True)]
    return {
        "accuracy_lost": float(np.mean([b.accuracy - a.accuracy for a, b in ends])),
        "reads": float(np.mean([a.reads / b.reads for a, b in ends])) - 1,
        "questions_to_85": float(np.nanmean(marks)) - 1,
    }


def _reached(curve: Curve, accuracy: float) -> float:
    above = np.nonzero(curve.column("accuracy") >= accuracy)[0]
    return float(curve.column("questions")[above[0]]) if len(above) else float("nan")


def projected(curves: list[Curve]) -> list[dict[str, Any]]:
    """What was said about the questions for a point more, against what it took."""
    rows = []
    for moment in MOMENTS[2:]:
        ratios, unseen, vain, in_vain = [], 0, 0, 0
        for curve in curves:
            place = int(np.searchsorted(curve.column("questions"), moment, side="right")) - 1
            said, took = curve.a_point[place], took_for_a_point(curve, place)
            if took is None:
                vain, in_vain = vain + 1, in_vain + (said is None)
            elif said is None:
                unseen += 1
            else:
                ratios.append(said / took)
        spread = np.abs(np.log(ratios)) if ratios else np.array([np.nan])
        rows.append(
            {
                "questions": moment,
                "came": len(ratios) + unseen,
                "not_seen": unseen,
                "median_ratio": float(np.median(ratios)) if ratios else None,
                "within_2": float(np.mean(spread < np.log(2))),
                "within_3": float(np.mean(spread < np.log(3))),
                "never_came": vain,
                "never_came_not_in_sight": in_vain,
            }
        )
    return rows


def took_for_a_point(curve: Curve, place: int) -> float | None:
    """Questions from there until the true accuracy was a point higher; None: it never was."""
    questions = curve.column("questions")
    best: NDArray[np.float64] = np.maximum.accumulate(curve.column("accuracy"))
    target = curve.points[place].accuracy + 0.01
    if best[-1] < target:
        return None
    return max(float(np.interp(target, best, questions)) - float(questions[place]), 1.0)


def measure(projects: int) -> dict[str, Any]:
    """Everything that is in the results."""
    ways: dict[str, dict[str, Any]] = {}
    for way, mistakes in (("answers right", Mistakes()), ("mistakes modelled", PEOPLE)):
        scored = play(projects, mistakes, usual_size(ITEMS))
        ways[way] = {
            "moments": [scored_at(scored, moment) for moment in (*MOMENTS, np.inf)],
            "projection": projected(scored),
        }
        if not mistakes:
            ways[way]["cost"] = cost(scored, play(projects, mistakes, 0))
        print(json.dumps({way: ways[way]}, indent=1), flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}"
    shape = {"classes": CLASSES, "items": ITEMS, "sample": usual_size(ITEMS), "test": TEST}
    return {"projects": projects, **shape, "mistakes": asdict(PEOPLE), "machine": machine, "ways": ways}


def table(result: dict[str, Any]) -> str:
    """The tables of the docs."""
    lines = []
    for way, found in result["ways"].items():
        lines += [f"{way}:", "", "| questions | holds the truth | true accuracy | width | asked about | undecided |"]
        lines.append("|---|---|---|---|---|---|")
        for row in found["moments"]:
            when = "the end" if row["questions"] is None else f"{row['questions']:,}"
            cells = [when, f"{row['holds']:.1%}", f"{row['true_accuracy']:.1%}", f"{100 * row['width']:.1f} points"]
            cells += [f"{row['items']:.0f}", f"{row['undecided']:.1f}"]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--projects", type=int, default=200)
    parser.add_argument("--table", action="store_true", help="print the tables of the stored results")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(RESULT.read_text())))
        return
    atomic_write(RESULT, json.dumps(measure(options.projects), indent=1) + "\n")


if __name__ == "__main__":
    main()

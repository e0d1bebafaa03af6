"""The live loop: 20 robots label digits through the real API while a trainer beside the server chooses the lists.

Measured on two cores of an AMD EPYC (results/annotate_live.json), 8 runs: at all 11 costs within noise of the
simulation; p99 of next while training 20.1 ms, of next + answer 58.6.

    OMP_NUM_THREADS=1 python benchmarks/annotate_live.py        # about half an hour; writes results/annotate_live.json
    python benchmarks/annotate_live.py --table                  # prints the committed figures

Claims: accuracy against reads within noise of the simulation of the same setting; a next question never waits for
training: p99 of next, and of next + answer, under 150 ms while it trains, on two cores that server, trainer and robots
share; the server stays without torch.

Digits: 1,437 items, 10 classes, lists of at most 3, accuracy on the 360 test digits after every training. A robot looks
at the picture, thinks as long as the time model says (1 s, and 0.25 s a class looked at; by a factor of 0.5 to 1.5) and
answers rightly. Two simulations, by the same loop with the same policy, sizes, penalty and features:
- 20 at once (annotate_live_crowd.py): as many questions in hand, the same times to think, the same rule when to train.
- in rounds (`shortlist label`): nobody in a hurry; each round of questions waits for all answers to the one before.
Noise: at each cost, twice the standard error of the difference of the two means, from the spread of the runs around the
mean of their side (at least one test digit of 360). Of eleven costs one in two such tables has one outside by chance.
Busy: texts of 77 classes, the trainer told to train as often as it may (half of the time). Control: no trainer.

Figures: results/annotate_live.json (hardware, versions, commit and the load of the machine are in the file).
"""

import argparse
import asyncio
import io
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from annotate_live_crowd import simulate_crowd
from annotate_live_robots import Request, crowd
from annotate_servers import Server, about, free_port, make_tokens
from shortlist.annotate.live.items import FEATURES
from shortlist.annotate.live.plan import HISTORY, LivePlan
from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source, find_sources
from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.curves import at_cost, mark
from shortlist.policies.simulation.simulate import Curve, Point, run_loop

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "annotate_live.json"
ROBOTS = 20
DIGITS = LivePlan(policy="adaptive", size=3, l2=0.03, test="digits")
BUSY = LivePlan(policy="adaptive", size=5)
GRID = (75, 100, 150, 200, 300, 400, 600, 800, 1000, 1400, 1800)
"""From the first cost on at which both simulations have been trained."""
LEVELS = (0.75, 0.9, 0.96)


# -- digits ------------------------------------------------------------------------------------------------------------


def make_digits(folder: Path, plan: LivePlan, count: int | None = None) -> Project:
    """The training digits as pictures."""
    from PIL import Image

    data = load("digits")
    project = Project.create(folder, Settings("digits", plan.size, live=plan.to_dict()))
    add_classes(project, data.class_names)
    with tempfile.TemporaryDirectory(prefix="live-digits-") as made:
        for i, picture in enumerate(np.asarray(data.train.x)[:count, 0]):
            Image.fromarray(picture).save(Path(made) / f"{i:04}.png")
        add_items(project, find_sources(Path(made)), strict=True)
    return project


def digit_reader() -> Callable[[bytes, str], str]:
    """Reads a picture: robots know the digits by heart."""
    from PIL import Image

    data = load("digits")
    assert data.train.y is not None  # of digits everything is known
    known: dict[bytes, str] = {
        p.tobytes(): data.class_names[k] for p, k in zip(np.asarray(data.train.x)[:, 0], data.train.y, strict=True)
    }

    def read(encoded: bytes, text: str) -> str:
        with Image.open(io.BytesIO(encoded)) as image:
            return known[image.convert("L").tobytes()]

    return read


def label_digits(seed: int) -> tuple[Curve, dict[str, Any]]:
    """One live run until nothing is left to ask."""
    plan = LivePlan(**{**DIGITS.to_dict(), "seed": seed})
    with tempfile.TemporaryDirectory(prefix="annotate-live-") as made:
        folder = Path(made) / "project"
        project = make_digits(folder, plan)
        found = drive(project, "digits", seed)
        curve = live_curve(folder, seed)
    return curve, found


def live_curve(folder: Path, seed: int) -> Curve:
    """What the trainer noted after each training."""
    lines = history(folder)
    points = [
        Point(line["questions"], line["reads"], float("nan"), line["accuracy"], line["resolved"], float("nan"))
        for line in lines
        if line["accuracy"] is not None
    ]
    return Curve("live", seed, tuple(points))


def history(folder: Path) -> list[dict[str, Any]]:
    path = folder / "live" / HISTORY
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# -- a large project, always training ----------------------------------------------------------------------------------


def make_busy(folder: Path, items: int, plan: LivePlan | None) -> Project:
    """Texts of words that depend on the class, which the item's text starts with, for the robots."""
    project = Project.create(folder, Settings("busy", BUSY.size, live=None if plan is None else plan.to_dict()))
    add_classes(project, [f"class {k}" for k in range(77)])
    dice = random.Random(0)
    words = [[f"word{dice.randrange(3000)}" for _ in range(30)] for _ in range(77)]
    sources = []
    for i in range(items):
        k = dice.randrange(77)
        text = f"class {k}: " + " ".join(dice.choice(words[k]) for _ in range(12))
        sources.append(Source(f"item {i}", f"item {i}", text=text))
    add_items(project, sources)
    return project


def text_reader() -> Callable[[bytes, str], str]:
    return lambda encoded, text: text.split(":")[0]


def banking_reader() -> Callable[[bytes, str], str]:
    """For annotate_live_start.py."""
    data = load("banking77")
    assert data.train.y is not None  # of these everything is known
    known = {text: data.class_names[k] for text, k in zip(data.train.x, data.train.y, strict=True)}
    return lambda encoded, text: known[text]


def keep_busy(items: int, seconds: float, plan: LivePlan | None) -> dict[str, Any]:
    """The trainer trains all the time; what do annotators notice? Without a plan: uniform lists, no trainer."""
    with tempfile.TemporaryDirectory(prefix="annotate-live-") as made:
        project = make_busy(Path(made) / "project", items, plan)
        return {"items": items, "classes": 77, **drive(project, "texts", 0, seconds)}


# -- server, trainer, robots -------------------------------------------------------------------------------------------


def robots(port: int, tokens: list[str], what: str, seed: int, seconds: float | None, results: Any) -> None:
    """The process of the robots."""
    read = {"digits": digit_reader, "texts": text_reader, "banking77": banking_reader}[what]()
    results.put(asyncio.run(crowd(port, tokens, read, seed, seconds)))


def drive(project: Project, what: str, seed: int, seconds: float | None = None) -> dict[str, Any]:
    """Serve the project, let the robots work; what they and the trainer saw."""
    tokens, folder, live = make_tokens(project, ROBOTS), project.folder, project.settings.live is not None
    project.close()
    server = Server(folder, free_port())
    try:
        server.wait()
        if live:
            wait_for(lambda: (folder / "live" / HISTORY).exists(), 900)
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        process = context.Process(target=robots, args=(server.port, tokens, what, seed, seconds, results))
        begun = time.time()
        process.start()
        requests, errors = results.get(timeout=900)
        process.join()
        ended = time.time()
        answers = sum(1 for request in requests if request[0] == "answer")
        if seconds is None:
            wait_for(lambda: history(folder)[-1]["answers"] >= answers, 60)
        memory, torch = server.megabytes(), has_torch(server.process.pid)
        trainer = trainer_megabytes(server.process.pid)
    finally:
        server.process.terminate()
        server.process.wait(30)
    trainings = [(line["begun"], line["ended"]) for line in history(folder)]
    inside = [(max(a, begun), min(b, ended)) for a, b in trainings if b > begun and a < ended]
    return {
        **{"robots": ROBOTS, "seconds": round(ended - begun, 1)},
        **{"answers": answers, "errors": len(errors), "first_error": errors[0] if errors else None},
        **{"trainings": len(trainings), "training_share": round(sum(b - a for a, b in inside) / (ended - begun), 2)},
        "median_training_seconds": round(float(np.median([b - a for a, b in trainings[1:] or [(0, 0)]])), 3),
        "longest_training_seconds": round(max((b - a for a, b in trainings[1:]), default=0.0), 2),
        "features_seconds": round(trainings[0][1] - trainings[0][0], 1) if trainings else None,
        "all": percentiles(taken(requests, None)),
        "while_training": percentiles(taken(requests, trainings)),
        "taken_while_training": taken(requests, trainings),
        **{"server_megabytes": round(memory), "server_has_torch": torch, "trainer_megabytes": trainer},
    }


def wait_for(ready: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise RuntimeError("the trainer does not go on")
        time.sleep(0.1)


def has_torch(pid: int) -> bool:
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


def trainer_megabytes(server: int) -> int | None:
    """The most memory that the server's trainer ever had; None where there is none."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server)], capture_output=True, text=True, check=False)
    for pid in listed.stdout.split():
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(round(int(line.split()[1]) / 1024) for line in lines if line.startswith("VmHWM"))
    return None


Taken = dict[str, list[float]]
"""Milliseconds of every next, every answer, and of both together."""


def taken(requests: list[Request], during: list[tuple[float, float]] | None) -> Taken:
    """How long requests took; `during`: only those that overlap one of these times."""
    kept: Taken = {"next": [], "answer": [], "pair": []}
    for name, begun, took in requests:
        if during is None or any(begun < b and begun + took > a for a, b in during):
            kept[name].append(round(1000 * took, 1))
    return kept


def percentiles(kept: Taken) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, values in kept.items():
        if values:
            levels = np.percentile(values, (50, 95, 99))
            found[name] = {f"p{p}_ms": round(float(v), 1) for p, v in zip((50, 95, 99), levels, strict=True)}
            found[name] |= {"max_ms": round(max(values), 1), "count": len(values)}
    return found


def pooled(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The requests of several runs that fell into a training."""
    kept = [run["taken_while_training"] for run in runs]
    return percentiles({name: [value for one in kept for value in one[name]] for name in ("next", "answer", "pair")})


# -- side by side ------------------------------------------------------------------------------------------------------


def compare(
    live: list[Curve], simulated: list[Curve], costs: Sequence[int] = GRID, tested: int = 360
) -> dict[str, Any]:
    """Accuracy at each cost, live and simulated, and whether they differ by more than noise."""
    grid = np.array(costs, np.float64)
    lives, others = (np.stack([at_cost(curve, "reads", grid) for curve in side]) for side in (live, simulated))
    rows: list[dict[str, Any]] = []
    for reads, one, other in zip(costs, lives.T, others.T, strict=True):
        # of both sides together: the spread of a few live runs alone is itself chance
        squares = sum(float(np.square(side - side.mean()).sum()) for side in (one, other))
        spread = max(float(np.sqrt(squares / (len(one) + len(other) - 2))), 1 / tested)
        noise = 2 * spread * float(np.sqrt(1 / len(one) + 1 / len(other)))
        difference = float(one.mean() - other.mean())
        rows.append(
            {
                **{"reads": reads, "live": round(float(one.mean()), 4), "simulated": round(float(other.mean()), 4)},
                **{"difference": round(difference, 4), "noise": round(noise, 4), "within": abs(difference) <= noise},
                **{"live_range": _range(one), "simulated_range": _range(other)},
            }
        )
    return {"rows": rows, "runs": [len(live), len(simulated)], "within_noise": sum(row["within"] for row in rows)}


def ends(curves: list[Curve]) -> dict[str, Any]:
    """Where the runs of one way ended, and the reads from which on their mean accuracy stays at some levels."""
    last = [curve.points[-1] for curve in curves]
    return {
        "reads": [point.reads for point in last],
        "questions": [point.questions for point in last],
        "accuracy": [round(point.accuracy, 4) for point in last],
        "resolved": [round(point.resolved, 4) for point in last],
        "reads_at": {f"{level:.0%}": mark(curves, "reads", level) for level in LEVELS},
    }


def _range(values: Any) -> list[float]:
    return [round(float(values.min()), 4), round(float(values.max()), 4)]


def table(result: dict[str, Any]) -> str:
    """The committed figures as Markdown."""
    crowds, rounds = result["accuracy"]["20 at once"], result["accuracy"]["in rounds"]
    lines = ["| reads | live | simulated, 20 at once | differs (noise) | simulated, in rounds | differs (noise) |"]
    lines.append("|---|---|---|---|---|---|")
    for one, other in zip(crowds["rows"], rounds["rows"], strict=True):
        cells = [f"{one['reads']:,}", f"{one['live']:.1%}"]
        for row in (one, other):
            cells += [f"{row['simulated']:.1%}", f"{100 * row['difference']:+.1f} ({100 * row['noise']:.1f})"]
        lines.append(f"| {' | '.join(cells)} |")
    count = len(crowds["rows"])
    lines += ["", f"Within noise: 20 at once {crowds['within_noise']} of {count}, in rounds {rounds['within_noise']}."]
    lines += ["", f"| reads until accuracy stays at | {' | '.join(f'{v:.0%}' for v in LEVELS)} | all resolved | runs |"]
    lines.append("|---|---|---|---|---|---|")
    for name, end in result["ends"].items():
        marks = [f"{reads:,.0f}" if reads else "never" for reads in end["reads_at"].values()]
        cells = [name, *marks, f"{np.mean(end['reads']):,.0f}", str(len(end["reads"]))]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| | next p50 | p99 | max | next + answer p99 | requests | in training | server |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    digits = result["digits"]
    share, memory = (np.mean([run[k] for run in digits]) for k in ("training_share", "server_megabytes"))
    rows = [(f"digits, {len(digits)} runs, while it trains", result["digits_while_training"], share, memory)]
    for run in result["busy"]:
        name = f"{run['items']:,} texts, {'while it trains' if run['trainings'] else 'uniform lists, no trainer'}"
        rows.append((name, run["while_training"] or run["all"], run["training_share"], run["server_megabytes"]))
    for name, found, share, memory in rows:
        asked, pair = found["next"], found["pair"]
        cells = [name, *(f"{asked[k]:.0f} ms" for k in ("p50_ms", "p99_ms", "max_ms")), f"{pair['p99_ms']:.0f} ms"]
        cells += [f"{asked['count']:,}", f"{share:.0%} of the time", f"{memory:.0f} MB"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| | a training, median (longest) | features | trainer's memory |", "|---|---|---|---|"]
    for name, run in [("digits", digits[0])] + [(f"{r['items']:,} texts", r) for r in result["busy"] if r["trainings"]]:
        long = f"{run['median_training_seconds']:.2g} s ({run['longest_training_seconds']:.2g} s)"
        lines.append(f"| {name} | {long} | {run['features_seconds']:.0f} s | {run['trainer_megabytes']:,} MB |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=8, help="live runs")
    parser.add_argument("--simulated", type=int, default=24, help="simulated runs of each kind")
    parser.add_argument("--busy-items", type=int, nargs="*", default=[20_000, 100_000])
    parser.add_argument("--busy-seconds", type=float, default=60.0)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.out.read_text())))
        return
    result: dict[str, Any] = {**about(), "plan": DIGITS.to_dict(), "digits": [], "busy": []}
    live = []
    for seed in range(options.seeds):
        curve, found = label_digits(seed)
        live.append(curve)
        result["digits"].append({"seed": seed, "load_average": os.getloadavg(), **found})
        end = curve.points[-1]
        print(f"live seed {seed}: {end.accuracy:.4f} at {end.reads} reads, {found['while_training']}", file=sys.stderr)
    result["digits_while_training"] = pooled(result["digits"])
    for items in options.busy_items:
        for plan in (BUSY, None):
            found = keep_busy(items, options.busy_seconds, plan)
            result["busy"].append({"load_average": os.getloadavg(), **found})
            print(f"{items} texts: {found['while_training'] or found['all']}", file=sys.stderr)
    result["load_average_at_end"] = os.getloadavg()
    # a seed decides the features as well, live and simulated
    data = [loop_data(load("digits"), size=FEATURES, seed=s) for s in range(options.simulated)]
    settings = DIGITS.loop_settings()
    in_rounds = replace(settings, grow=LoopSettings.grow, retrain_least=LoopSettings.retrain_least)
    crowds = [simulate_crowd(x, settings, s, people=ROBOTS) for s, x in enumerate(data)]
    rounds = [run_loop(x, in_rounds, way="simulated, in rounds", seed=s) for s, x in enumerate(data)]
    alone = [simulate_crowd(x, settings, s, people=1) for s, x in enumerate(data[: options.seeds])]
    result["accuracy"] = {"20 at once": compare(live, crowds), "in rounds": compare(live, rounds)}
    ways = {"live": live, "simulated, 20 at once": crowds, "simulated, in rounds": rounds, "simulated, alone": alone}
    result["ends"] = {name: ends(curves) for name, curves in ways.items()}
    result["curves"] = {
        f"{name} {c.seed}": [[p.reads, round(p.accuracy, 4)] for p in c.points]
        for name, curves in ways.items()
        for c in curves
        if name != "simulated, alone"  # one training a question
    }
    atomic_write(options.out, json.dumps(result) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()

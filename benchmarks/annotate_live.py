"""The live loop: 20 robots label digits through the real API while a trainer beside the server chooses the shortlists.

    OMP_NUM_THREADS=1 python benchmarks/annotate_live.py        # about five minutes; writes results/annotate_live.json
    python benchmarks/annotate_live.py --table                  # prints the committed figures

Claims: accuracy against reads within noise of the simulation (`policies.simulate.run_loop`, the same policy, sizes,
penalty and features); a next question never waits for training: p99 of next, and of next + answer, under 150 ms while
it trains, on two cores that server, trainer and robots share; the server stays under 150 MB and without torch.

Digits: 1,437 items, 10 classes, lists of at most 3, accuracy on the 360 test digits after every training. Noise: at
each cost, twice the standard error of the difference of the two means over the seeds, from the spread of the simulated
runs (at least one test digit of 360). A robot looks at the picture, thinks 1 s on average, answers rightly.
The simulation asks in rounds and every question knows all answers before it. Twenty people cannot: their questions were
chosen before the others answered. `crowd_simulation` has 20 in hand, too, and trains in no time: the fair comparison.
Busy: 20,000 texts and 77 classes, the trainer told to train without a pause. Control: the same without a trainer.

Figures: results/annotate_live.json (hardware, versions, commit and the load of the machine are in the file).
"""

import argparse
import asyncio
import io
import itertools
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annotate_live_robots import crowd
from annotate_servers import Server, about, free_port, make_tokens
from shortlist.annotate.importing import add_classes, add_items
from shortlist.annotate.live import FOLDER, HISTORY, LivePlan
from shortlist.annotate.live_trainer import EARLY
from shortlist.annotate.project import Project, Settings
from shortlist.annotate.sources import Source, find_sources
from shortlist.data import load
from shortlist.files import atomic_write
from shortlist.label_checks import NONE
from shortlist.policies.curves import at_cost, mark
from shortlist.policies.features import LoopData, loop_data
from shortlist.policies.loop import Loop, LoopSettings
from shortlist.policies.simulate import Curve, Point, run_loop

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "annotate_live.json"
ROBOTS, THINK = 20, 1.0
DIGITS = LivePlan(policy="adaptive", size=3, l2=0.03, retrain_every=1000, test="digits")
BUSY = LivePlan(policy="adaptive", size=5, retrain_every=1, retrain_least=1, seconds=0.5)
GRID = (50, 100, 150, 200, 300, 400, 600, 800, 1000, 1400, 1800)


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
    path = folder / FOLDER / HISTORY
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


def keep_busy(items: int, seconds: float, plan: LivePlan | None) -> dict[str, Any]:
    """The trainer trains all the time; what do annotators notice? Without a plan: uniform lists, no trainer."""
    with tempfile.TemporaryDirectory(prefix="annotate-live-") as made:
        project = make_busy(Path(made) / "project", items, plan)
        return {"items": items, "classes": 77, **drive(project, "texts", 0, seconds)}


# -- server, trainer, robots -------------------------------------------------------------------------------------------


def robots(port: int, tokens: list[str], what: str, seed: int, seconds: float | None, results: Any) -> None:
    """The process of the robots."""
    read = digit_reader() if what == "digits" else text_reader()
    results.put(asyncio.run(crowd(port, tokens, read, THINK, seed, seconds)))


def drive(project: Project, what: str, seed: int, seconds: float | None = None) -> dict[str, Any]:
    """Serve the project, let the robots work; what they and the trainer saw."""
    tokens, folder, live = make_tokens(project, ROBOTS), project.folder, project.settings.live is not None
    project.close()
    server = Server(folder, free_port())
    try:
        server.wait()
        if live:
            wait_for(lambda: (folder / FOLDER / HISTORY).exists(), 300)
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
    finally:
        server.process.terminate()
        server.process.wait(30)
    trainings = [(line["begun"], line["ended"]) for line in history(folder)]
    inside = [(max(a, begun), min(b, ended)) for a, b in trainings if b > begun and a < ended]
    return {
        **{"robots": ROBOTS, "think_seconds": THINK, "seconds": round(ended - begun, 1)},
        **{"answers": answers, "errors": len(errors), "first_error": errors[0] if errors else None},
        **{"trainings": len(trainings), "training_share": round(sum(b - a for a, b in inside) / (ended - begun), 2)},
        "longest_training_seconds": round(max((b - a for a, b in trainings), default=0.0), 2),
        "all": latencies(requests, None),
        "while_training": latencies(requests, trainings),
        **{"server_megabytes": round(memory), "server_has_torch": torch},
    }


def wait_for(ready: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise RuntimeError("the trainer does not go on")
        time.sleep(0.1)


def has_torch(pid: int) -> bool:
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


def latencies(
    requests: list[tuple[str, float, float]], during: list[tuple[float, float]] | None
) -> dict[str, dict[str, float]]:
    """Milliseconds of next, answer and both; `during`: only what overlaps one of these times."""
    kept: dict[str, list[float]] = {"next": [], "answer": [], "pair": []}
    for name, begun, took in requests:
        if during is None or any(begun < b and begun + took > a for a, b in during):
            kept[name].append(1000 * took)
    found: dict[str, dict[str, float]] = {}
    for name, values in kept.items():
        if values:
            percentiles = np.percentile(values, (50, 95, 99))
            found[name] = {f"p{p}_ms": round(float(v), 1) for p, v in zip((50, 95, 99), percentiles, strict=True)}
            found[name] |= {"max_ms": round(max(values), 1), "count": len(values)}
    return found


# -- the simulation with as many people at once ------------------------------------------------------------------------


def crowd_simulation(data: LoopData, settings: LoopSettings, seed: int) -> Curve:
    """The loop with 20 questions always in hand, chosen before the answers of the others came; training takes no time.

    What is left between this and the live run is what training in the background costs.
    """
    loop = Loop(data.x, data.num_classes, settings, seed)
    held: list[tuple[int, list[int]]] = []
    order, waiting = np.empty(0, np.int64), 0
    points: list[Point] = []
    while True:
        if not waiting:
            first = loop.next_items(len(data.y))
            order = np.concatenate([first, loop.rng.permutation(np.setdiff1d(loop.open_items(), first))])
        taken = {row for row, _ in held}
        certain = loop.state.certain
        wanted = (row for row in order.tolist() if row not in taken and not certain[row])
        free = list(itertools.islice(wanted, ROBOTS - len(held)))
        held += [(row, loop.shortlists(np.array([row])).row(0)[0]) for row in free]
        if not held:
            return Curve("simulated crowd", seed, tuple(points))
        row, shortlist = held.pop(0)
        answer = data.y[row] if data.y[row] in shortlist else NONE
        loop.record(np.array([row]), np.array([shortlist], np.int32), np.array([len(shortlist)]), np.array([answer]))
        waiting += 1
        early = np.intersect1d(loop.first, loop.open_items()).size
        if waiting >= (EARLY if early else loop.batch_size()) or not len(loop.open_items()):
            loop.retrain()
            accuracy = float((loop.model.predict(data.x_test) == data.y_test).mean())
            resolved = float(loop.state.certain.mean())
            points.append(Point(loop.state.questions, loop.state.reads, 0.0, accuracy, resolved, float("nan")))
            waiting = 0


# -- side by side ------------------------------------------------------------------------------------------------------


def compare(live: list[Curve], simulated: list[Curve]) -> dict[str, Any]:
    """Accuracy at each cost, live and simulated, and whether they differ by more than noise."""
    grid, digit = np.array(GRID, np.float64), 1 / 360
    rows: list[dict[str, Any]] = []
    lives = np.stack([at_cost(curve, "reads", grid) for curve in live])
    others = np.stack([at_cost(curve, "reads", grid) for curve in simulated])
    for j, reads in enumerate(GRID):
        one, other = lives[:, j], others[:, j]
        spread = max(float(other.std(ddof=1)) if len(other) > 1 else digit, digit)
        noise = 2 * spread * float(np.sqrt(1 / len(one) + 1 / len(other)))
        difference = float(one.mean() - other.mean())
        rows.append(
            {
                **{"reads": reads, "live": round(float(one.mean()), 4), "simulated": round(float(other.mean()), 4)},
                **{"difference": round(difference, 4), "noise": round(noise, 4), "within": abs(difference) <= noise},
                **{"live_range": _range(one), "simulated_range": _range(other)},
            }
        )
    target = 0.99 * float(np.mean([curve.points[-1].accuracy for curve in simulated]))
    ends = {"live": live, "simulated": simulated}
    return {
        "rows": rows,
        "within_noise": f"{sum(row['within'] for row in rows)} of {len(rows)}",
        **{f"reads_in_all_{k}": [curve.points[-1].reads for curve in v] for k, v in ends.items()},
        **{f"questions_in_all_{k}": [curve.points[-1].questions for curve in v] for k, v in ends.items()},
        **{f"accuracy_at_the_end_{k}": [round(curve.points[-1].accuracy, 4) for curve in v] for k, v in ends.items()},
        **{f"resolved_{k}": [round(curve.points[-1].resolved, 4) for curve in v] for k, v in ends.items()},
        **{f"reads_at_99_percent_{k}": mark(v, "reads", target) for k, v in ends.items()},
    }


def _range(values: Any) -> list[float]:
    return [round(float(values.min()), 4), round(float(values.max()), 4)]


def table(result: dict[str, Any]) -> str:
    """The committed figures as Markdown."""
    plain, crowds = result["accuracy"], result["accuracy_with_20_in_hand"]
    lines = ["| reads | live | simulated | difference (noise) | simulated, 20 in hand | difference (noise) |"]
    lines.append("|---|---|---|---|---|---|")
    for one, other in zip(plain["rows"], crowds["rows"], strict=True):
        cells = [f"{one['reads']:,}", f"{one['live']:.1%}"]
        for row in (one, other):
            cells += [f"{row['simulated']:.1%}", f"{100 * row['difference']:+.1f} ({100 * row['noise']:.1f})"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"Within noise: {plain['within_noise']}; with 20 in hand {crowds['within_noise']}."]
    for name, found, key in (("live", plain, "live"), ("simulated", plain, "simulated"), ("20", crowds, "simulated")):
        lines.append(f"Reads in all, {name}: {np.mean(found[f'reads_in_all_{key}']):,.0f}.")
    lines += ["", "| while it trains | next p50 | p99 | max | next + answer p99 | training | server |"]
    lines.append("|---|---|---|---|---|---|---|")
    runs = [(f"digits, seed {run['seed']}", run) for run in result["digits"]]
    if result.get("busy"):
        runs.append((f"{result['busy']['items']:,} texts, 77 classes, no pause", result["busy"]))
        runs.append(("the same, uniform lists, no trainer", result["control"]))
    for name, run in runs:
        found = run["while_training"] or run["all"]
        asked, pair = found["next"], found["pair"]
        cells = [name, *(f"{asked[k]:.0f} ms" for k in ("p50_ms", "p99_ms", "max_ms")), f"{pair['p99_ms']:.0f} ms"]
        cells += [f"{run['training_share']:.0%} of the time", f"{run['server_megabytes']} MB"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3, help="live runs")
    parser.add_argument("--simulated", type=int, default=10, help="simulated runs")
    parser.add_argument("--busy-items", type=int, default=20_000)
    parser.add_argument("--busy-seconds", type=float, default=60.0)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.out.read_text())))
        return
    result: dict[str, Any] = {**about(), "plan": DIGITS.to_dict(), "digits": []}
    live = []
    for seed in range(options.seeds):
        curve, found = label_digits(seed)
        live.append(curve)
        result["digits"].append({"seed": seed, **found})
        end = curve.points[-1]
        print(f"live seed {seed}: {end.accuracy:.4f} at {end.reads} reads, {found['while_training']}", file=sys.stderr)
    # a seed decides the features as well, live and simulated
    data = [loop_data(load("digits"), size=DIGITS.features, seed=s) for s in range(options.simulated)]
    simulated = [run_loop(x, DIGITS.settings(), way="simulated", seed=s) for s, x in enumerate(data)]
    crowds = [crowd_simulation(x, DIGITS.settings(), s) for s, x in enumerate(data)]
    result["accuracy"] = compare(live, simulated)
    result["accuracy_with_20_in_hand"] = compare(live, crowds)
    result["curves"] = {
        f"{c.way} {c.seed}": [[p.reads, round(p.accuracy, 4)] for p in c.points] for c in (*live, *simulated, *crowds)
    }
    if options.busy_seconds:
        result["busy"] = keep_busy(options.busy_items, options.busy_seconds, BUSY)
        result["control"] = keep_busy(options.busy_items, options.busy_seconds, None)
    result["load_average_at_end"] = [round(value, 2) for value in os.getloadavg()]
    atomic_write(options.out, json.dumps(result) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()

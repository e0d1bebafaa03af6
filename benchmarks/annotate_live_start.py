"""The first minutes of a live project with and without the names of its classes: 20 robots on BANKING77's texts.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/annotate_live_start.py --seconds 150

Each run is a real server with its trainer; robots begin when the first publication is there, as in annotate_live.py.
Prints, for both ways, how often the first answers picked a class (by chance a list of 8 of 77 holds it in 10 %), the
model's accuracy on the 3,080 test texts, and how long people waited. The simulation of the same setting
(annotate_live_crowd.py: 20 at once, a training takes as long as it took live) is run beside it on several seeds, as far
as the live run came; `inside` is the share of the live trainings whose accuracy is within two standard deviations of
the simulated ones at as many questions. Writes results/annotate_live_start.json.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select

from annotate_live import ROBOTS, drive, history
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

RESULTS = Path(__file__).parents[1] / "results" / "annotate_live_start.json"
FIRST = (50, 100, 200, 500, 1000, 2000)
SIZE = 8


def make_project(folder: Path, plan: LivePlan) -> Project:
    data = load("banking77")
    project = Project.create(folder, Settings("banking77", plan.size, live=plan.to_dict()))
    add_classes(project, data.class_names)
    add_items(project, [Source(f"text {i}", f"text {i}", text=text) for i, text in enumerate(data.train.x)])
    return project


def picked(folder: Path) -> dict[str, float]:
    """The share of the first answers that picked a class."""
    with Project.open(folder) as project, project.store.read() as connection:
        answers = list(connection.execute(select(Answer.class_id).order_by(Answer.id)).scalars())
    hits = np.array([answer is not None for answer in answers], np.float64)
    return {str(n): round(float(hits[:n].mean()), 3) for n in FIRST if n <= len(hits)}


def live(names: bool, seconds: float, seed: int) -> dict[str, Any]:
    plan = LivePlan(policy="adaptive", size=SIZE, test="banking77", names=names, seed=seed)
    with tempfile.TemporaryDirectory(prefix="annotate-live-") as made:
        folder = Path(made) / "project"
        found = drive(make_project(folder, plan), "banking77", seed, seconds)
        found.pop("taken_while_training")
        learned = [line for line in history(folder) if line["accuracy"] is not None]
        curve = [[line["questions"], line["reads"], round(line["accuracy"], 4)] for line in learned]
        lag = float(np.mean([line["ended"] - line["begun"] for line in history(folder)]))
        return {"picked": picked(folder), **found, "lag": lag, "curve": curve}


def simulated(names: bool, questions: int, seed: int, lag: float) -> dict[str, Any]:
    """The same setting without a server."""
    data = loop_data(load("banking77"), size=FEATURES, seed=seed)
    plan = LivePlan(policy="adaptive", size=SIZE, seed=seed)
    experts = [names_expert(data.texts, data.class_names, data.x, seed=seed)] if names else []
    how: dict[str, Any] = {"people": ROBOTS, "experts": experts, "questions": questions, "lag": lag}
    curve = simulate_crowd(data, plan.loop_settings(), seed, **how)
    return {"curve": [[point.questions, point.reads, round(point.accuracy, 4)] for point in curve.points]}


def inside(live_curve: list[list[float]], others: list[list[list[float]]]) -> float:
    """The share of the live trainings within two standard deviations of the simulated ones at as many questions."""
    mine = np.array(live_curve)
    rest = np.stack([np.interp(mine[:, 0], np.array(one)[:, 0], np.array(one)[:, 2]) for one in others])
    off = np.abs(mine[:, 2] - rest.mean(axis=0))
    return float(np.mean(off <= 2 * rest.std(axis=0, ddof=1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simulations", type=int, default=5, help="seeds of the simulation, at least 2")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    result: dict[str, Any] = {**about(), "seconds": options.seconds, "seed": options.seed, "runs": []}
    for names in (True, False):
        found = live(names, options.seconds, options.seed)
        asked = found["curve"][-1][0]
        others = [simulated(names, asked, options.seed + k, found["lag"]) for k in range(options.simulations)]
        found["inside"] = inside(found["curve"], [other["curve"] for other in others])
        ways = [("live", {"load_average": os.getloadavg(), **found}), *(("simulated", other) for other in others)]
        for way, run in ways:
            result["runs"].append({"names": names, "way": way, **run})
            print(names, way, run.get("picked"), run.get("inside"), run["curve"][-1])
    atomic_write(options.out, json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

"""Where people make mistakes: is modelling them ever worse, beyond noise, than taking every answer as right?

Measured (results/label_mistakes_banking77.json), 20 seeds: modelling is 1.35 points ahead in the mean of the costs, and
at worst 0.19 ± 0.42 behind. So no.

    SHORTLIST_DATA=... OMP_NUM_THREADS=1 python benchmarks/label_mistakes.py --seeds 20 --jobs 2
    python benchmarks/label_mistakes.py --table                       # prints the committed figures
    ... --held-out --ways choices --runs FOLDER                       # what was chosen among, on held-out training data

BANKING77 with the names of its classes, people who overlook the right class in 5 % of the lists and pick a wrong one in
2 %, up to 3 % of the reads: the loops of label_start.py, on more seeds. Differences are paired by seed, with standard
errors, at each cost of a grid. A minimum over many costs of a mean of a few seeds is below zero even where nothing
differs: `by chance` says how far, for two sets of seeds of the same loop. Writes results/label_mistakes_banking77.json.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from label_economy import L2, SIZE, held_out
from shortlist.data import load
from shortlist.internal.files import atomic_write
from shortlist.policies import LoopSettings, Mistakes, Policy, calibration, loop, loop_data, noise
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.names import names_expert
from shortlist.policies.simulation import simulate
from shortlist.policies.simulation.curves import at_cost, by_way
from shortlist.policies.simulation.economy import GOLD
from shortlist.policies.simulation.journal import Journal
from shortlist.policies.simulation.processes import Run, play
from shortlist.policies.simulation.simulate import Curve, Start, Tick, run_loop

RESULTS = Path(__file__).parent.parent / "results" / "label_mistakes_banking77.json"
UP_TO = 0.03
"""Share of the full-label reads."""
COSTS = (0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03)
FINE = 2000
"""Costs among which the worst is looked for."""
FEW = 5
"""Seeds of a mean whose minimum by chance is asked for."""
DRAWS = 2000


@dataclass(frozen=True)
class Way:
    """One loop among people who err."""

    modelled: bool = True
    gold: int = GOLD
    learned: bool = True
    """The rates are estimated; else those of the settings stand."""
    trusting: int | None = None
    constants: dict[str, Any] = field(default_factory=dict)
    """Of the package's modules, set otherwise for this run."""


NAIVE, MODELLED = "taken as right", "modelled"
WAYS = {NAIVE: Way(modelled=False), MODELLED: Way()}
CHOICES = {
    **WAYS,
    "taken as right, a first temperature of 1": Way(modelled=False, constants={"UNPROVEN": 1.0, "RANGE": (0.25, 4.0)}),
    "a first temperature of 1": Way(constants={"UNPROVEN": 1.0, "RANGE": (0.25, 4.0)}),
    "taken as right, of 4": Way(modelled=False, constants={"UNPROVEN": 4.0, "RANGE": (0.25, 4.0)}),
    "taken as right, of 64": Way(modelled=False, constants={"UNPROVEN": 64.0, "RANGE": (0.25, 64.0)}),
    "of 64": Way(constants={"UNPROVEN": 64.0, "RANGE": (0.25, 64.0)}),
    "gold from the first answer": Way(constants={"ENOUGH_GOLD": 1}),
    "rates as expected": Way(learned=False),
    "rates as expected, no gold": Way(learned=False, gold=0),
    "no gold": Way(gold=0),
    "no gold, expected rates weigh 1,000": Way(gold=0, constants={"EXPECTED": 1000}),
    "gold from the first, always from a trusting model": Way(trusting=10**6, constants={"ENOUGH_GOLD": 1}),
    "gold from the first, one in 80": Way(constants={"ENOUGH_GOLD": 1, "GOLD_EVERY": 80}),
}
"""What was chosen among."""
HOMES = (loop, calibration, noise, simulate)
"""Where these constants are."""


@dataclass(frozen=True)
class Player:
    """Plays a way on a seed."""

    people: Mistakes
    start: Start
    ways: dict[str, Way]

    def play(self, run: Run, data: LoopData, tick: Tick) -> Curve:
        """Up to a share of the reads."""
        way = self.ways[run.way]
        settings = LoopSettings(Policy("adaptive", max_size=SIZE["banking77"]), l2=L2["banking77"], retrain_every=1000)
        if way.modelled:
            settings = replace(settings.modelling_mistakes(), learn_mistakes=way.learned)
            settings = settings if way.trusting is None else replace(settings, trusting=way.trusting)
        gold, budget = way.gold if way.modelled else 0, int(UP_TO * len(data.y) * data.num_classes)
        with _set(way.constants):
            how: dict[str, Any] = {"start": self.start, "mistakes": self.people, "tick": tick}
            return run_loop(data, settings, way=run.way, seed=run.seed, budget=budget, gold=gold, **how)


@contextmanager
def _set(constants: dict[str, Any]) -> Iterator[None]:
    """Constants of a module, otherwise for a while."""
    homes = {name: next(home for home in HOMES if hasattr(home, name)) for name in constants}
    before = {name: getattr(home, name) for name, home in homes.items()}
    try:
        for name, value in constants.items():
            setattr(homes[name], name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(homes[name], name, value)


def run(
    data: LoopData, people: Mistakes, ways: dict[str, Way], seeds: int, folder: Path, jobs: int
) -> dict[str, list[Curve]]:
    """Every way on every seed; what the folder holds is not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    start = Start((names_expert(data.texts, data.class_names, data.x),))
    journal = Journal(folder, {"items": len(data.y), "people": asdict(people), "up_to": UP_TO})
    found = {
        Run(way, seed): journal.of(way, seed) for seed in range(seeds) for way in ways
    }  # seed by seed: what is cut short still compares
    left = [one for one, curve in found.items() if curve is None]
    for one, curve in play(left, Player(people, start, ways), data, lambda run, point: None, jobs):
        journal.run(curve)
        found[one] = curve
        print(f"{one.way}, seed {one.seed}: {curve.points[-1].accuracy:.4f}", flush=True)
    return by_way([curve for curve in found.values() if curve is not None])


def against(runs: list[Curve], naive: list[Curve], everything: int, *, worst_from: float = COSTS[0]) -> dict[str, Any]:
    """The paired difference to answers taken as right: at each cost of the grid, and at the worst of very many."""
    seeds = sorted({c.seed for c in runs} & {c.seed for c in naive})
    own, other = ({c.seed: c for c in side} for side in (runs, naive))

    def difference(costs: NDArray[np.float64]) -> NDArray[np.float64]:
        sides = [[at_cost(side[seed], "reads", costs * everything) for seed in seeds] for side in (own, other)]
        return 100 * (np.array(sides[0]) - np.array(sides[1]))

    fine = np.linspace(worst_from, UP_TO, FINE)
    whole, grid = difference(fine), difference(np.array(COSTS))
    worst = int(whole.mean(axis=0).argmin())
    error = grid.std(axis=0, ddof=1) / np.sqrt(len(seeds))
    return {
        "seeds": len(seeds),
        "difference": grid.mean(axis=0).round(2).tolist(),
        "standard_error": error.round(2).tolist(),
        "mean": round(float(whole.mean()), 2),
        "worst": round(float(whole.mean(axis=0)[worst]), 2),
        "worst_at": round(float(fine[worst]), 5),
        "worst_error": round(float(whole[:, worst].std(ddof=1) / np.sqrt(len(seeds))), 2),
    }


def by_chance(runs: list[Curve], everything: int, few: int) -> dict[str, float]:
    """The worst difference over the costs of two means of `few` seeds each of the same loop: its quantiles."""
    fine = np.linspace(COSTS[0], UP_TO, FINE) * everything
    curves = 100 * np.array([at_cost(curve, "reads", fine) for curve in runs])
    rng = np.random.Generator(np.random.PCG64(0))
    minima = []
    for _ in range(DRAWS):
        drawn = rng.permutation(len(curves))
        minima.append((curves[drawn[:few]].mean(axis=0) - curves[drawn[few : 2 * few]].mean(axis=0)).min())
    return {f"{q:.0%}": round(float(np.quantile(minima, q)), 2) for q in (0.05, 0.5, 0.95)}


def table(result: dict[str, Any]) -> str:
    """The committed figures as Markdown."""
    ways = result["against"]
    lines = [f"| reads | {NAIVE} | {' | '.join(ways)} |", "|---|" + "---|" * (len(ways) + 1)]
    for i, cost in enumerate(COSTS):
        cells = [f"{w['difference'][i]:+.1f} ± {w['standard_error'][i]:.1f}" for w in ways.values()]
        lines.append(f"| {cost:.2%} | {result['naive'][i]:.1f}% | {' | '.join(cells)} |")
    worst = [f"{w['worst']:+.1f} ± {w['worst_error']:.1f} at {w['worst_at']:.2%}" for w in ways.values()]
    lines.append(f"| worst of {FINE:,} costs | | {' | '.join(worst)} |")
    means = [f"{w['mean']:+.1f}" for w in ways.values()]
    lines.append(f"| mean | | {' | '.join(means)} |")
    lines.append("")
    for few, found in result["by_chance"].items():
        lines.append(
            f"By chance, two sets of {few} seeds of answers taken as right: {found['50%']:+.1f} points at the worst "
            f"cost (median; {found['5%']:+.1f} to {found['95%']:+.1f} in nine of ten)."
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a process each")
    parser.add_argument("--runs", type=Path, help="a folder that keeps every run: what it holds is not run again")
    parser.add_argument("--ways", choices=("both", "choices"), default="both")
    parser.add_argument("--miss", type=float, default=0.05, help="what people do")
    parser.add_argument("--slip", type=float, default=0.02)
    parser.add_argument("--held-out", action="store_true", help="score on held-out training data, write nothing")
    parser.add_argument("--table", action="store_true", help="print the committed figures")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    data = held_out("banking77") if options.held_out else loop_data(load("banking77"))
    people = Mistakes(miss=options.miss, slip=options.slip)
    ways, everything = CHOICES if options.ways == "choices" else WAYS, len(data.y) * data.num_classes
    with tempfile.TemporaryDirectory(prefix="label-mistakes-") as made:
        found = run(data, people, ways, options.seeds, options.runs or Path(made), options.jobs)
    naive = found.pop(NAIVE)
    levels = np.mean([at_cost(curve, "reads", np.array(COSTS) * everything) for curve in naive], axis=0)
    result = {
        "people": asdict(people),
        "seeds": options.seeds,
        "costs": COSTS,
        "naive": (100 * levels).round(2).tolist(),
        "against": {way: against(runs, naive, everything) for way, runs in found.items()},
        "by_chance": {str(few): by_chance(naive, everything, few) for few in (FEW, 10) if 2 * few <= len(naive)},
    }
    print(table(result))
    if not options.held_out and options.ways == "both":
        atomic_write(RESULTS, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The comparison that `shortlist label` and the benchmark run: one policy beside full labels and random shortlists."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from shortlist.policies.features import LoopData
from shortlist.policies.loop import LoopSettings
from shortlist.policies.noise import Mistakes
from shortlist.policies.simulation.curves import by_way, summarise
from shortlist.policies.simulation.simulate import FULL, Curve, Start, Tick, full_labels, random_shortlists, run_loop

Progress = Callable[[str, int, int], None]
"""Told the way, the seed and the reads so far, after every training."""
GOLD = 300
"""Gold questions asked first where mistakes are modelled."""


@dataclass(frozen=True)
class Comparison:
    """What is run."""

    settings: LoopSettings
    budget: int | None = None
    seeds: int = 3
    size: int = 8
    mistakes: Mistakes = field(default_factory=Mistakes)
    rivals: bool = True
    start: Start = field(default_factory=Start)
    """What the policy's own loops know before the first question; its rivals know nothing."""


def compare(data: LoopData, wanted: Comparison, progress: Progress | None = None) -> list[Curve]:
    """Every way on every seed."""
    curves: list[Curve] = []

    def tick(way: str, seed: int) -> Tick | None:
        return None if progress is None else partial(progress, way, seed)

    for seed in range(wanted.seeds):
        curves.append(full_labels(data, wanted.settings, seed=seed, tick=tick(FULL, seed)))
        for way, settings, gold in ways(data, wanted):
            curves.append(
                run_loop(
                    data,
                    settings,
                    way=way,
                    seed=seed,
                    budget=wanted.budget,
                    mistakes=wanted.mistakes,
                    gold=gold,
                    start=None if settings.policy.kind == "uniform" else wanted.start,
                    tick=tick(way, seed),
                )
            )
    return curves


def ways(data: LoopData, wanted: Comparison) -> list[tuple[str, LoopSettings, int]]:
    """(name, settings, gold questions) of each loop that is run."""
    kind = wanted.settings.policy.kind
    runs: list[tuple[str, LoopSettings, int]] = []
    size = min(wanted.size, data.num_classes - 1)
    if wanted.mistakes:
        # a gold question costs 4 reads; no more than a fifth of the budget goes there
        gold = GOLD if wanted.budget is None else min(GOLD, wanted.budget // 20)
        runs.append((f"{kind}, mistakes modelled", aware(wanted.settings), gold))
        runs.append((f"{kind}, answers taken as right", wanted.settings, 0))
    else:
        runs.append((kind, wanted.settings, 0))
    if wanted.rivals:
        runs.append((f"random {size}, once", random_shortlists(wanted.settings, size, again=False), 0))
        if kind != "uniform":
            runs.append((f"random {size}, again on None", random_shortlists(wanted.settings, size, again=True), 0))
    return runs


def aware(settings: LoopSettings) -> LoopSettings:
    """The same loop with mistakes modelled; their rates come from gold items."""
    return replace(settings, mistakes=Mistakes(0.05, 0.02), policy=replace(settings.policy, deduce=False))


def report(data: LoopData, wanted: Comparison, curves: list[Curve]) -> dict[str, Any]:
    """The comparison as one JSON object."""
    groups = by_way(curves)
    full = groups[FULL]
    ends = [curve.points[-1] for curve in full]
    return {
        "data": data.name,
        "items": len(data.y),
        "classes": data.num_classes,
        "features": int(data.x.shape[1]),
        "seeds": wanted.seeds,
        "budget": wanted.budget,
        "mistakes": asdict(wanted.mistakes),
        "settings": asdict(wanted.settings),
        "full_labels": {
            "accuracy": sum(end.accuracy for end in ends) / len(ends),
            "reads": sum(end.reads for end in ends) / len(ends),
            "seconds": sum(end.seconds for end in ends) / len(ends),
        },
        "ways": [asdict(summarise(runs, full)) for runs in groups.values()],
    }

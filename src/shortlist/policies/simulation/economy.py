"""The comparison behind `shortlist label` and its benchmarks: policies, full labels, random lists and other rivals."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.errors import InputError
from shortlist.policies.choose import Policy
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.noise import Mistakes
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.curves import by_way, summarise
from shortlist.policies.simulation.journal import Journal
from shortlist.policies.simulation.processes import Run, play
from shortlist.policies.simulation.rivals import ACTIVE, CONFORMAL, active_learning, conformal_sets, type_ahead
from shortlist.policies.simulation.simulate import (
    FULL,
    Curve,
    Point,
    Start,
    Tick,
    full_labels,
    random_shortlists,
    run_loop,
)

Progress = Callable[[str, int, int], None]
"""Called after every training with the way, the seed and the reads so far."""
RIVALS: dict[str, Callable[..., Curve]] = {ACTIVE: active_learning, CONFORMAL: conformal_sets}
GOLD = 300
"""Gold questions in a run that models mistakes, unless the budget is small."""


@dataclass(frozen=True)
class Comparison:
    """What is compared: one policy or several, with full labels and, as `rivals`, random shortlists and other ways."""

    settings: LoopSettings
    budget: int | None = None
    seeds: int = 3
    size: int = 8
    mistakes: Mistakes = field(default_factory=Mistakes)
    rivals: bool = True
    others: tuple[Policy, ...] = ()
    """Policies that are run in addition to that of the settings."""
    start: Start = field(default_factory=Start)
    """What the policies know before the first question; the rivals know nothing."""
    score: int = 0
    """The number of items that are kept out of learning to score the policies' models on."""
    typed: float = 0.0
    """The share of the None answers to the policies' lists after which people type the class."""
    pinned: int | None = None
    """A class that is on every short list of an item until it is refused there."""

    def __post_init__(self) -> None:
        for name, value, least in (("seeds", self.seeds, 1), ("budget", self.budget, 1), ("score", self.score, 0)):
            if value is not None and value < least:
                raise InputError(f"{name}: expected at least {least}, got {value}")
        if not 0 <= self.typed <= 1:
            raise InputError(f"typed: expected a share from 0 to 1, got {self.typed}")

    def run(
        self,
        data: LoopData,
        progress: Progress | None = None,
        folder: Path | None = None,
        jobs: int = 1,
        ray: str | None = None,
    ) -> list[Curve]:
        """Every way on every seed.

        Args:
            data: what is labelled.
            progress: called after every training.
            folder: keeps rows as they come, and the runs that have ended, which are not run again.
            jobs: how many runs at a time, each in a process of its own.
            ray: the address of a Ray cluster that does the runs instead (`internal.cluster`).
        """
        if jobs < 1:
            raise InputError(f"jobs: expected at least 1, got {jobs}")
        runs = self.runs(data)
        journal = None if folder is None else Journal(folder, self._stated(data))
        found = {run: None if journal is None else journal.of(run.way, run.seed) for run in runs}

        def tick(run: Run, point: Point) -> None:
            if journal is not None:
                journal.point(run.way, run.seed, point)
            if progress is not None:
                progress(run.way, run.seed, point.reads)

        for run, curve in play([run for run in runs if found[run] is None], self, data, tick, jobs, ray):
            found[run] = curve
            if journal is not None:
                journal.run(curve)
        curves: list[Curve] = []
        for curve in (curve for curve in found.values() if curve is not None):
            # people who type are as right as those who read the full list, but take another time
            curves += [curve, type_ahead(curve, self.settings.time)] if curve.way == FULL else [curve]
        return curves

    def play(self, run: Run, data: LoopData, tick: Tick) -> Curve:
        """One of the runs."""
        if run.way == FULL:
            return full_labels(data, self.settings, seed=run.seed, tick=tick)
        if run.way in RIVALS:
            return RIVALS[run.way](data, self.settings, seed=run.seed, budget=self.budget, tick=tick)
        settings, gold = self._ways(data)[run.way]
        own = settings.policy.kind != "uniform"
        return run_loop(
            data,
            settings,
            way=run.way,
            seed=run.seed,
            budget=self.budget,
            mistakes=self.mistakes,
            gold=gold,
            start=self.start if own else None,
            typed=self.typed if own else 0.0,
            tick=tick,
            score=self.score if own else 0,
            pinned=self.pinned,
        )

    def runs(self, data: LoopData) -> list[Run]:
        """All runs, seed by seed.

        Active learning is among them if scikit-activeml is installed. The rivals that show full lists are left out if
        the budget is too small for one list of K names.
        """
        lists = self.rivals and (self.budget is None or self.budget >= data.num_classes)
        rivals = [way for way in RIVALS if lists and (way != ACTIVE or find_spec("skactiveml"))]
        return [Run(way, seed) for seed in range(self.seeds) for way in (FULL, *rivals, *self._ways(data))]

    def _ways(self, data: LoopData) -> dict[str, tuple[LoopSettings, int]]:
        """The settings and the number of gold questions of each loop."""
        ways: dict[str, tuple[LoopSettings, int]] = {}
        size = min(self.size, data.num_classes - 1)
        for policy in (self.settings.policy, *self.others):
            settings = replace(self.settings, policy=policy)
            if self.mistakes:
                # a gold question costs 4 reads, so at most a fifth of the budget goes there
                gold = GOLD if self.budget is None else min(GOLD, self.budget // 20)
                ways[f"{policy.kind}, mistakes modelled"] = settings.modelling_mistakes(), gold
                ways[f"{policy.kind}, answers taken as right"] = settings, 0
            else:
                ways[policy.kind] = settings, 0
        if self.rivals:
            ways[f"random {size}, once"] = random_shortlists(self.settings, size, again=False), 0
            if self.settings.policy.kind != "uniform":
                ways[f"random {size}, again on None"] = random_shortlists(self.settings, size, again=True), 0
        return ways

    def _stated(self, data: LoopData) -> dict[str, Any]:
        """Everything that decides the figures; of the data a digest."""
        digest = blake2b(digest_size=16)
        for array in (data.x, data.y, data.x_test, data.y_test):
            digest.update(np.ascontiguousarray(array).data)
        stated: dict[str, Any] = {
            "data": digest.hexdigest(),
            "settings": asdict(self.settings),
            "mistakes": asdict(self.mistakes),
        }
        stated |= {"policies": [asdict(policy) for policy in self.others], "budget": self.budget, "size": self.size}
        stated |= {"score": self.score, "typed": self.typed, "start": _digest(self.start, len(data.y))}
        return stated if self.pinned is None else stated | {"pinned": self.pinned}

    def report(self, data: LoopData, curves: list[Curve]) -> dict[str, Any]:
        """The result of `run` as one JSON object."""
        groups = by_way(curves)
        full = groups[FULL]
        ends = [curve.points[-1] for curve in full]
        return {
            "data": data.name,
            "items": len(data.y),
            "classes": data.num_classes,
            "features": int(data.x.shape[1]),
            "seeds": self.seeds,
            "budget": self.budget,
            "mistakes": asdict(self.mistakes),
            "typed": self.typed,
            "pinned": None if self.pinned is None else data.class_names[self.pinned],
            "settings": asdict(self.settings),
            "full_labels": {
                "accuracy": sum(end.accuracy for end in ends) / len(ends),
                "reads": sum(end.reads for end in ends) / len(ends),
                "seconds": sum(end.seconds for end in ends) / len(ends),
            },
            "ways": [asdict(summarise(runs, full)) for runs in groups.values()],
            "scores": [_scored(curve) for curve in curves if curve.scores],
        }


def _digest(start: Start, items: int) -> str:
    """A digest of what is known before the first question; of the experts, their scores of a few items."""
    digest = blake2b(digest_size=16)
    some = np.linspace(0, items - 1, 50).astype(np.int64)
    for expert in start.experts:
        digest.update(np.round(expert.scores(some), 3).tobytes())
    for array in start.known or ():
        digest.update(array.tobytes())
    return digest.hexdigest()


def _scored(curve: Curve) -> dict[str, Any]:
    """The last score by the sample, and as `true` the accuracy on the test items."""
    last = curve.scores[-1]
    found = {"true": curve.points[-1].accuracy, "questions_for_a_point": curve.a_point[-1]}
    return {"way": curve.way, "seed": curve.seed, **found, **({} if last is None else asdict(last))}

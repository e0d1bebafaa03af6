"""The comparison that `shortlist label` and the benchmark run: one policy beside what else people would do."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from shortlist.errors import InputError
from shortlist.policies.features.loop_data import LoopData
from shortlist.policies.noise import Mistakes
from shortlist.policies.settings import LoopSettings
from shortlist.policies.simulation.curves import by_way, summarise
from shortlist.policies.simulation.rivals import ACTIVE, CONFORMAL, active_learning, conformal_sets, type_ahead
from shortlist.policies.simulation.simulate import FULL, Curve, Start, Tick, full_labels, random_shortlists, run_loop

Progress = Callable[[str, int, int], None]
"""Told the way, the seed and the reads so far, after every training."""
GOLD = 300
"""Gold questions asked first where mistakes are modelled."""


@dataclass(frozen=True)
class Comparison:
    """What is run: one policy, beside full labels and random shortlists."""

    settings: LoopSettings
    budget: int | None = None
    seeds: int = 3
    size: int = 8
    mistakes: Mistakes = field(default_factory=Mistakes)
    rivals: bool = True
    start: Start = field(default_factory=Start)
    """What the policy's own loops know before the first question; its rivals know nothing."""
    score: int = 0
    """Items by which the policy's own models are scored."""
    typed: float = 0.0
    """Of the misses of the policy's own lists, the share after which people type the class."""

    def __post_init__(self) -> None:
        if not 0 <= self.typed <= 1:
            raise InputError(f"typed: expected a share from 0 to 1, got {self.typed}")

    def run(self, data: LoopData, progress: Progress | None = None) -> list[Curve]:
        """Every way on every seed."""
        curves: list[Curve] = []

        def tick(way: str, seed: int) -> Tick | None:
            return None if progress is None else partial(progress, way, seed)

        for seed in range(self.seeds):
            curves += self._labels_of_all_classes(data, seed, tick)
            for way, settings, gold in self._ways(data):
                curves.append(
                    run_loop(
                        data,
                        settings,
                        way=way,
                        seed=seed,
                        budget=self.budget,
                        mistakes=self.mistakes,
                        gold=gold,
                        start=None if settings.policy.kind == "uniform" else self.start,
                        typed=0.0 if settings.policy.kind == "uniform" else self.typed,
                        tick=tick(way, seed),
                        score=0 if settings.policy.kind == "uniform" else self.score,
                    )
                )
        return curves

    def _labels_of_all_classes(self, data: LoopData, seed: int, tick: Callable[[str, int], Tick | None]) -> list[Curve]:
        """Full labels, and what else leads to one class at once: typing, active learning, conformal sets.

        A full list costs K reads, so a budget may be too small for any.
        """
        full = full_labels(data, self.settings, seed=seed, tick=tick(FULL, seed))
        curves = [full, type_ahead(full, self.settings.time)]
        if self.rivals and (self.budget is None or self.budget >= data.num_classes):
            for way, rival in self._rivals():
                curves.append(rival(data, self.settings, seed=seed, budget=self.budget, tick=tick(way, seed)))
        return curves

    @staticmethod
    def _rivals() -> list[tuple[str, Callable[..., Curve]]]:
        """Active learning only where scikit-activeml is installed."""
        active = [(ACTIVE, active_learning)] if find_spec("skactiveml") else []
        return [*active, (CONFORMAL, conformal_sets)]

    def num_runs(self, data: LoopData) -> int:
        """How many curves `run` works for; that of the type-ahead box costs nothing."""
        rivals = len(self._rivals()) if self.rivals else 0
        return self.seeds * (1 + rivals + len(self._ways(data)))

    def _ways(self, data: LoopData) -> list[tuple[str, LoopSettings, int]]:
        """(name, settings, gold questions) of each loop that is run."""
        kind = self.settings.policy.kind
        runs: list[tuple[str, LoopSettings, int]] = []
        size = min(self.size, data.num_classes - 1)
        if self.mistakes:
            # a gold question costs 4 reads; no more than a fifth of the budget goes there
            gold = GOLD if self.budget is None else min(GOLD, self.budget // 20)
            runs.append((f"{kind}, mistakes modelled", aware(self.settings), gold))
            runs.append((f"{kind}, answers taken as right", self.settings, 0))
        else:
            runs.append((kind, self.settings, 0))
        if self.rivals:
            runs.append((f"random {size}, once", random_shortlists(self.settings, size, again=False), 0))
            if kind != "uniform":
                runs.append((f"random {size}, again on None", random_shortlists(self.settings, size, again=True), 0))
        return runs

    def report(self, data: LoopData, curves: list[Curve]) -> dict[str, Any]:
        """What `run` found, as one JSON object."""
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
            "settings": asdict(self.settings),
            "full_labels": {
                "accuracy": sum(end.accuracy for end in ends) / len(ends),
                "reads": sum(end.reads for end in ends) / len(ends),
                "seconds": sum(end.seconds for end in ends) / len(ends),
            },
            "ways": [asdict(summarise(runs, full)) for runs in groups.values()],
            "scores": [_scored(curve) for curve in curves if curve.scores],
        }


def _scored(curve: Curve) -> dict[str, Any]:
    """What the sample said in the end, and what the test items say."""
    last = curve.scores[-1]
    found = {"true": curve.points[-1].accuracy, "questions_for_a_point": curve.a_point[-1]}
    return {"way": curve.way, "seed": curve.seed, **found, **({} if last is None else asdict(last))}


PEOPLE = Mistakes(miss=0.05, slip=0.02, typed=0.02)
"""Rates that are modelled before any are measured."""
FRESH = 5


def aware(settings: LoopSettings) -> LoopSettings:
    """The same loop with mistakes modelled; their rates are learned on the way, best from gold items.

    A model of few answers may be sure of the wrong thing, and then takes what contradicts it for mistakes: until there
    are `FRESH` items per class each training starts anew (chosen on held-out training data of BANKING77).
    """
    policy = replace(settings.policy, deduce=False)
    return replace(settings, mistakes=PEOPLE, learn_mistakes=True, fresh=FRESH, policy=policy)

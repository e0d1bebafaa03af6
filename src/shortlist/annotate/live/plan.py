"""What an owner can set about model-chosen shortlists; all else about the loop is fixed here, with its reason."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from shortlist.annotate.project.project import Settings
from shortlist.errors import InputError
from shortlist.policies import LoopSettings, Policy

HISTORY = "history.jsonl"
"""What the trainer notes after each training, in the project's folder `live`."""
HIT = 0.8
"""An adaptive list is long enough to hold the right class with this probability; measured in docs/labelling.md."""
RETRAIN_EVERY, GROW = 500, 0.05
"""Train when there are a twentieth more answers, at the latest after 500: lists get out of date."""
CALIBRATE_LEAST = 50
"""Answers after which it is decided anew what names and scores count beside the model; as `shortlist label` does."""
RETIRED = {"hit", "floor", "order", "retrain_every", "retrain_least", "seconds", "nice"}
"""Once written to project.json, always with their defaults; read and ignored, so that older projects open."""


@dataclass(frozen=True)
class LivePlan:
    """What the trainer and the chooser are told.

    Attributes:
        policy: top, adaptive or information.
        size: classes on a list; for adaptive and information, the most.
        epsilon: share of uniform lists mixed in.
        mistakes: model annotators' mistakes: refused classes become less likely, but stay possible.
        l2: the penalty on the model's weights.
        seed: of everything that is drawn.
        test: labelled data to score on: a name or a path that `shortlist.data.load` takes.
        names: texts: the names and descriptions of the classes choose the first lists; also in projects made before
            this could be set.
        score: keep a sample of the items out of training, to score the model by it; also in projects made before this
            could be set. Not with `test`, which says the same for nothing.
        features: the word for what the model sees (`policies.make_features`); what does best for the kind of items,
            unless stated.
    """

    policy: str = "adaptive"
    size: int = 5
    epsilon: float = 0.0
    mistakes: bool = False
    l2: float = 0.1
    seed: int = 0
    test: str | None = None
    names: bool = True
    score: bool = True
    features: str | None = None

    def __post_init__(self) -> None:
        self.loop_settings()  # refuses what is out of range

    @classmethod
    def parse(cls, content: dict[str, Any]) -> "LivePlan":
        """From the settings of a project."""
        known = {field.name for field in fields(cls)}
        if isinstance(content.get("features"), int):  # once a number, always the same
            content = {name: value for name, value in content.items() if name != "features"}
        unknown = set(content) - known - RETIRED
        if unknown:
            raise InputError(f"live: unknown setting {sorted(unknown)[0]!r}")
        try:
            return cls(**{name: value for name, value in content.items() if name in known})
        except TypeError as error:
            raise InputError(f"live: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def loop_settings(self) -> LoopSettings:
        """The same for the labelling loop."""
        policy = Policy(
            self.policy,
            size=self.size,
            hit=HIT,
            max_size=self.size,
            epsilon=self.epsilon,
        )
        settings = LoopSettings(
            policy=policy,
            retrain_every=RETRAIN_EVERY,
            retrain_least=1,  # early on every answer counts, and a training takes no time
            grow=GROW,
            calibrate_least=CALIBRATE_LEAST,
            l2=self.l2,
        )
        return settings.modelling_mistakes() if self.mistakes else settings


def live_plan(
    settings: Settings,
    policy: str | None = None,
    epsilon: float | None = None,
    test: str | None = None,
    names: bool | None = None,
    score: bool | None = None,
    features: str | None = None,
) -> LivePlan | None:
    """What the project's settings say, unless told otherwise here; None: uniform shortlists, nothing to train.

    Where several people are asked about an item, mistakes are modelled: that is what the others are asked for.
    """
    if test is not None and Path(test).exists():
        test = str(Path(test).resolve())  # the server may be started from elsewhere next time
    if features is not None:
        words = [features] if Path(features).exists() else features.split("+")
        features = "+".join(str(Path(word).resolve()) if word and Path(word).exists() else word for word in words)
    wanted: dict[str, Any] = {"size": settings.size, "mistakes": settings.overlap > 1, **(settings.live or {})}
    told = {"policy": policy, "epsilon": epsilon, "test": test, "names": names, "score": score, "features": features}
    wanted |= {name: value for name, value in told.items() if value is not None}
    if "policy" not in wanted and any(value is not None for value in (epsilon, test, names, score, features)):
        told_in_vain = "--epsilon, --test, --features, --no-names and --no-score"
        raise InputError(f"{told_in_vain} belong to model-chosen shortlists: give --policy adaptive")
    if wanted.get("policy", "uniform") == "uniform":
        return None
    return LivePlan.parse(wanted)

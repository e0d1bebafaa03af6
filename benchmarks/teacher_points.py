"""What teacher_ablation.py tries: options, learning rates and weight decays, changes of the defaults, other forms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from shortlist.study.plan.grid import HOLDOUT, Cell, config_of
from shortlist.study.plan.recipes import Recipe
from shortlist.study.plan.variants import MethodVariant
from shortlist.training import RunConfig

EPOCHS, SIZE, SEEDS = 40, 3, (1000, 1001)
METHODS = ("teacher", "rc", "proden", "crdpll", "likelihood", "ol")


@dataclass(frozen=True)
class Point:
    """A method with the settings that are tried."""

    method: str
    options: dict[str, Any] = field(default_factory=dict)
    lr: float = 0.1
    weight_decay: float = 1e-3
    strong: bool = True
    mix: bool = False
    epochs: int = EPOCHS
    holdout: float = HOLDOUT

    @property
    def variant(self) -> MethodVariant:
        return MethodVariant(self.method, augment=True, strong=self.strong, mix=self.mix)

    def config(self, dataset: str, seed: int) -> RunConfig:
        cell = Cell(dataset, "1-10", None if self.method == "ol" else SIZE, self.variant)
        recipe = Recipe(self.lr, self.weight_decay, method_options=dict(self.options))
        return config_of(cell, seed, recipe, self.epochs, self.holdout)


def teacher(temperature: float = 1.0, decay: float = 0.99, memory: float = 0.5, **others: Any) -> Point:
    return Point("teacher", {"temperature": temperature, "decay": decay, "memory": memory, **others})


FIRST = {"temperature": 0.5, "decay": 0.999, "memory": 0.0}
"""The form that was run first."""
OPTIONS = [
    *(Point(method) for method in ("ol", "likelihood", "rc", "proden")),
    teacher(),
    *(Point("teacher", {**FIRST, **change}) for change in ({}, {"decay": 0.99}, {"temperature": 1.0})),
    *(Point("teacher", {**FIRST, **change}) for change in ({"ramp": 0.3}, {"pull": 0.5})),
    *(teacher(memory=0.0, decay=decay) for decay in (0.99, 0.9995)),
    *(teacher(memory=memory, decay=decay) for memory, decay in product((0.7, 0.9), (0.0, 0.99))),
    teacher(memory=0.9, decay=0.999),
    teacher(memory=0.9, temperature=0.7),
    teacher(memory=0.0, fresh=False),
    *(teacher(memory=0.5, decay=0.0, temperature=t, fresh=False) for t in (1.0, 0.7)),
    *(teacher(memory=0.7, decay=decay, fresh=False) for decay in (0.0, 0.99)),
]
TRIED = {
    "cifar10": [
        *(Point(m, weight_decay=wd) for m, wd in product(("proden", "crdpll"), (5e-4, 1e-3))),
        Point("crdpll", {"ramp": 0.1}),
    ],
    "fashion": [
        *(Point(m, {}, lr, wd) for m, lr, wd in product(METHODS, (0.1, 0.05), (1e-4, 5e-4))),
        *(Point(m, {}, 0.1, 1e-4, strong=False) for m in METHODS),
    ],
}
CHANGES: dict[str, dict[str, Any]] = {
    "apart": {"apart": True},
    "pull=0.5": {"pull": 0.5},
    "pull=2": {"pull": 2.0},
    "whole=0.2": {"whole": 0.2},
    "whole=0.5": {"whole": 0.5},
    "confident=0.7": {"confident": 0.7},
    "temperature=1.5": {"temperature": 1.5},
    "aligned": {"aligned": True},
    "mix": {},
}
"""Of the defaults, one at a time; of two values of an option the better one goes on."""
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "the w of the epoch before": ("teacher", {"fresh": False}),
    "no memory": ("teacher", {"memory": 0.0}),
    "own passes": ("teacher", {"decay": 0.0}),
    "own passes, no memory": ("teacher", {"decay": 0.0, "memory": 0.0}),
    "own passes, both views": ("teacher_forms:BothViews", {}),
    "ramp": ("teacher", {"ramp": 0.3}),
    "confident": ("teacher", {"confident": 0.7}),
    "annealed": ("teacher_forms:Annealed", {}),
    "soft answers": ("teacher_forms:SoftAnswers", {}),
    "heavy answers": ("teacher_more_forms:HeavyAnswers", {}),
    "memory that grows": ("teacher_more_forms:Settling", {}),
    "memory that fades": ("teacher_more_forms:Settling", {"memory": 0.9, "end": 0.0}),
    "strong view only": ("teacher_forms:StrongOnly", {}),
    "strong view only, sharpened": ("teacher_forms:StrongOnly", {"memory": 0.0, "temperature": 0.5}),
    "agreement in all classes": ("teacher_forms:Agreement", {}),
    "slow": ("teacher", {"decay": 0.999}),
    "slow, no memory": ("teacher", {"decay": 0.999, "memory": 0.0}),
    "slow, sharpened, half": ("teacher", {**FIRST, "pull": 0.5}),
    "slow, sharpened a little, half": ("teacher", {**FIRST, "temperature": 0.7, "pull": 0.5}),
    "slow, sharpened, half, memory": ("teacher", {**FIRST, "memory": 0.5, "pull": 0.5}),
    "slow, sharpened, ramp": ("teacher", {**FIRST, "ramp": 0.3}),
    "slow, sharpened, confident": ("teacher", {**FIRST, "confident": 0.8}),
    "slow, sharpened, strong view only": ("teacher_forms:StrongOnly", FIRST),
}
"""Other forms, each a method with its options; what is not stated is as the defaults have it."""
PLACES = {"cifar10": (40, (2000, 2001)), "fashion": (100, (2000, 2001, 2002, 2003))}
"""Epochs and seeds of `changes`."""
FORM_EPOCHS, FORM_SEEDS = 100, {"cifar10": PLACES["cifar10"][1][:1], "fashion": PLACES["fashion"][1]}
"""Of `forms`: in 40 epochs whatever learns slowly loses, whether or not it would end higher."""
DECAYS: dict[str, dict[str, tuple[float, ...]]] = {
    "cifar10": {"teacher": (1e-3,), "proden": (1e-3,), "dirk": (1e-3,), "likelihood": (5e-4, 1e-3), "ol": (5e-4, 1e-3)},
    "fashion": {"teacher": (5e-4, 1e-4), "proden": (1e-4, 5e-4), "dirk": (5e-4, 1e-4), "likelihood": (5e-4, 1e-4)},
}
"""Weight decays of `changes` and `decays`: the one that stands first, then others."""
CHANGED = ("teacher", "proden", "dirk")
"""Methods of `changes`."""
LONG = {
    "cifar10": (("likelihood", "ol"), range(3000, 3002)),
    "fashion": (("teacher", "proden", "likelihood"), range(3000, 3006)),
}
"""Methods and seeds of `decays`."""


def changed(dataset: str, names: Sequence[str], method: str = "teacher", weight_decay: float | None = None) -> Point:
    """The defaults with these changes, as `changes` runs them."""
    options = {key: value for name in names for key, value in CHANGES[name].items()}
    decay = weight_decay or DECAYS[dataset][method][0]
    return Point(method, options, 0.1, decay, mix="mix" in names, epochs=PLACES[dataset][0], holdout=0.3)


def points_of(dataset: str, method: str) -> dict[str, Point]:
    """What `changes` tries of a method; the first is what stands."""
    names = {"teacher": list(CHANGES), "proden": ["mix"]}.get(method, [])
    decays = DECAYS[dataset][method]
    return {
        method: changed(dataset, [], method),
        **{f"{method}, {name}": changed(dataset, [name], method) for name in names},
        **{f"{method}, weight decay {decay:g}": changed(dataset, [], method, decay) for decay in decays[1:]},
    }


def decay_points(dataset: str, method: str) -> dict[str, Point]:
    """What `decays` tries of a method; the first is what stands."""
    decays = DECAYS[dataset][method]
    return {f"{method}, weight decay {decay:g}": Point(method, {}, 0.1, decay, epochs=100) for decay in decays}

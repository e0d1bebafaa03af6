"""What decides a run's result (`RunConfig`) and what only decides its speed (`Engine`)."""

import dataclasses
import importlib.util
import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

import torch

from shortlist.errors import InputError, unknown_name
from shortlist.internal.arguments import number, whole
from shortlist.internal.reasons import reason
from shortlist.methods import PROTOCOLS, Protocol

Optimiser = Literal["sgd", "adam", "lbfgs"]
Schedule = Literal["constant", "step", "cosine"]
Keep = Literal["last", "best"]


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the result of one run, given the data.

    The seed decides shortlists, held-out items, initial weights, shuffles and augmentation, each from a stream of its
    own (`stream_seed`).
    """

    method: str = "likelihood"
    method_options: dict[str, Any] = field(default_factory=dict)
    protocol: Protocol = "fair"
    size: int | None = None
    """Classes on a simulated shortlist; None if labels are given or ordinary."""
    classes: tuple[int, ...] | None = None
    """Train and test on these classes alone (the paper's Tables 3-5); None for all."""
    model: str = "mlp"
    model_options: dict[str, Any] = field(default_factory=dict)
    epochs: int = 30
    batch_size: int = 256
    optimiser: Optimiser = "sgd"
    """lbfgs: for linear models only; an epoch is one step on all items (`training/solver/solver.py`)."""
    lr: float = 0.05
    weight_decay: float = 1e-4
    momentum: float = 0.9
    schedule: Schedule = "cosine"
    augment: bool = False
    """Random crops with 4 pixels of padding, and flips if the dataset allows them."""
    strong: bool = False
    """Every image is twice in a batch: as `augment` makes it, and strongly changed (`training/views.py`)."""
    mix: bool = False
    """Strong views are mixed with those of other items (`training/views.py`)."""
    ema: float = 0.0
    """The decay per step of averaged weights (`training/average.py`), which are then scored and saved; 0 for none."""
    holdout: float = 0.0
    """The share of labelled items held out for validation."""
    keep: Keep = "last"
    """Which weights are saved: those of the last epoch, or of the one that did best on the held-out items."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "seed", *(() if self.size is None else ("size",))):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        for name in ("lr", "weight_decay", "momentum", "ema", "holdout"):
            object.__setattr__(self, name, number(name, getattr(self, name)))
        for name, known in (("optimiser", Optimiser), ("schedule", Schedule), ("keep", Keep)):
            if getattr(self, name) not in get_args(known):
                raise unknown_name(name, getattr(self, name), get_args(known))
        if self.protocol not in PROTOCOLS:
            raise unknown_name("protocol", self.protocol, PROTOCOLS)
        for name, least in (("epochs", 1), ("batch_size", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        for name in ("lr", "weight_decay"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name}: expected a number of at least 0, got {value}")
        for name in ("momentum", "ema", "holdout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name}: expected a number from 0 to below 1, got {getattr(self, name)}")
        if self.mix and not self.strong:
            raise InputError("mix: expected strong views, as only these are mixed")
        if self.keep == "best" and not self.holdout:
            raise InputError("keep best: expected a holdout above 0, as the epoch is chosen by the held-out items")

    def to_dict(self) -> dict[str, Any]:
        """As plain values, fit for JSON."""
        return dataclasses.asdict(self)

    def difference(self, saved: dict[str, Any]) -> str | None:
        """The first setting that differs in a run saved by `to_dict`, in words; None if all are the same.

        Settings are compared as JSON keeps them, a tuple as a list; one newer than the saved run had its default there.
        """
        ours, theirs = json.loads(json.dumps(self.to_dict())), {**RunConfig().to_dict(), **saved}
        for name, value in ours.items():
            if theirs[name] != value:
                return f"a run with {name} = {theirs[name]!r}, this one has {value!r}"
        return None

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Undo `to_dict`."""
        known = {f.name for f in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                raise unknown_name("setting", name, known)
        classes = values.get("classes")
        return cls(**{**values, "classes": None if classes is None else tuple(classes)})


@dataclass(frozen=True)
class Engine:
    """How a run is computed. What is not stated is chosen to suit the device."""

    device: str = "auto"
    amp: bool | None = None
    """bf16 autocast; by default on CUDA only (a CPU without bf16 units is ten times slower with it)."""
    compile: bool | None = None
    """torch.compile; by default on CUDA for runs long enough to repay it."""
    cuda_graph: bool | None = None
    """Replay each step from a captured CUDA graph; by default on CUDA."""
    kernels: bool | None = None
    """Our own kernels for the paper's networks; by default on CUDA if Triton is installed."""

    def resolve(self, work: int) -> "Engine":
        """With every choice made; `work` is how many items the run will process in all."""
        device = resolve_device(self.device)
        cuda = device.startswith("cuda")
        return Engine(
            device=device,
            amp=cuda if self.amp is None else self.amp,
            compile=(cuda and work > 1_000_000) if self.compile is None else self.compile,
            cuda_graph=cuda if self.cuda_graph is None else self.cuda_graph and cuda,
            kernels=cuda and self.kernels is not False and importlib.util.find_spec("triton") is not None,
        )


def resolve_device(name: str) -> str:
    """The device of that name, which may be `auto`; refused if it cannot be used."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(f"device {name!r} cannot be used: {reason(error)}") from error
    return str(device)

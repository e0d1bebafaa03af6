"""The methods as the study runs them: a method, what it is fed, whether images are augmented and weights averaged."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from shortlist import methods
from shortlist.errors import InputError, unknown_name
from shortlist.methods import METHODS, PROTOCOLS, Method, Protocol
from shortlist.training import RunConfig

ADDITIONS = {"aug": "augment", "strong": "strong", "ema": "ema", "keep": "keep", "mix": "mix"}
"""What can be added to a method: on the command line -> the field of a variant, and of a row of the ledger."""
EMA = 0.999
"""The decay of averaged weights: of the last thousand steps, five epochs of CIFAR10."""
NAMED: dict[str, tuple[str, dict[str, Any]]] = {"ol-ovr": ("ol", {"loss": "ovr_square"})}
"""Variants with a name of their own: OL with the loss SL has, since the paper does not say which OL had."""
FIRST_OPTIONS: dict[str, dict[str, Any]] = {"teacher": {"temperature": 0.5, "decay": 0.999, "memory": 0.0}}
"""Options whose defaults changed: what they were when the first runs were stored, which do not state them."""
SQUARE = ("sl", "sl_unbiased", "ol-ovr")
"""Variants with the square loss, whose gradients are larger than those of cross entropy."""
TITLES = {
    "ol": "OL (cross entropy)",
    "ol-ovr": "OL (OVR square)",
    "sl": "SL",
    "likelihood": "likelihood",
    "sl_unbiased": "SL, unbiased form",
    "teacher": "teacher",
}


@dataclass(frozen=True)
class MethodVariant:
    """A method under a protocol."""

    name: str
    protocol: Protocol = "fair"
    augment: bool = False
    ema: bool = False
    strong: bool = False
    """Whether a second, strongly changed view of every image is trained on."""
    keep: bool = False
    """Whether a run ends with the epoch that did best on held-out answers, instead of the last."""
    mix: bool = False
    """Whether strong views are mixed with those of other items."""

    @classmethod
    def parse(cls, text: str, protocol: Protocol = "fair") -> Self:
        """From the command line: `sl`, `ol-ovr`, `likelihood+aug`, `teacher+aug+strong+ema`, `my_module:MyMethod`."""
        name, *extras = text.split("+")
        if name not in METHODS and name not in NAMED and ":" not in name:
            raise unknown_name("method", name, [*METHODS, *NAMED])
        for extra in extras:
            if extra not in ADDITIONS:
                raise unknown_name("addition to a method", extra, ADDITIONS)
        if ":" in name:
            methods.find(name)  # so that a module that cannot be imported is reported now
        elif name in METHODS and not METHODS[name].__module__.startswith("shortlist."):
            raise InputError(f"method {name!r}: name your own module:Class, so that a change of its file is seen")
        if "mix" in extras and "strong" not in extras:
            raise InputError(f"{text}: mix needs strong, whose views it mixes")
        found = cls(name, protocol, **{ADDITIONS[extra]: True for extra in extras})
        if found.mix and found.kind.compares_views():
            raise InputError(f"{text}: the method compares the views of an item, which cannot be mixed ones")
        return found

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From a row of the ledger, which names only the additions that are there."""
        return cls(row["line"], row["protocol"], **{field: row.get(field, False) for field in ADDITIONS.values()})

    def to_dict(self) -> dict[str, Any]:
        """For a row of the ledger; additions other than `augment` are named only where they are there."""
        present = {field: True for field in ADDITIONS.values() if getattr(self, field)}
        return {"line": self.name, "protocol": self.protocol, "augment": False, **present}

    @property
    def method(self) -> str:
        """The registry's name of the method."""
        return NAMED[self.name][0] if self.name in NAMED else self.name

    @property
    def kind(self) -> type[Method]:
        """The class of the method."""
        return methods.find(self.method)

    @property
    def options(self) -> dict[str, Any]:
        """The options that make this variant what it is."""
        return dict(NAMED[self.name][1]) if self.name in NAMED else {}

    @property
    def augmented(self) -> bool:
        """Whether it sees changed images, which no method of the paper does."""
        return self.augment or self.strong

    @property
    def ordinary(self) -> bool:
        """Whether it is fed ordinary labels instead of shortlists."""
        return self.method == "ol"

    @property
    def own(self) -> bool:
        """Whether it is the user's own, `module:Class`."""
        return ":" in self.name

    @property
    def text(self) -> str:
        """As `parse` reads it."""
        return "+".join([self.name, *(extra for extra, field in ADDITIONS.items() if getattr(self, field))])

    @property
    def title(self) -> str:
        """For tables."""
        views = (", two views" if self.strong else "") + (", mixed" if self.mix else "")
        extras = (", augmented" if self.augment else "") + views + (", averaged weights" if self.ema else "")
        extras += ", epoch chosen" if self.keep else ""
        # for a method of one's own the title that its class states itself: an inherited one is another method's
        named = vars(self.kind).get("title", self.kind.__name__) if self.own else self.name.upper()
        return TITLES.get(self.name, named) + extras

    def plainer(self) -> list[Self]:
        """This variant, then with one addition less at a time: chosen epoch, averaged weights, mixing, views, crops."""
        last = replace(self, keep=False)
        single = replace(last, ema=False)
        clean, plain = replace(single, mix=False), replace(single, mix=False, strong=False)
        return list(dict.fromkeys([self, last, single, clean, plain, replace(plain, augment=False)]))

    def run_as(self) -> Self:
        """The variant that is run in its place: OL, SL and likelihood do not depend on the protocol, and CC fed every
        answer is the likelihood.

        >>> MethodVariant("cc").run_as().text, MethodVariant("sl", "paper").run_as().protocol
        ('likelihood', 'fair')
        """
        if not self.kind.baseline:
            return replace(self, protocol="fair")
        if self.name == "cc" and self.protocol == "fair":
            return replace(self, name="likelihood")
        return self


def trained_share(variant: MethodVariant, size: int | None, num_classes: int) -> float:
    """The share of the items that a variant trains on under uniform shortlists."""
    if size is None or variant.protocol == "fair" or not variant.kind.baseline:
        return 1.0
    return 1 - size / num_classes


def step_cost(config: RunConfig) -> float:
    """The passes of a step as a multiple of one forward and backward pass (a forward pass alone is a third)."""
    method = methods.get(config.method, **config.method_options)
    return (2 if config.strong else 1) + ((method.refresh == "after") + bool(method.teacher)) / 3


def default_options(method: str) -> dict[str, Any]:
    """The options of a method and their defaults."""
    made = methods.get(method)
    return {name: getattr(made, name) for name in getattr(made, "__dataclass_fields__", {})}


def stated_options(method: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a stored run or choice; what it does not state had the default of its time."""
    return {**FIRST_OPTIONS.get(method, {}), **stored}


def checked_protocols(text: str) -> tuple[Protocol, ...]:
    """`both`, `paper` or `fair`."""
    known: dict[str, tuple[Protocol, ...]] = {"both": PROTOCOLS, "paper": ("paper",), "fair": ("fair",)}
    if text not in known:
        raise InputError(f"protocol: expected both, paper or fair, got {text!r}")
    return known[text]

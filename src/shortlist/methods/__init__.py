"""The methods: one small file each, one interface (`base.Method`), one registry."""

from numbers import Real
from typing import Any

import numpy as np

from shortlist.errors import InputError, unknown_name
from shortlist.internal.arguments import truth
from shortlist.methods.base import (
    PROTOCOLS,
    Batch,
    Feed,
    Method,
    Protocol,
    Refresh,
    restricted_softmax,
    weighted_cross_entropy,
)
from shortlist.methods.cc import CC
from shortlist.methods.crdpll import CRDPLL
from shortlist.methods.dirk import DIRK
from shortlist.methods.exp import EXP
from shortlist.methods.likelihood import Likelihood
from shortlist.methods.log import LOG
from shortlist.methods.lw import LW
from shortlist.methods.ol import OL
from shortlist.methods.plugins import own_method
from shortlist.methods.proden import PRODEN
from shortlist.methods.propensity import Propensity
from shortlist.methods.rc import RC
from shortlist.methods.sl import SL
from shortlist.methods.sl_unbiased import SLUnbiased
from shortlist.methods.teacher import Teacher

__all__ = [
    "METHODS",
    "PROTOCOLS",
    "Batch",
    "Feed",
    "Method",
    "Protocol",
    "Refresh",
    "find",
    "get",
    "register",
    "restricted_softmax",
    "weighted_cross_entropy",
]

METHODS: dict[str, type[Method]] = {}


def register(method: type[Method]) -> type[Method]:
    """Make a method known by its name; also a decorator for methods defined elsewhere.

    Your own may be registered again, since a notebook runs its cells again. Ours cannot be replaced: stored runs are
    known by their names.
    """
    known = METHODS.get(method.name, method)
    if known is not method and known.__module__.startswith("shortlist."):
        raise InputError(f"method {method.name!r} is one of ours ({known.__module__}): give yours another name")
    METHODS[method.name] = method
    return method


for _method in (OL, SL, SLUnbiased, Likelihood, LOG, EXP, CC, RC, PRODEN, LW, Propensity, Teacher, CRDPLL, DIRK):
    register(_method)


def find(name: str) -> type[Method]:
    """The class of a method, by its name or, in a module of your own, as `package.module:Class`."""
    if name in METHODS:
        return METHODS[name]
    if isinstance(name, str) and ":" in name:
        return own_method(name)
    if isinstance(name, type | Method):
        raise InputError(f"method {name!r}: expected its name, which methods.register gives it, or 'module:Class'")
    raise unknown_name("method", name, METHODS)


def get(name: str, **options: Any) -> Method:
    """A method with its options, by its name or as `package.module:Class`.

    >>> get("sl", form="paper")
    SL(form='paper', loss='ovr_square', normalisation='sum')
    """
    found = find(name)
    known = getattr(found, "__dataclass_fields__", {})
    for option, value in options.items():
        if option in known:
            _check_kind(f"{option} of {name}", known[option].type, value)
    try:
        return found(**options)
    except TypeError as error:
        if unknown := [option for option in options if option not in known]:
            raise unknown_name(f"option of {name}", unknown[0], known) from error
        raise InputError(f"method {name!r} cannot take these options: {error}") from error


def _check_kind(what: str, kind: object, value: object) -> None:
    """Refuse a text where an option is a number or a truth value."""
    if kind is bool:
        truth(what, value)
    if kind in (int, float) and (isinstance(value, bool | np.bool_) or not isinstance(value, Real)):
        raise InputError(f"{what}: expected a number, got {value!r}")

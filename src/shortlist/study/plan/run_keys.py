"""One name for one result: a run's key is a hash of everything that decides it."""

import dataclasses
import hashlib
import inspect
import json
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from shortlist import methods
from shortlist.errors import InputError
from shortlist.study.plan.variants import FIRST_OPTIONS, MethodVariant, default_options
from shortlist.training import RunConfig

RESULTS_VERSION = 1
"""Raised when a change of the code changes results: then everything is run again."""
_ALWAYS = (
    "method", "method_options", "protocol", "size", "classes", "model", "model_options", "epochs", "batch_size",
    "optimiser", "lr", "weight_decay", "momentum", "schedule", "augment", "holdout", "seed",
)  # fmt: skip
"""Settings that are always part of the key; one that is added to `RunConfig` later is so only off its default, and the
keys of earlier runs stay what they were."""


def canonical(config: RunConfig, num_classes: int) -> RunConfig:
    """The configuration that stands for all that give the same result.

    It leaves out options that have their defaults, but states those whose defaults have changed.
    """
    variant = MethodVariant(config.method, config.protocol).run_as()
    classes = config.classes
    if classes is not None and classes == tuple(range(num_classes)):
        classes = None
    usual, changed = default_options(variant.name), FIRST_OPTIONS.get(variant.name, {})
    given = config.method_options if variant.name == config.method else {}
    options = {**{name: usual[name] for name in changed}, **given}
    return dataclasses.replace(
        config,
        method=variant.name,
        protocol=variant.protocol,
        method_options={n: options[n] for n in sorted(options) if n in changed or options[n] != usual.get(n)},
        classes=classes,
    )


def key_of(dataset: str, config: RunConfig) -> str:
    """The key of a canonical configuration on a dataset of the study."""
    decided = _deciding(config.to_dict())
    return digest({"version": RESULTS_VERSION, "dataset": dataset, **decided, **own_code(config.method)})


@cache  # what this process imported, even if the file is edited while it runs
def own_code(method: str) -> dict[str, str]:
    """For a method of one's own, what its file says, and those of the classes it is derived from: after a change of the
    formula the runs before it are other runs.

    For a method of the package `RESULTS_VERSION` stands for the code, and this is empty.
    """
    if ":" not in method:
        return {}
    first, *others = dict.fromkeys(kind.__module__ for kind in methods.find(method).__mro__)
    own = [name for name in others if name.partition(".")[0] not in {"shortlist", *sys.stdlib_module_names}]
    try:
        source, *bases = (inspect.getsource(sys.modules[name]) for name in (first, *own))
        return {"code": digest({"source": source, **({"bases": bases} if bases else {})})}
    except (OSError, TypeError) as error:  # typed in at a prompt
        raise InputError(f"method {method!r}: save it in a file, else a changed formula is not seen") from error


def settings_key(row: Mapping[str, Any]) -> str:
    """What the trials of a cell share: everything but the seed."""
    shared = {name: value for name, value in _deciding(row["config"]).items() if name != "seed"}
    return digest({"dataset": row["dataset"], "code": row.get("code"), **shared})


def _deciding(values: Mapping[str, Any]) -> dict[str, Any]:
    defaults, first = RunConfig().to_dict(), FIRST_OPTIONS.get(values["method"], {})
    options = {n: value for n, value in values["method_options"].items() if n not in first or value != first[n]}
    values = {**values, "method_options": options}
    return {name: value for name, value in values.items() if name in _ALWAYS or value != defaults.get(name)}


def digest(values: Mapping[str, Any]) -> str:
    """16 hex digits of a mapping, whatever its order."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

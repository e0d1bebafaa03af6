"""A trained classifier as one file in a folder: safetensors, with everything else as JSON in its header.

It is a single file so that weights and settings can never belong to different classifiers. A checksum finds damage.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from shortlist import models
from shortlist.classifier.classes import Classes, stated_classes
from shortlist.errors import InputError
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint
from shortlist.internal.files import make_folder
from shortlist.internal.reasons import reason
from shortlist.training import Normalise

FILE = "classifier.safetensors"
KIND = "ShortlistClassifier"
OWN_MODEL = "own"
"""Stands in the file for a model that is not one of ours: code is neither saved nor run from a file."""

T = TypeVar("T")


def save(classifier: Any, folder: str | os.PathLike[str]) -> None:
    """Write a fitted classifier into `folder`, which is made if it is not there."""
    directory = Path(folder)
    make_folder(directory)
    tensors = {f"network.{name}": tensor for name, tensor in classifier.network_.state_dict().items()}
    tensors |= {f"optimiser.{name}": tensor for name, tensor in classifier._optimiser.items()}
    content = {
        "kind": KIND,
        "params": _params(classifier),
        "classes": _plain_classes(classifier.classes_),
        "in_shape": list(classifier.in_shape_),
        "feature_names": getattr(classifier, "feature_names_in_", np.array([])).tolist(),
        "smoothing": classifier.smoothing_,
        "temperature": classifier.temperature_,
        "history": classifier.history_,
        "seed": classifier._seed,
        "items": classifier._items,
    }
    try:
        write_checkpoint(directory / FILE, tensors, content | {"sha256": _checksum(tensors, content)})
    except OSError as error:
        raise InputError(f"{directory / FILE}: cannot be written: {reason(error)}") from error


def load(cls: type[T], folder: str | os.PathLike[str], model: Any) -> T:
    """What `save` wrote, as a `cls`."""
    path = Path(folder) / FILE
    if not path.is_file():
        raise InputError(f"{folder}: no saved classifier here, expected a file {FILE}")
    tensors, content = read_checkpoint(path)
    stated = content.pop("sha256", None)
    if content.get("kind") != KIND or stated != _checksum(tensors, content):
        raise InputError(f"{path}: damaged, or not a saved classifier: its content does not match its checksum")
    try:
        return _restore(cls, tensors, content, model)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path}: damaged, or not a saved classifier: {reason(error)}") from error


def _restore(cls: type[T], tensors: Mapping[str, Tensor], content: Mapping[str, Any], model: Any) -> T:
    params = dict(content["params"])
    if params["model"] == OWN_MODEL:
        if model is None:
            raise InputError("trained with a model of your own, which is not saved: give it again as model=")
        params["model"] = model
    _refuse_code(params, model)
    classifier: Any = cls(**params)
    classifier._remember(new=True)
    classifier.classes_ = stated_classes(content["classes"])
    classifier.in_shape_ = tuple(content["in_shape"])
    classifier.n_features_in_ = int(np.prod(classifier.in_shape_))
    if content["feature_names"]:
        classifier.feature_names_in_ = np.array(content["feature_names"], dtype=object)
    classifier.smoothing_ = float(content["smoothing"])
    classifier.temperature_ = float(content.get("temperature", 1.0))
    classifier.history_ = list(content["history"])
    classifier._seed, classifier._items = int(content["seed"]), int(content["items"])
    classifier._optimiser = _part(tensors, "optimiser.")
    classifier.network_ = _network(classifier, _part(tensors, "network."))
    loaded: T = classifier
    return loaded


def _refuse_code(params: Mapping[str, Any], model: Any) -> None:
    """Refuse to import what only the file names: it could lie beside the file."""
    if model is None and params["model"] not in models.names():
        raise InputError(f"names the model {params['model']!r}, which is not one of ours: give yours as model=")
    module, own, _ = params["method"].partition(":")
    if own and module not in sys.modules:
        raise InputError(f"trained by your own method {params['method']!r}, which is not saved: import {module} first")


def _network(classifier: Any, state: dict[str, Tensor]) -> nn.Module:
    network = nn.Sequential(Normalise.saved(state, classifier.in_shape_), classifier._fresh_network())
    network.load_state_dict(state)
    return network.eval()


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _params(classifier: Any) -> dict[str, Any]:
    params: dict[str, Any] = {**classifier.get_params(deep=False), **classifier._trained}
    if params["model"] not in models.names():
        params["model"] = OWN_MODEL
    if params["classes"] is not None:
        params["classes"] = _plain_classes(stated_classes(params["classes"]))
    if not isinstance(params["random_state"], int | None):
        params["random_state"] = classifier._seed
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy, mappings and sequences in the types that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _plain_classes(classes: Classes) -> list[Any]:
    listed: list[Any] = classes.tolist()
    return listed


def _checksum(tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()

"""The folder of a trained model: all that is needed to use it and to know what it is.

    weights.safetensors   the network, its input normalisation included
    config.json           settings, class names, input shape, data, labels
    features.json         how texts become features (texts only)
    history.json          scores by epoch
    scores.json           accuracy by class, calibration, which class was taken for which (if they could be measured)
    card.md, confusion.svg
    checkpoint.safetensors  only while the run is not finished

Everything is first written to a folder inside it and then renamed, the weights last: a folder with weights is whole.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from shortlist import methods, models
from shortlist.data import Features, as_inputs, load_features
from shortlist.errors import InputError
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint
from shortlist.internal.files import atomic_write, sync_directory
from shortlist.internal.plugins import import_from_outside, inside
from shortlist.internal.version import __version__
from shortlist.methods import Method
from shortlist.training.config import RunConfig, resolve_device
from shortlist.training.evaluation import logits_of
from shortlist.training.history import EpochScores, saved_epoch
from shortlist.training.inputs import Normalise
from shortlist.training.optim import FlatParameters
from shortlist.training.saved.card import card_text
from shortlist.training.saved.confusion import confusion_svg
from shortlist.training.saved.measures import Measures

FORMAT = "shortlist-model-1"
WEIGHTS, CONFIG, FEATURES = "weights.safetensors", "config.json", "features.json"
HISTORY, SCORES, CARD, CONFUSION = "history.json", "scores.json", "card.md", "confusion.svg"
CHECKPOINT = "checkpoint.safetensors"
WRITABLE = ".writable"
"""Written and removed again, to see whether the folder can be written to."""
_OURS = "|".join(map(re.escape, (CHECKPOINT, WRITABLE)))
_BEGUN = re.compile(rf"\.({_OURS})\.[0-9a-f]{{16}}\.tmp|\.new-[0-9a-f]{{12}}|{re.escape(WRITABLE)}")
"""Temporary files of `atomic_path`, and the folders of `_staged`."""
_INNER = re.compile(r"\.tmp\w{6}")
"""What safetensors in turn writes first, beside such a file."""


@dataclass
class Trained:
    """A trained model with all that is needed to use it.

    Attributes:
        model: turns raw inputs into logits (its first layer normalises).
        config: the settings of the run.
        class_names: K names.
        in_shape: (C, H, W) or (D,), of one input after the feature transform.
        kind: `image`, `text` or `features`: what `predict` takes.
        smoothing: the label smoothing in the method's probabilities, which `predict` undoes.
        features: the transform of texts.
        data: where the data came from.
        labels: facts about the labels: origin, None share, reads.
        history: scores by epoch.
        device: where `predict` computes.
        temperature: what `predict` divides logits by (`Prepared.calibrate`).
        code: checksums of the files of a method and a model of one's own (`fingerprint`).
    """

    model: nn.Module
    config: RunConfig
    class_names: tuple[str, ...]
    in_shape: tuple[int, ...]
    kind: str
    smoothing: float = 0.0
    features: Features | None = None
    data: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, Any] = field(default_factory=dict)
    history: list[EpochScores] = field(default_factory=list)
    device: str = "cpu"
    temperature: float = 1.0
    code: dict[str, str] = field(default_factory=dict)

    @property
    def method(self) -> Method:
        """The method that it was trained by."""
        return methods.get(self.config.method, **self.config.method_options)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.class_names)

    @property
    def saved_epoch(self) -> EpochScores:
        """The epoch whose weights these are."""
        return saved_epoch(self.history, self.config.keep)

    def logits(self, inputs: Any) -> Tensor:
        """(N, K) logits of raw inputs."""
        return logits_of(self.model, self._checked(inputs), self.device)

    def predict(self, inputs: Any) -> NDArray[np.float64]:
        """(N, K) class probabilities of raw inputs.

        Args:
            inputs: texts where it was trained on texts; uint8 images (N, C, H, W); features (N, D) or CSR.
        """
        inputs = as_inputs(inputs)
        if not (len(inputs) if isinstance(inputs, list) else inputs.shape[0]):
            return np.zeros((0, self.num_classes))
        p: NDArray[np.float64]
        logits = self.logits(inputs) / self.temperature
        p = self.method.class_probabilities(logits, self.smoothing).double().cpu().numpy()
        p /= p.sum(1, keepdims=True)  # rows that sum to 1 as doubles too
        return p

    def _checked(self, inputs: Any) -> Any:
        inputs = as_inputs(inputs)
        if self.features is not None and isinstance(inputs, list):
            return self.features.transform(inputs)
        if isinstance(inputs, list):
            raise InputError(f"expected {self.kind} inputs of shape {self.in_shape}, got texts")
        shape = tuple(inputs.shape[1:])
        if shape != self.in_shape:
            raise InputError(f"expected inputs of shape {self.in_shape}, got {shape}")
        return inputs

    def to_dict(self) -> dict[str, Any]:
        """The content of config.json; nothing in it depends on the time or the machine."""
        return {
            "format": FORMAT,
            "shortlist": __version__,
            "run": self.config.to_dict(),
            "class_names": list(self.class_names),
            "in_shape": list(self.in_shape),
            "kind": self.kind,
            "smoothing": self.smoothing,
            "temperature": self.temperature,
            "data": self.data,
            "labels": self.labels,
            **({"code": self.code} if self.code else {}),
        }


def save_folder(folder: Path, trained: Trained, measures: Measures | None = None, measured_on: str = "") -> None:
    """Write the whole folder; if something fails on the way, what was there before stays.

    Args:
        folder: made if it is missing; other files in it are left alone.
        trained: the model.
        measures: scores for the card.
        measured_on: what they were measured on, in words.
    """
    with _staged(folder) as stage:
        _write_json(stage / CONFIG, trained.to_dict())
        _write_json(stage / HISTORY, [asdict(row) for row in trained.history])
        if trained.features is not None:
            trained.features.save(stage / FEATURES)
        if measures is not None:
            scores = {"measured_on": measured_on, **measures.to_dict(), "taken_for": measures.taken_for()}
            _write_json(stage / SCORES, scores)
            atomic_write(stage / CONFUSION, confusion_svg(measures.confusion, trained.class_names))
        atomic_write(stage / CARD, card_text(trained.to_dict(), trained.history, measures, measured_on))
        weights = {name: tensor.detach().cpu() for name, tensor in trained.model.state_dict().items()}
        write_checkpoint(stage / WEIGHTS, weights, {})


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """A hidden folder inside `folder`, whose files move to their places when all are written, the weights last."""
    folder.mkdir(parents=True, exist_ok=True)
    stage = folder / f".new-{secrets.token_hex(6)}"
    stage.mkdir()
    try:
        yield stage
        for name in (WEIGHTS, CONFIG, FEATURES, HISTORY, SCORES, CARD, CONFUSION):
            with suppress(FileNotFoundError):
                (folder / name).unlink()  # the weights first: without them the rest is not taken for a model
        for path in sorted(stage.iterdir(), key=lambda path: path.name == WEIGHTS):
            path.rename(folder / path.name)
        sync_directory(folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process had begun to write here."""
    here = list(folder.iterdir())
    begun = [path for path in here if _BEGUN.fullmatch(path.name)]
    inner = [path for path in here if _INNER.fullmatch(path.name) and path.is_file()] if begun else []
    for path in (*inner, *begun):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _write_json(path: Path, content: Any) -> None:
    atomic_write(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be kept in JSON")


def load_folder(folder: str | os.PathLike[str], device: str = "auto") -> Trained:
    """Read what `save_folder` wrote.

    A method or model of your own is imported, but not from the folder itself: somebody else may have made it.

    Raises:
        InputError: the folder holds no finished model, or a damaged one.
    """
    path = Path(folder)
    if not (path / WEIGHTS).is_file():
        raise InputError(_no_model(path))
    content = read_config(path)
    tensors, _ = read_checkpoint(path / WEIGHTS)
    try:
        config = RunConfig.from_dict(content["run"])
        class_names, in_shape = tuple(content["class_names"]), tuple(content["in_shape"])
        features = load_features(path / FEATURES) if (path / FEATURES).exists() else None
        if content["kind"] == "text" and features is None:
            raise InputError(f"{path}: {FEATURES} is missing, so texts cannot be read")
        _import_own(path, config)
        _refuse_encoder(path, getattr(features, "model_name", None), content["data"].get("source", {}).get("features"))
        where = resolve_device(device)
        return Trained(
            model=_network(config, in_shape, len(class_names), tensors, path).to(where),
            config=config,
            class_names=class_names,
            in_shape=in_shape,
            kind=content["kind"],
            smoothing=float(content["smoothing"]),
            temperature=float(content.get("temperature", 1.0)),  # of folders written before it was fitted
            features=features,
            data=content["data"],
            labels=content["labels"],
            history=[EpochScores(**row) for row in _read_json(path / HISTORY)],
            device=where,
            code=content.get("code", {}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path / CONFIG}: damaged or of another version: {error!r}") from error


def _import_own(folder: Path, config: RunConfig) -> None:
    """Import a method and a model of one's own; but no code that the folder brings along, which may be anybody's."""
    for kind, name in (("method", config.method), ("model", config.model)):
        if ":" in name:
            import_from_outside(folder, kind, name)


def _refuse_encoder(folder: Path, *names: str | None) -> None:
    """Refuse a sentence encoder that the folder brings along, as encoders may bring code."""
    for name in names:
        if name is not None and Path(name).is_dir() and inside(name, folder):
            raise InputError(f"{folder}: the sentence encoder {name!r} lies in it: keep yours elsewhere")


def read_config(folder: Path) -> dict[str, Any]:
    """The content of config.json."""
    content = _read_json(folder / CONFIG)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{folder / CONFIG}: not the config of a trained model, expected format {FORMAT!r}")
    if lacking := sorted({"run", "labels", "data"} - content.keys()):
        raise InputError(f"{folder / CONFIG}: damaged or of another version: without {', '.join(lacking)}")
    return content


def _no_model(path: Path) -> str:
    if not path.exists():
        return f"no such folder: {path}"
    if (path / CHECKPOINT).exists():
        return f"{path}: the run is not finished: go on with `shortlist train ... --out {path} --resume`"
    return f"{path}: not a trained model ({WEIGHTS} is missing)"


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}") from error


def _network(
    config: RunConfig, in_shape: Sequence[int], num_classes: int, tensors: dict[str, Tensor], path: Path
) -> nn.Module:
    network = models.build(config.model, tuple(in_shape), num_classes, seed=0, **config.model_options)
    try:
        model = nn.Sequential(Normalise.saved(tensors, in_shape), network)
        model.load_state_dict(tensors)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path / WEIGHTS}: not the weights of {config.model!r} as it is now: {reason}") from error
    FlatParameters(model)  # lays the weights out as in training, so that the results are the same to the last bit
    return model.eval()

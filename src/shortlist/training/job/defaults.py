"""Settings that work, by kind of data; what the user states takes precedence.

Chosen on held-out answered items (benchmarks/real_data.py shows what they reach on the test sets).
"""

from collections.abc import Collection
from typing import Any

from shortlist.data import Dataset
from shortlist.training.solver.solver import SOLVED

TEXT = {"model": "linear", "optimiser": "adam", "lr": 0.03, "weight_decay": 1e-5, "batch_size": 256, "epochs": 15}
SOLVER = {"optimiser": "lbfgs", "epochs": 40}
"""Used for linear models of texts instead, if the method and what the user stated allow it."""
KNOWN_STEPS = 20
"""Epochs of the solver if every item has its class: it converges sooner."""
PENALTY = 0.03
"""The solver's weight decay, in units of one item's loss."""
UNSOLVED = frozenset(
    {"model", "optimiser", "lr", "momentum", "batch_size", "schedule", "epochs", "augment", "strong", "mix", "ema"}
)
"""If the user states one of these, the model is trained by steps, not by the solver."""
FEATURES = {"model": "mlp", "optimiser": "adam", "lr": 0.003, "weight_decay": 1e-5, "batch_size": 128, "epochs": 50}
CHARACTERS = {"model": "lenet", "optimiser": "adam", "lr": 0.002, "weight_decay": 1e-5, "batch_size": 128, "epochs": 10}
PHOTOGRAPHS = {
    "model": "resnet32",
    "optimiser": "sgd",
    "lr": 0.05,
    "weight_decay": 5e-4,
    "batch_size": 128,
    "epochs": 100,
    "augment": True,
}
SMALL_SIDE, LARGE_SIDE = 16, 32
"""Images smaller than the first are treated as features. Grey ones up to the second go through LeNet, whose first fully
connected layer grows with the image; all others go through ResNet-32, which averages over the image."""
HOLDOUT, FEWEST = 0.1, 100
"""The share held out if there is no test set to score on, and the fewest labels for which it is."""


def defaults_for(
    dataset: Dataset, labels: int, stated: Collection[str] = (), method: str = "", *, known: bool = False
) -> dict[str, Any]:
    """Settings of `RunConfig` for this data and that many labels.

    Args:
        dataset: texts may be texts still, or features already; a test split must have classes.
        labels: how many items have a label.
        stated: the names of the settings that the user stated; most of them rule out the solver of linear models.
        method: the method's name; the solver takes only some methods.
        known: no label is None.
    """
    settings = dict(_by_kind(dataset))
    if settings["model"] == "linear" and method in SOLVED and not UNSOLVED & set(stated):
        settings |= {**SOLVER, "weight_decay": PENALTY / max(labels, 1)}
        settings["epochs"] = KNOWN_STEPS if known else settings["epochs"]
    settings["holdout"] = 0.0 if dataset.test is not None or labels < FEWEST else HOLDOUT
    # several steps per epoch, as small data in one large batch is hardly learned from; but batch norm needs 2 items
    settings["batch_size"] = min(int(settings["batch_size"]), max(2, labels // 8))
    return settings


def _by_kind(dataset: Dataset) -> dict[str, Any]:
    if dataset.kind == "text" or hasattr(dataset.train.x, "tocsr"):
        return TEXT
    if dataset.kind == "features":
        return FEATURES
    channels, height, width = dataset.in_shape
    if min(height, width) < SMALL_SIDE:
        return FEATURES
    if channels == 1 and max(height, width) <= LARGE_SIDE:
        return CHARACTERS
    return PHOTOGRAPHS

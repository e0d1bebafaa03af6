"""Honest model selection: settings are chosen by the answers of held-out training items, never by test data.

There are two scores. `accuracy` is that on the answered held-out items: their answers are true labels, and under
uniform, mistake-free shortlists they are a fair sample of all items. `log_likelihood` is the mean log probability of
all held-out answers, None included: it uses every item and is valid for any shortlist chosen without looking at the
true class.

Under a policy (shortlists that depend on a model) answered items are not a fair sample: those whose class is easy to
guess are answered more often. Then give `weight`, 1 / the probability that the item's class was shown, or score by the
likelihood.
"""

import itertools
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from shortlist.data import Dataset
from shortlist.errors import InputError, unknown_name
from shortlist.labels import StochasticLabels
from shortlist.training import loop
from shortlist.training.answers import draw_labels
from shortlist.training.config import Engine, RunConfig
from shortlist.training.evaluation import Scores, score_answers
from shortlist.training.inputs import Inputs
from shortlist.training.prepared import Prepared, prepare
from shortlist.training.task import hold_out

Score = Literal["accuracy", "log_likelihood"]
HOLDOUT = 0.1
"""The share held out if the configuration has none."""
GRID: dict[str, tuple[Any, ...]] = {"lr": (0.01, 0.03, 0.1, 0.3), "weight_decay": (0.0, 1e-4, 1e-3)}
"""The values tried for a setting named without any. These learning rates suit SGD; Adam needs smaller ones."""
ALIASES = {"wd": "weight_decay"}
FIXED = ("seed", "size", "classes", "holdout")
"""Settings that decide the labels or the held-out items: points that differ in them cannot be compared."""
UNUSED: dict[str, tuple[str, ...]] = {"lbfgs": ("lr", "momentum", "batch_size", "schedule"), "adam": ("momentum",)}
"""Settings that an optimiser does not use: the run is the same whatever they are."""


@dataclass(frozen=True)
class TuneRow:
    """One point of the grid and how it did on the held-out items, after the last epoch."""

    settings: dict[str, Any]
    accuracy: float
    log_likelihood: float
    seconds: float
    problem: str | None = None
    """Why the training of this point failed; such points rank last."""


@dataclass(frozen=True)
class TuneResult:
    """All points and the best one."""

    rows: tuple[TuneRow, ...]
    """In the order of the grid."""
    best: RunConfig
    """The configuration with the best settings and its own holdout, ready to be trained on all items."""
    best_row: TuneRow
    score: Score
    held_items: int
    """How many items were scored; `accuracy` is that on the answered ones."""
    held_answered: int


def grid_of(names: str | Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """The usual values for settings named as on the command line.

    >>> grid_of("lr,wd")
    {'lr': (0.01, 0.03, 0.1, 0.3), 'weight_decay': (0.0, 0.0001, 0.001)}
    """
    listed = names.split(",") if isinstance(names, str) else list(names)
    chosen = [ALIASES.get(name.strip(), name.strip()) for name in listed]
    for name in chosen:
        if name not in GRID:
            raise unknown_name("setting to tune", name, [*GRID, *ALIASES])
    return {name: GRID[name] for name in chosen}


def tune(
    dataset: Dataset,
    config: RunConfig,
    grid: Mapping[str, Sequence[Any]],
    *,
    labels: StochasticLabels | None = None,
    rows: NDArray[np.int64] | None = None,
    weight: ArrayLike | None = None,
    train_weight: ArrayLike | None = None,
    score: Score = "accuracy",
    engine: Engine | None = None,
    on_point: Callable[[TuneRow], None] | None = None,
) -> TuneResult:
    """Train every point of a grid without some items and pick the point that does best on them.

    Every point has the same labels and the same held-out items, drawn by `config.seed`. The test split is not used.
    Ties go to the point with the better other score, then to the one that comes first in the grid, whose last setting
    varies fastest.

    Args:
        dataset: the data, texts already turned into features.
        config: all other settings; its `holdout` is the share held out (0.1 if it is 0).
        grid: setting -> values, such as `{"lr": [0.01, 0.1], "weight_decay": [0, 1e-4]}`.
        labels: collected answers; by default drawn, `config.size` classes at a time.
        rows: which row of the data each label belongs to; by default all rows in order.
        weight: how much each label counts in the scores: under a policy 1 / the probability that the item's class was
            shown.
        train_weight: how much each label counts in training.
        score: which score decides.
        engine: how to compute.
        on_point: called after each point.

    Raises:
        InputError: the grid is wrong, nothing can be held out, or every point failed.
        Interrupted: on Ctrl-C, at the end of the epoch.
    """
    if score not in get_args(Score):
        raise unknown_name("score", score, get_args(Score))
    points = _points(config, grid)
    if config.classes is not None and labels is None:
        dataset, config = dataset.only_classes(config.classes), replace(config, classes=None)
    labels = draw_labels(dataset, config.size, config.seed) if labels is None else labels
    share = config.holdout or HOLDOUT
    held = _held(labels, share, config.seed, score)
    weight_of = _held_weight(weight, len(labels), held)
    data = replace(dataset, test=None)
    inputs: Inputs | None = None
    results = []
    for settings, config_of_point in points:
        point = replace(config_of_point, classes=config.classes, holdout=share)
        prepared = prepare(data, point, labels=labels, rows=rows, weight=train_weight, engine=engine, inputs=inputs)
        inputs = prepared.run.inputs  # copied to the device once for all points
        results.append(_train(prepared, settings, weight_of))
        if on_point:
            on_point(results[-1])
    best = _best(results, score)
    answered = int(labels.answered[held].sum())
    return TuneResult(tuple(results), points[best][1], results[best], score, len(held), answered)


def _points(config: RunConfig, grid: Mapping[str, Sequence[Any]]) -> list[tuple[dict[str, Any], RunConfig]]:
    """Every combination, each checked before the first is trained."""
    if not grid:
        raise InputError("the grid is empty, expected settings with values to try")
    known = {field.name for field in fields(RunConfig)} - set(FIXED)
    values: dict[str, list[Any]] = {}
    for given, tried in grid.items():
        name = ALIASES.get(given, given)
        if name in values:
            raise InputError(f"the grid names {name} twice, as itself and by its short name")
        if name in FIXED:
            raise InputError(f"{name} cannot be tuned: it decides the labels or the held-out items")
        if name not in known:
            raise unknown_name("setting", name, known)
        if isinstance(tried, str) or not isinstance(tried, Iterable):
            raise InputError(f"the grid needs a list of values for {name}, got {tried!r}")
        values[name] = list(tried)
        if not values[name]:
            raise InputError(f"the grid has no values for {name}")
    combinations = [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]
    points = [(settings, replace(config, **settings)) for settings in combinations]
    optimisers = {point.optimiser for _, point in points}
    for name in values:
        if all(name in UNUSED.get(optimiser, ()) for optimiser in optimisers):
            raise InputError(f"{name} cannot be tuned: optimiser {' and '.join(sorted(optimisers))} has no use for it")
    return points


def _held(labels: StochasticLabels, share: float, seed: int, score: Score) -> NDArray[np.int64]:
    """The held-out rows of the labels: those that `prepare` holds out."""
    _, held = hold_out(labels, share, seed)
    if not len(held):
        raise InputError(f"holdout: a share of {share} of {len(labels)} items is none, expected a larger one")
    if score == "accuracy" and not labels.answered[held].any():
        raise InputError("no answered item among those held out: hold out more, or score the log likelihood")
    return held


def _held_weight(weight: ArrayLike | None, count: int, held: NDArray[np.int64]) -> torch.Tensor | None:
    if weight is None:
        return None
    array = np.asarray(weight, np.float64)
    if array.shape != (count,) or not (np.isfinite(array) & (array >= 0)).all():
        raise InputError(f"weight: expected {count} numbers of at least 0, one per label")
    return torch.from_numpy(array[held])


def _train(prepared: Prepared, settings: dict[str, Any], weight: torch.Tensor | None) -> TuneRow:
    run, held, stopped = prepared.run, prepared.held, threading.Event()
    try:
        # early epochs need no score: the one that counts is made below, with the weights
        history = loop.fit(prepared, on_stop=stopped.set, score_every=run.config.epochs + 1)
    except InputError as error:  # it diverged, say
        return TuneRow(settings, math.nan, math.nan, math.nan, str(error))
    if stopped.is_set():  # after Ctrl-C in the last epoch this point is finished, but the next must not begin
        raise loop.Interrupted(run.config.epochs)
    assert held is not None  # `_held` saw to it
    scores: Scores = score_answers(prepared.held_logits(), held, lambda z: loop.probabilities(prepared, z), weight)
    return TuneRow(settings, scores.accuracy, scores.log_likelihood, sum(row.seconds for row in history))


def _best(results: Sequence[TuneRow], score: Score) -> int:
    # max keeps the first of equals, as promised
    best = max(range(len(results)), key=lambda i: _rank(results[i], score))
    if results[best].problem is not None:
        raise InputError(f"every point of the grid failed, the first with: {results[0].problem}")
    return best


def _rank(row: TuneRow, score: Score) -> tuple[bool, float, float]:
    ordered = [row.accuracy, row.log_likelihood] if score == "accuracy" else [row.log_likelihood, row.accuracy]
    first, second = (-math.inf if math.isnan(value) else value for value in ordered)
    return row.problem is None, first, second

"""A method is tried on two items before the training, so that a mistake in it is a clear line, not a traceback."""

from dataclasses import replace
from numbers import Real
from typing import get_args

import torch
from torch import Tensor

from shortlist.errors import InputError, first_line, unknown_name
from shortlist.internal.own_code import place_in
from shortlist.methods import Feed, Method, Refresh
from shortlist.training.views import confidence_of, in_fleet, objective_of


def check_method(method: Method, feed: Feed, views: int = 1, runs: int | None = None) -> None:
    """Refuse a method whose objective is not one number that can be minimised, or whose confidences are no table.

    Args:
        method: with its options.
        feed: what it will be trained on.
        views: of each item.
        runs: how many step together in a fleet, where tensors have one more dimension in front; None for a single run.

    Raises:
        InputError: names the method and what it gave.
    """
    who = f"method {method.name!r}"
    if method.refresh not in get_args(Refresh):
        raise unknown_name(f"refresh of {who}", method.refresh, get_args(Refresh))
    decay = method.teacher
    if decay is not None and not (isinstance(decay, Real) and 0 <= decay < 1):
        raise InputError(f"{who}: its teacher is a decay, expected None or a number from 0 to below 1, got {decay!r}")
    lead = () if runs is None else (runs,)
    where = "" if runs is None else f" with a dimension of runs in front, as fleets on a GPU have it ({runs} here)"
    # on the CPU, where the feed lies, and without touching the caller's random numbers
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        batch = feed.batch(torch.arange(min(2, len(feed))))
        logits = torch.zeros(*lead, views * batch.answer.shape[0], batch.shown.shape[1], requires_grad=True)
        taught = None if decay is None else torch.zeros(batch.shown.shape)
        batch = replace(batch, teacher=taught, progress=torch.zeros(()))
        batch = batch if runs is None else in_fleet(batch, runs)
        try:
            risk = objective_of(method, logits, batch)
            confidence = None if method.refresh == "never" else confidence_of(method, logits.detach(), batch)
            believed = method.probabilities(logits.detach())
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{who} failed{where}: {first_line(error)}{place_in(error, type(method))}") from error
    if not isinstance(risk, Tensor) or risk.shape != lead:
        raise InputError(f"{who} must give one number for a batch{where}, its objective gave {_what(risk)}")
    if not risk.requires_grad:
        raise InputError(f"{who} has an objective that does not depend on the logits: nothing could be learned")
    if confidence is not None and (not isinstance(confidence, Tensor) or confidence.shape != batch.shown.shape):
        raise InputError(f"{who} must give confidences of shape {tuple(batch.shown.shape)}, got {_what(confidence)}")
    if not isinstance(believed, Tensor) or believed.shape != logits.shape:
        raise InputError(f"{who} must give probabilities of shape {tuple(logits.shape)}, got {_what(believed)}")
    total = believed.double().sum(-1).flatten()
    if not torch.allclose(total, torch.ones_like(total), atol=1e-3):
        raise InputError(f"{who} must give probabilities that sum to 1 for each item, got {total[0]:.4g}")


def _what(value: object) -> str:
    return f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__

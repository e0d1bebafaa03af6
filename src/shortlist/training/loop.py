"""The training loop of every method: epochs, scores, checkpoints, and a clean stop on Ctrl-C."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from shortlist.errors import InputError, first_line
from shortlist.internal.checkpoint import read_checkpoint, write_checkpoint
from shortlist.internal.reasons import reason
from shortlist.training.evaluation import accuracy, miscalibration, score_answers
from shortlist.training.history import EpochScores, check_score_every, saved_epoch, score_due
from shortlist.training.prepared import Prepared
from shortlist.training.saved.fingerprint import Fingerprint

KEPT = "kept."
"""The prefix of the names of the best epoch's weights in a checkpoint."""
CHECKPOINT_SECONDS = 1.0
"""The least time between checkpoints: epochs of milliseconds should not wait for the disk."""


class DivergedError(InputError):
    """The numbers are no longer finite; the same settings would always end so."""


class Interrupted(Exception):  # noqa: N818 (not an error: the run can be resumed)
    """Ctrl-C was pressed; the run is saved up to `epoch`."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"stopped after epoch {epoch}")
        self.epoch = epoch


def probabilities(prepared: Prepared, logits: Tensor) -> Tensor:
    """(N, K) class probabilities by the method's link, its label smoothing undone."""
    return prepared.method.class_probabilities(logits / prepared.temperature, prepared.smoothing)


def fit(
    prepared: Prepared,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    on_epoch: Callable[[EpochScores], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    score_every: int = 1,
) -> list[EpochScores]:
    """Train to the last epoch and return the scores; the model then has the weights that `RunConfig.keep` selects.

    Args:
        prepared: the run and what to score it on.
        checkpoint: the file that the run is saved to every so often.
        resume: continue from that checkpoint if it exists.
        on_epoch: called after every epoch.
        on_stop: called at the first Ctrl-C, while the epoch is still running.
        score_every: epochs between scores; the last ten, whose mean is reported, are always scored.

    Raises:
        Interrupted: on Ctrl-C, once the current epoch is finished and saved.
        DivergedError: the risk is no longer finite, or the final outputs are not numbers.
        InputError: the checkpoint belongs to another run, or cannot be written.
    """
    check_score_every(score_every)
    run, epochs = prepared.run, prepared.run.config.epochs
    path = None if checkpoint is None else Path(checkpoint)
    history, kept = _resume(prepared, path) if resume and path and path.exists() else ([], {})
    best = run.config.keep == "best"
    saved, apart = time.monotonic(), CHECKPOINT_SECONDS * run.checkpoint_rarity
    with _stop_on_interrupt(on_stop) as pressed:
        while run.epoch < epochs:
            scores = _one_epoch(prepared, score_every)
            if broken := _broken(prepared, scores.risk):
                if run.group.any(pressed()):
                    raise Interrupted(run.epoch)  # not Diverged, after which the study would go on to the next run
                raise DivergedError(f"{broken} after epoch {run.epoch}: try a smaller lr")
            history.append(scores)
            if best and saved_epoch(history, "best") is scores:
                kept = {name: tensor.detach().clone() for name, tensor in run.model.state_dict().items()}
            if on_epoch:
                on_epoch(scores)
            stop, last = run.group.any(pressed()), run.epoch == epochs
            if path and (stop or last or time.monotonic() - saved > apart):
                _save(prepared, path, history, kept)
                saved = time.monotonic()
            if stop and not last:
                raise Interrupted(run.epoch)
    if best:
        run.model.load_state_dict(kept)
    return history


def _one_epoch(prepared: Prepared, score_every: int) -> EpochScores:
    """Train an epoch, and score the model if that is due."""
    run, began = prepared.run, time.perf_counter()
    config = run.config
    risk = run.train_epoch()
    due = config.keep == "best" or score_due(run.epoch, config.epochs, score_every)
    scores = _scores(prepared) if due else {}
    # risk.item() waits for the device
    return EpochScores(run.epoch, risk=risk.item(), seconds=time.perf_counter() - began, **scores)


def _scores(prepared: Prepared) -> dict[str, float | None]:
    """The current model's scores on the held-out items and the test items, as far as there are any."""
    scores: dict[str, float | None] = {}
    if prepared.held is not None:
        link = partial(probabilities, prepared)
        scores |= score_answers(prepared.held_logits(), prepared.held, link, uniform=prepared.uniform).validation
    if (logits := prepared.test_logits()) is not None and prepared.test_y is not None:
        scores["test_accuracy"] = accuracy(logits, prepared.test_y).item()
    return scores


def _broken(prepared: Prepared, risk: float) -> str | None:
    """What is not finite, if anything. The risk is from before each step: it does not show where the last one led."""
    if not np.isfinite(risk):
        return f"the risk is {risk}"
    ended = prepared.run.epoch == prepared.run.config.epochs
    return "the outputs are no numbers" if ended and not prepared.gives_numbers() else None


def calibration_on_test(prepared: Prepared) -> float | None:
    """The calibration error of the current model on the test items; None if there are none."""
    logits = prepared.test_logits()
    if logits is None or prepared.test_y is None:
        return None
    return miscalibration(probabilities(prepared, logits), prepared.test_y).item()


def _save(prepared: Prepared, path: Path, history: list[EpochScores], kept: dict[str, Tensor]) -> None:
    if prepared.run.group.rank != 0:
        return
    content = {
        "config": prepared.run.config.to_dict(),
        "fingerprint": prepared.fingerprint.labels,
        "inputs": prepared.fingerprint.inputs,
        "code": dict(prepared.fingerprint.code),
        "epoch": prepared.run.epoch,
        "history": [asdict(row) for row in history],
    }
    best = {KEPT + name: tensor.cpu() for name, tensor in kept.items()}
    try:
        write_checkpoint(path, {**prepared.run.state_dict(), **best}, content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {reason(error)}") from error


def _resume(prepared: Prepared, path: Path) -> tuple[list[EpochScores], dict[str, Tensor]]:
    """Load a checkpoint; return the history so far, and the weights of its best epoch if they are kept."""
    tensors, content = read_checkpoint(path)
    saved = Fingerprint(content.get("fingerprint"), content.get("inputs"), content.get("code", {}))
    try:
        check_same_run(prepared, path, content["config"], saved)
        history = [EpochScores(**row) for row in content["history"]]
        prepared.run.load_state_dict(tensors, content["epoch"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged, or not the checkpoint of a run: {first_line(error)}") from error
    kept = {name.removeprefix(KEPT): tensor for name, tensor in tensors.items() if name.startswith(KEPT)}
    return history, kept


def check_same_run(prepared: Prepared, path: Path, config: dict[str, Any], saved: Fingerprint) -> None:
    """Refuse to resume what `path` holds if its settings, labels, inputs or code are those of another run."""
    if difference := prepared.run.config.difference(config) or prepared.fingerprint.difference(saved):
        raise InputError(f"{path}: {difference}")


@contextmanager
def _stop_on_interrupt(on_stop: Callable[[], None] | None) -> Iterator[Callable[[], bool]]:
    """Yields whether Ctrl-C was pressed: once asks to stop at the end of the epoch, twice stops at once."""
    pressed = False

    def press(signum: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        if on_stop:
            on_stop()

    try:
        before = signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread, where signals are handled
        yield lambda: False
        return
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)

"""A whole training as the command line does it: read, label, choose settings, train, measure, save."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.data import Dataset, Features
from shortlist.errors import InputError
from shortlist.internal.checkpoint import read_checkpoint
from shortlist.internal.files import atomic_write, make_folder
from shortlist.training.answers import Answers, check_classes, collected, simulated
from shortlist.training.config import Engine, RunConfig, resolve_device
from shortlist.training.distributed import processes
from shortlist.training.history import EpochScores
from shortlist.training.job.defaults import FEWEST, HOLDOUT, defaults_for
from shortlist.training.loop import DivergedError, check_same_run, fit, probabilities
from shortlist.training.prepared import Prepared, prepare
from shortlist.training.saved.card import HELD_OUT, TEST_SET
from shortlist.training.saved.fingerprint import Fingerprint
from shortlist.training.saved.folder import (
    CHECKPOINT,
    WEIGHTS,
    WRITABLE,
    Trained,
    load_folder,
    read_config,
    remove_leftovers,
    save_folder,
)
from shortlist.training.saved.measures import Measures, measure
from shortlist.training.saved.source import DataSource, with_features
from shortlist.training.selection import UNUSED, TuneRow, grid_of, tune
from shortlist.training.task import with_known_test

_LOG = logging.getLogger(__name__)
MANY = 20
"""From so many classes on a warning is given for sl: on 150 it reached 24.9 %, the likelihood 66.7 %."""


def _nothing(_: Any) -> None:
    """The listener that does nothing."""


@dataclass(frozen=True)
class Job:
    """What to train on what, and where to save it."""

    source: DataSource
    out: Path
    settings: dict[str, Any] = field(default_factory=dict)
    """The settings of `RunConfig` that the user stated; `defaults_for` gives the others."""
    labels: Path | None = None
    miss: float = 0.0
    slip: float = 0.0
    tune: str | None = None
    """Names of settings to choose on held-out items, such as "lr,wd"."""
    device: str = "auto"
    resume: bool = False
    overwrite: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether `out` holds a run that was stopped."""
        return (self.out / CHECKPOINT).exists()


@dataclass(frozen=True)
class Listeners:
    """What is called as the training advances."""

    on_start: Callable[[Prepared], None] = _nothing
    on_epoch: Callable[[EpochScores], None] = _nothing
    on_point: Callable[[TuneRow], None] = _nothing
    on_stop: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Finished:
    """A finished training."""

    trained: Trained
    measures: Measures | None
    measured_on: str
    seconds: float
    again: bool = False
    """Whether it was finished before, so that nothing was done."""

    @property
    def why_unmeasured(self) -> str:
        """Why there are no scores, in words."""
        few = self.trained.labels.get("items", 0) < FEWEST
        return f"no test set, nothing held out{f' (it is from {FEWEST} labels on, or by --holdout)' if few else ''}"

    @property
    def on_held_out(self) -> bool:
        """Whether it was measured on held-out items, as there was no test set."""
        return self.measured_on == HELD_OUT


def train(job: Job, listeners: Listeners | None = None) -> Finished:
    """Train and save, or resume a run with the same settings that was stopped.

    Raises:
        InputError: the input is wrong; nothing is left behind in `job.out`.
        Interrupted: on Ctrl-C; the run is saved, and `resume` continues it.
    """
    listeners = listeners or Listeners()
    began = time.perf_counter()
    if job.labels is not None and job.settings.get("size") is not None:
        raise InputError("size simulates shortlists, labels gives collected answers: state one of them, not both")
    given, answers = _read(job)
    dataset, features = with_features(given, job.source.features)
    dataset = _tested(dataset)
    engine = Engine(device=resolve_device(job.device))
    with processes(engine.device) as group, _output(job, group.rank == 0):
        config = _configure(job, dataset, answers, engine, listeners)
        _warn(config, dataset, answers)
        prepared = prepare(
            dataset,
            config,
            labels=answers.labels,
            rows=answers.rows,
            engine=engine,
            group=group,
            given=dataset.train.x if features is None else given.train.x,  # the texts: features differ by machine
        )
        if job.resume and (done := _finished_before(job, prepared)):
            return done
        listeners.on_start(prepared)
        checkpoint = job.out / CHECKPOINT
        _discard_unfinished(job)
        history = fit(
            prepared,
            checkpoint=checkpoint,
            resume=job.resume,
            on_epoch=listeners.on_epoch,
            on_stop=listeners.on_stop,
            score_every=10 if config.optimiser == "lbfgs" else 1,
        )
        prepared.calibrate()
        trained = _trained(job, prepared, dataset, answers, features, history)
        measures, measured_on = _measures(prepared, dataset)
        if group.rank == 0:
            save_folder(job.out, trained, measures, measured_on)
            checkpoint.unlink(missing_ok=True)
        return Finished(trained, measures, measured_on, time.perf_counter() - began)


def _read(job: Job) -> tuple[Dataset, Answers]:
    dataset = job.source.read()
    size, mistakes = job.settings.get("size"), bool(job.miss or job.slip)
    if job.labels is not None:
        if mistakes:
            raise InputError("miss and slip are for simulated answers, and labels gives collected ones")
        dataset, answers = collected(dataset, job.labels)
        check_classes(dataset)
        return dataset, answers
    if mistakes and size is None:
        raise InputError("miss and slip are for simulated shortlists: state size too")
    return dataset, simulated(dataset, size, job.settings.get("seed", 0), job.miss, job.slip)


def _tested(dataset: Dataset) -> Dataset:
    """The dataset without the test items that cannot be scored, which it warns of."""
    found = with_known_test(dataset)
    if lost := len(dataset.test or ()) - len(found.test or ()):
        _LOG.warning(
            "%s: %d of %d test items have no class and are left out", dataset.name, lost, len(dataset.test or ())
        )
    return found


def _configure(job: Job, dataset: Dataset, answers: Answers, engine: Engine, listeners: Listeners) -> RunConfig:
    """Each setting as tuned, else as stated, else from `defaults_for`, else `RunConfig`'s own default."""
    stated = {*job.settings, *(() if job.tune is None else grid_of(job.tune))}
    method, known = job.settings.get("method", "likelihood"), bool(answers.labels.answered.all())
    defaults = defaults_for(dataset, len(answers.labels), stated, method, known=known)
    if job.settings.get("keep") == "best":
        defaults["holdout"] = HOLDOUT
    config = RunConfig(**{**defaults, **job.settings})
    for name in UNUSED.get(config.optimiser, ()):
        if name in job.settings:
            raise InputError(f"{name}: optimiser {config.optimiser} has no use for it")
    if job.tune is None:
        return config
    grid = grid_of(job.tune)
    if "lr" in grid:  # the grid's learning rates suit SGD only: try some around the default instead
        grid["lr"] = tuple(float(f"{config.lr * factor:.3g}") for factor in (0.1, 0.3, 1.0, 3.0))
    if job.resume and (before := _settings_before(job.out)):
        return replace(config, **{name: before[name] for name in grid})
    _discard_unfinished(job)
    result = tune(
        dataset,
        config,
        grid,
        labels=answers.labels,
        rows=answers.rows,
        engine=engine,
        on_point=listeners.on_point,
    )
    return result.best


def _discard_unfinished(job: Job) -> None:
    """Called right before training: a mistake in the command must not cost the run that it would overwrite."""
    if not job.resume:
        (job.out / CHECKPOINT).unlink(missing_ok=True)


def _warn(config: RunConfig, dataset: Dataset, answers: Answers) -> None:
    """Warn of what is known to end badly."""
    if not answers.labels.answered.any():
        _LOG.warning("every answer is None: what is learned are the classes that items do not have, which is little")
    if config.method == "sl" and dataset.num_classes >= MANY and not answers.labels.answered.all():
        _LOG.warning(
            "method sl smooths over all classes: with %d of them it does far worse than --method likelihood",
            dataset.num_classes,
        )


def _settings_before(out: Path) -> dict[str, Any] | None:
    """The settings, tuned ones included, of the run that was stopped or finished in `out`."""
    if (out / CHECKPOINT).exists():
        settings: dict[str, Any] | None = read_checkpoint(out / CHECKPOINT)[1].get("config")
        return settings
    return read_config(out)["run"] if (out / WEIGHTS).exists() else None


def _finished_before(job: Job, prepared: Prepared) -> Finished | None:
    """The result, if the run to resume is finished already."""
    if job.unfinished or not (job.out / WEIGHTS).exists():
        return None
    content = read_config(job.out)
    labels, inputs = (content[part].get("fingerprint") for part in ("labels", "data"))
    saved = Fingerprint(labels, inputs, content.get("code", {}))
    check_same_run(prepared, job.out, content["run"], saved)
    return Finished(load_folder(job.out, "cpu"), None, "", 0.0, again=True)


def _trained(
    job: Job,
    prepared: Prepared,
    dataset: Dataset,
    answers: Answers,
    features: Features | None,
    history: list[EpochScores],
) -> Trained:
    test = dataset.test
    return Trained(
        model=prepared.run.model,
        config=prepared.run.config,
        class_names=dataset.class_names,
        in_shape=dataset.in_shape,
        kind=dataset.kind if features is None else "text",
        smoothing=prepared.smoothing,
        temperature=prepared.temperature,
        features=features,
        data={
            "name": dataset.name,
            "items": len(dataset.train),
            "test_items": 0 if test is None else len(test),
            "source": job.source.to_dict(),
            "fingerprint": prepared.fingerprint.inputs,
        },
        labels={**answers.to_dict(), "miss": job.miss, "slip": job.slip, "fingerprint": prepared.fingerprint.labels},
        history=history,
        device=prepared.run.engine.device,
        code=prepared.code,
    )


def _measures(prepared: Prepared, dataset: Dataset) -> tuple[Measures | None, str]:
    """Measure on the test items if there are any, else on the held-out items that were answered."""
    logits = prepared.test_logits()
    if logits is not None and prepared.test_y is not None:
        y, where = prepared.test_y.numpy(), TEST_SET
    elif prepared.held is not None and prepared.held.answered.any():
        logits, y, where = prepared.held_logits(), prepared.held.answer, HELD_OUT
    else:
        return None, ""
    if not (y >= 0).any():
        return None, ""
    p = probabilities(prepared, logits).double().cpu().numpy()
    return measure(p, np.asarray(y, np.int64), dataset.class_names), where


@contextmanager
def _output(job: Job, writes: bool) -> Iterator[None]:
    """Check the folder before the work begins; if the work fails, remove what was made, but for a checkpoint."""
    if not writes:
        yield
        return
    existed = job.out.exists()
    if job.unfinished and not (job.resume or job.overwrite):
        raise InputError(f"{job.out} holds an unfinished run: resume goes on with it, overwrite starts anew")
    if (job.out / WEIGHTS).exists() and not (job.resume or job.overwrite):
        raise InputError(f"{job.out} holds a finished model: state another folder, or --overwrite to replace it")
    make_folder(job.out)
    try:
        remove_leftovers(job.out)
        atomic_write(job.out / WRITABLE, b"")  # if there is no permission or space, fail now, not after an hour
        (job.out / WRITABLE).unlink()
        yield
    except BaseException as error:  # Ctrl-C too
        if isinstance(error, DivergedError):
            with suppress(OSError):
                (job.out / CHECKPOINT).unlink(missing_ok=True)
        if not existed and not job.unfinished:  # a checkpoint is work that can be resumed
            shutil.rmtree(job.out, ignore_errors=True)
        raise

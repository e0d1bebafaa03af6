"""Training: one run, many runs (the fleet), checkpoints, honest model selection.

    >>> from shortlist.data import load
    >>> from shortlist.training import RunConfig, fit, prepare
    >>> history = fit(prepare(load("digits"), RunConfig(size=5, epochs=1)))
    >>> 0 < history[-1].test_accuracy < 1
    True

Names are loaded when they are first used: drawing shortlists (`draw_labels`) needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shortlist.internal.extras import named_extra

if TYPE_CHECKING:
    from shortlist.training.answers import draw_labels
    from shortlist.training.config import Engine, Optimiser, RunConfig, Schedule
    from shortlist.training.evaluation import calibration_error, logits_of, score_answers
    from shortlist.training.fleet.fleet import FleetResult
    from shortlist.training.fleet.packs import pack_key
    from shortlist.training.history import EpochScores, mean_of_last
    from shortlist.training.inputs import Normalise
    from shortlist.training.job.job import Finished, Job, Listeners, train
    from shortlist.training.loop import Interrupted, fit
    from shortlist.training.many import train_fleet
    from shortlist.training.prepared import Prepared, prepare
    from shortlist.training.run import one_pass
    from shortlist.training.saved.folder import Trained, load_folder
    from shortlist.training.saved.predict import evaluate_on, predict_files
    from shortlist.training.saved.source import DataSource
    from shortlist.training.selection import TuneRow, tune

_MODULES = {
    "answers": ("draw_labels",),
    "config": ("Engine", "Optimiser", "RunConfig", "Schedule"),
    "evaluation": ("calibration_error", "logits_of", "score_answers"),
    "fleet.fleet": ("FleetResult",),
    "fleet.packs": ("pack_key",),
    "history": ("EpochScores", "mean_of_last"),
    "inputs": ("Normalise",),
    "job.job": ("Finished", "Job", "Listeners", "train"),
    "loop": ("Interrupted", "fit"),
    "many": ("train_fleet",),
    "prepared": ("Prepared", "prepare"),
    "run": ("one_pass",),
    "saved.folder": ("Trained", "load_folder"),
    "saved.predict": ("evaluate_on", "predict_files"),
    "saved.source": ("DataSource",),
    "selection": ("TuneRow", "tune"),
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "DataSource",
    "Engine",
    "EpochScores",
    "Finished",
    "FleetResult",
    "Interrupted",
    "Job",
    "Listeners",
    "Normalise",
    "Optimiser",
    "Prepared",
    "RunConfig",
    "Schedule",
    "Trained",
    "TuneRow",
    "calibration_error",
    "draw_labels",
    "evaluate_on",
    "fit",
    "load_folder",
    "logits_of",
    "mean_of_last",
    "one_pass",
    "pack_key",
    "predict_files",
    "prepare",
    "score_answers",
    "train",
    "train_fleet",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        with named_extra():
            return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""What a worker does: train a batch of runs and turn each into a row of the ledger."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shortlist.internal.provenance import provenance
from shortlist.study.plan import datasets
from shortlist.study.plan.grid import PlannedRun
from shortlist.study.plan.run_keys import own_code
from shortlist.study.run.batches import RunBatch
from shortlist.study.run.ledger import RUN, Row
from shortlist.training import Engine, EpochScores, FleetResult, Interrupted, mean_of_last, train_fleet

DIGITS, MEAN_DIGITS = 4, 6
"""Decimals in the ledger of an accuracy (exact for 10,000 test items) and of a mean of ten."""


def train_batch(batch: RunBatch) -> list[Row]:
    """Train the runs of a batch; their rows, in the same order."""
    engine = Engine(Engine(batch.device).resolve(0).device)
    if batch.own_data is not None:
        datasets.add(batch.own_data)
    dataset = datasets.load(batch.dataset)
    if batch.kind != RUN:
        dataset = replace(dataset, test=None)
    configs = [run.config for run in batch.runs]
    began = time.perf_counter()
    try:
        results = train_fleet(dataset, configs, engine=engine, score_every=batch.score_every)
    except Interrupted as stopped:  # Ctrl-C: the runs of this batch are lost, earlier ones are stored
        raise KeyboardInterrupt from stopped
    seconds = (time.perf_counter() - began) / len(configs)
    together = len(configs) if engine.device.startswith("cuda") else 1
    where = provenance(engine.device)
    return [
        row_of(run, result, batch.kind, seconds, together, where)
        for run, result in zip(batch.runs, results, strict=True)
    ]


def row_of(
    run: PlannedRun, result: FleetResult, kind: str, seconds: float, together: int, where: dict[str, Any]
) -> Row:
    """A row of the ledger: what was asked for, the result, and where it was computed; the long list last."""
    history = result.history
    scored = history if result.failed is None else []
    return {
        "key": run.key,
        "kind": kind,
        **run.cell.to_dict(),
        "trial": run.trial,
        "last": _rounded(scored[-1].test_accuracy) if scored else None,
        "mean_of_last_ten": _rounded(mean_of_last(scored), MEAN_DIGITS),
        "validation": _rounded(mean_of_last(scored, "validation_accuracy"), MEAN_DIGITS),
        **(_held_out(scored) if run.config.holdout else {}),
        **({"kept": _kept(result)} if run.config.keep == "best" else {}),
        **({} if result.calibration_error is None else {"calibration_error": round(result.calibration_error, 6)}),
        "failed": result.failed,
        "seconds": round(seconds, 3),
        "together": together,
        **where,
        "recipe": run.source,
        "config": run.config.to_dict(),
        **own_code(run.config.method),
        **datasets.stored(run.cell.dataset),
        "accuracy": [_rounded(row.test_accuracy) for row in history] if _tested(history) else [],
    }


def _held_out(history: Sequence[EpochScores]) -> Row:
    """The accuracy by all held-out answers, None included, mean of the last ten epochs, and its standard error."""
    error = history[-1].validation_error if history else None
    return {
        "estimate": _rounded(mean_of_last(history, "validation_estimate"), MEAN_DIGITS),
        "estimate_error": _rounded(error, MEAN_DIGITS),
    }


def _kept(result: FleetResult) -> Row | None:
    """The epoch that was chosen on held-out answers, and its test accuracy."""
    if result.failed is not None:
        return None
    return {"epoch": result.saved.epoch, "accuracy": _rounded(result.saved.test_accuracy)}


def _tested(history: Sequence[EpochScores]) -> bool:
    return any(row.test_accuracy is not None for row in history)


def _rounded(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None else round(value, digits)

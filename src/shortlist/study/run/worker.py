"""What a worker does: some runs on one dataset, returned as plain values that travel between processes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shortlist.study.plan import datasets as sets
from shortlist.study.run.provenance import provenance
from shortlist.training import Engine, EpochScores, FleetResult, Interrupted, RunConfig, mean_of_last, train_fleet

DIGITS, MEAN_DIGITS = 4, 6
"""Decimals in the ledger of an accuracy (exact for 10,000 test items) and of a mean of ten."""


@dataclass(frozen=True)
class Order:
    """Runs that are trained together."""

    dataset: str
    configs: tuple[RunConfig, ...]
    device: str = "auto"
    tested: bool = True
    """Whether to score on the test items; never while settings are being chosen."""
    score_every: int = 1

    def settle(self) -> "Order":
        """The same with the device decided."""
        return replace(self, device=Engine(self.device).resolve(0).device)


def work(order: Order, on_epoch: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
    """Train the runs of an order; a row for each, in their order."""
    order = order.settle()
    dataset = sets.load(order.dataset)
    if not order.tested:
        dataset = replace(dataset, test=None)
    began = time.perf_counter()
    try:
        results = train_fleet(
            dataset,
            order.configs,
            engine=Engine(order.device),
            score_every=order.score_every,
            on_epoch=on_epoch,
        )
    except Interrupted as stopped:  # Ctrl-C: runs of this order are not kept, those before are
        raise KeyboardInterrupt from stopped
    seconds = (time.perf_counter() - began) / len(order.configs)
    together = len(order.configs) if order.device.startswith("cuda") else 1
    return [{**result_of(result, seconds, together), **provenance(order.device)} for result in results]


def result_of(result: FleetResult, seconds: float, together: int = 1) -> dict[str, Any]:
    """The part of a row that training decides."""
    history = result.history
    scored = history if result.failed is None else []
    return {
        "last": _rounded(scored[-1].test_accuracy) if scored else None,
        "mean_of_last_ten": _rounded(mean_of_last(scored), MEAN_DIGITS),
        "validation": _rounded(mean_of_last(scored, "validation_accuracy"), MEAN_DIGITS),
        "accuracy": [_rounded(row.test_accuracy) for row in history] if _tested(history) else [],
        "failed": result.failed,
        "seconds": round(seconds, 3),
        "together": together,
    }


def _tested(history: Sequence[EpochScores]) -> bool:
    return any(row.test_accuracy is not None for row in history)


def _rounded(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None else round(value, digits)

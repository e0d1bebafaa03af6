"""The demo's runs: every row with every seed, one after another on one thread."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.data import Dataset, load
from shortlist.demo.rows import BATCH_SIZE, CHOSEN, EPOCHS, HIDDEN, SEEDS, SIZES, DemoRow, Settings, demo_rows
from shortlist.errors import InputError
from shortlist.internal.streams import stream_seed
from shortlist.labels import StochasticLabels
from shortlist.training import Engine, EpochScores, Prepared, RunConfig, fit, mean_of_last, prepare


@dataclass(frozen=True)
class Outcome:
    """The accuracy of one row over its seeds and epochs."""

    row: DemoRow
    settings: Settings
    reads: int
    """The class names shown to people, for one seed."""
    accuracy: NDArray[np.float64]
    """(seeds, epochs) the test accuracy."""
    last_ten: NDArray[np.float64]
    """(seeds,) the mean of the last ten epochs."""

    @property
    def last(self) -> NDArray[np.float64]:
        """(seeds,) the test accuracy after the last epoch."""
        last: NDArray[np.float64] = self.accuracy[:, -1]
        return last


def deviation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sample standard deviation (n - 1) over the seeds, which are the first dimension; 0 for a single seed."""
    found: NDArray[np.float64] = values.std(0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
    return found


def train_rows(
    *,
    sizes: tuple[int, ...] = SIZES,
    seeds: Sequence[int] = SEEDS,
    epochs: int = EPOCHS,
    on_epoch: Callable[[DemoRow, int], None] = lambda row, seed: None,
) -> list[Outcome]:
    """Train every row with every seed; after each epoch `on_epoch` is called with the row and the seed."""
    if not set(sizes) <= set(SIZES):
        raise InputError(f"sizes: expected some of {SIZES}, for which settings were chosen, got {sizes}")
    digits = load("digits")
    outcomes = []
    with one_thread():
        for row in demo_rows(sizes):
            settings = CHOSEN[row]
            accuracy, last_ten, reads = [], [], 0
            for seed in seeds:
                prepared = prepare_row(digits, row, settings, seed, epochs)

                def report(_: EpochScores, row: DemoRow = row, seed: int = seed) -> None:
                    on_epoch(row, seed)

                history = fit(prepared, on_epoch=report)
                accuracy.append([scores.test_accuracy or 0.0 for scores in history])
                last_ten.append(mean_of_last(history) or 0.0)
                reads = prepared.labels.reads
            outcomes.append(Outcome(row, settings, reads, np.array(accuracy), np.array(last_ten)))
    return outcomes


def prepare_row(
    digits: Dataset, row: DemoRow, settings: Settings, seed: int, epochs: int, holdout: float = 0.0
) -> Prepared:
    """One run of a row, ready to start. Rows of one size and seed see the same shortlists and initial weights."""
    config = RunConfig(
        method=row.method,
        protocol=row.protocol or "fair",
        size=row.size if row.kind == "shortlists" else None,
        model="mlp",
        model_options={"hidden": HIDDEN},
        epochs=epochs,
        batch_size=BATCH_SIZE,
        lr=settings.lr,
        weight_decay=settings.weight_decay,
        holdout=holdout,
        seed=seed,
    )
    if row.kind != "same reads":
        return prepare(digits, config, engine=Engine("cpu"))
    assert row.size is not None
    assert digits.train.y is not None
    count = len(digits.train) * row.size // digits.num_classes
    rng = np.random.Generator(np.random.PCG64(stream_seed(seed, "same reads")))
    rows = np.sort(rng.permutation(len(digits.train))[:count])
    labels = StochasticLabels.ordinary(digits.train.y[rows], num_classes=digits.num_classes)
    return prepare(digits, config, labels=labels, rows=rows, engine=Engine("cpu"))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch inside the block: matrices this small gain nothing from more, and lose time on busy cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

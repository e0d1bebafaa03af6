"""How the settings of the demo were chosen: `python -m shortlist.demo.choose` prints them (about ten minutes).

Every row is trained with every setting of the grid on 80 % of its labels, with three seeds that the demo does not use,
and scored on the answered items of the other 20 %: their answers are true labels and, under uniform shortlists, a fair
sample. The score is the mean over the seeds and the last ten epochs; of equals the first in the grid is taken. The test
items are removed before anything is trained. The result is in results/demo-choice.json.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from shortlist.data import Dataset, load
from shortlist.demo.grid import one_thread, prepare_row
from shortlist.demo.rows import EPOCHS, DemoRow, Settings, demo_rows
from shortlist.errors import InputError
from shortlist.internal.provenance import provenance
from shortlist.training import fit, mean_of_last

GRID = [Settings(lr, weight_decay) for lr in (0.003, 0.01, 0.03, 0.1, 0.3) for weight_decay in (1e-4, 1e-3, 1e-2)]
SEEDS = (100, 101, 102)
HOLDOUT = 0.2


def validation_accuracy(digits: Dataset, row: DemoRow, settings: Settings, epochs: int = EPOCHS) -> float:
    """The accuracy on held-out answered items, averaged over seeds and the last ten epochs; -1 if training diverged."""
    scores = []
    for seed in SEEDS:
        try:
            history = fit(prepare_row(digits, row, settings, seed, epochs, HOLDOUT))
        except InputError:  # the risk is no longer finite: the learning rate is too large for this row
            return -1.0
        scores.append(mean_of_last(history, "validation_accuracy") or 0.0)
    return float(np.mean(scores))


def choices(rows: list[DemoRow], epochs: int = EPOCHS) -> Iterator[dict[str, Any]]:
    """For each row, the score of every setting and the setting chosen."""
    digits = replace(load("digits"), test=None)
    for row in rows:
        scores = [validation_accuracy(digits, row, settings, epochs) for settings in GRID]
        chosen = GRID[int(np.argmax(scores))]
        yield {
            "line": asdict(row),
            "chosen": asdict(chosen),
            "grid": [{**asdict(s), "validation_accuracy": round(v, 5)} for s, v in zip(GRID, scores, strict=True)],
        }


def main() -> None:
    """Print the choices as JSON."""
    found = []
    with one_thread():
        for choice in choices(demo_rows()):
            found.append(choice)
            print(choice["line"], choice["chosen"], file=sys.stderr, flush=True)
    about = {"command": "python -m shortlist.demo.choose", "holdout": HOLDOUT, "seeds": SEEDS, "epochs": EPOCHS}
    print(json.dumps({**about, "lines": found, **provenance("cpu")}, indent=1))


if __name__ == "__main__":
    main()

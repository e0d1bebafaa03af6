"""A trainer beside a running server: takes the answers so far by the API, trains, reports the accuracy.

It runs in a process of its own, so the server never waits for it and never loads what it needs. The model is the
linear one of the policies, trained by the likelihood of the answers: a second for a thousand items.
"""

import json
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shortlist.annotate.robots import Caller, Gone
from shortlist.label_files import split_names

DOUBT = 0.02
"""What a class that an answer speaks against still weighs: people err."""


def candidate_weights(
    rows: list[dict[str, str | None]], place: dict[str, int], classes: dict[str, int]
) -> NDArray[np.float32]:
    """(N, K) how well the answers fit each class of each item, up to a factor; 1 everywhere where nobody answered."""
    weights = np.ones((len(place), len(classes)), np.float32)
    for row in rows:
        item = place.get(str(row["item"]))
        if item is None:
            continue
        shown = [classes[name] for name in split_names(str(row["shortlist"]))]
        fits = np.full(len(classes), DOUBT, np.float32)
        if row["answer"]:
            fits[classes[str(row["answer"])]] = 1.0
        else:
            fits[:] = 1.0
            fits[shown] = DOUBT
        weights[item] *= fits
    weights /= weights.max(axis=1, keepdims=True)
    return weights


def teach(
    url: str,
    token: str,
    x: NDArray[np.float32],
    items: list[str],
    classes: list[str],
    score: Callable[[Callable[[NDArray[np.float32]], NDArray[np.int64]]], float],
    *,
    every: float = 3.0,
    rounds: int | None = None,
) -> list[tuple[int, float]]:
    """Train whenever there are new answers and report `score(predict)` as the measure `accuracy`.

    Ends after so many rounds, or when the server is gone. Returns (answers, accuracy) of each training.
    """
    from shortlist.policies.linear import fit

    caller = Caller(url, token)
    place, index = {item: i for i, item in enumerate(items)}, {name: k for k, name in enumerate(classes)}
    model, seen = None, 0
    curve: list[tuple[int, float]] = []
    try:
        while rounds is None or len(curve) < rounds:
            rows = [json.loads(line) for line in caller.get("/api/v1/export/answers.jsonl").splitlines()]
            if len(rows) > seen:
                seen = len(rows)
                weights = candidate_weights(rows, place, index)
                asked = np.flatnonzero(weights.min(axis=1) < 1)
                model = fit(x[asked], weights[asked], l2=0.01, start=model)
                curve.append((seen, score(model.predict)))
                caller.post("/measures", {"name": "accuracy", "value": curve[-1][1]})
            time.sleep(every)
    except Gone:
        pass
    finally:
        caller.close()
    return curve

"""What the trainer last said about its model: a small file in the folder `live`, new after each training."""

import json
import os
from pathlib import Path
from typing import Any

SCORE = "score.json"
FIELDS = {"accuracy", "low", "high", "items", "undecided", "size", "asked", "corrected"}
FIELDS |= {"answers", "questions_for_a_point"}

FEW = 10  # sampled items that were answered: with fewer, a share says nothing yet


def write_score(live: Path, score: dict[str, Any] | None) -> None:
    """Replace what was said before; None: nothing can be said."""
    path = live / SCORE
    if score is None:
        path.unlink(missing_ok=True)
        return
    temporary = live / f".{SCORE}.{os.getpid()}"
    temporary.write_text(json.dumps(score) + "\n", encoding="utf-8")  # not forced to the disk: others wait for that
    temporary.replace(path)


def read_score(live: Path) -> dict[str, Any] | None:
    """The model's accuracy with its interval, what it rests on, and what another point takes; None: not known.

    `early`: it rests on too few items to be shown. Only those at the beginning of the sample's order count (`items`);
    `asked` may be more, as some may come after new items.
    """
    try:
        found = json.loads((live / SCORE).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # there is none, or a power cut has damaged it
        return None
    if not isinstance(found, dict) or found.keys() != FIELDS:
        return None
    return {**found, "early": found["items"] < FEW}

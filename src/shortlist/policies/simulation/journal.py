"""What a comparison has found so far, on disk: the rows of curve.csv as they come, and every run that has ended.

A comparison that was interrupted, by Ctrl-C or by a crash, goes on with the runs that had not ended. They start again
from the beginning and end as they would have, since everything that is drawn comes from a seed.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from shortlist.errors import InputError
from shortlist.internal.files import atomic_write, make_folder
from shortlist.policies.score.audit import Score
from shortlist.policies.simulation.curves import curves_csv
from shortlist.policies.simulation.simulate import Curve, Point

RUNS = "runs.jsonl"
ROWS = "curve.csv"


class Journal:
    """The folder of one comparison.

    Args:
        folder: where it is kept; a folder holds one comparison only.
        wanted: what is compared, as JSON; an InputError is raised if the folder holds another comparison.
    """

    def __init__(self, folder: Path, wanted: dict[str, Any]) -> None:
        self.folder = folder
        make_folder(folder)
        self.ended = self._read(json.loads(json.dumps(wanted)))
        """The runs that have ended, in that order."""
        lines = [json.dumps(wanted), *(json.dumps(asdict(curve)) for curve in self.ended)]
        atomic_write(folder / RUNS, "".join(line + "\n" for line in lines))
        head = ",".join(("way", "seed", *(field.name for field in fields(Point)))) + "\n"
        atomic_write(folder / ROWS, curves_csv(self.ended) if self.ended else head)

    def _read(self, wanted: dict[str, Any]) -> list[Curve]:
        path = self.folder / RUNS
        try:
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # a last line without its end was cut off
            stated, *runs = [json.loads(line) for line in lines] or [wanted]
            differ = sorted(key for key in {**wanted, **stated} if stated.get(key) != wanted.get(key))
            ended = [_curve(run) for run in runs]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is damaged or of another version ({error!r}): remove it to begin anew") from error
        if differ:
            other = ", ".join(differ)
            raise InputError(
                f"{self.folder} holds another comparison (other {other}): give another --out, or remove {path}"
            )
        return ended

    def point(self, way: str, seed: int, point: Point) -> None:
        """Keep the point that a run has reached after a training."""
        _, row = curves_csv([Curve(way, seed, (point,))]).split("\n", 1)
        with (self.folder / ROWS).open("a", newline="", encoding="utf-8") as file:
            file.write(row)

    def run(self, curve: Curve) -> None:
        """Keep a run that has ended."""
        with (self.folder / RUNS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(curve)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def of(self, way: str, seed: int) -> Curve | None:
        """The run of this way and seed, if it has ended; else None."""
        return next((curve for curve in self.ended if (curve.way, curve.seed) == (way, seed)), None)


def _curve(content: dict[str, Any]) -> Curve:
    points = tuple(Point(**point) for point in content["points"])
    scores: Sequence[Score | None] = [None if score is None else Score(**score) for score in content["scores"]]
    return Curve(content["way"], content["seed"], points, tuple(scores), tuple(content["a_point"]))

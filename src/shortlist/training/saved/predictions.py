"""Predicted classes as a table: item, class, probability and the likeliest classes."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.internal.files import atomic_path
from shortlist.internal.names import join_names
from shortlist.training.saved.folder import Trained

ENDINGS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Items:
    """Raw inputs and the names of the items."""

    x: Any
    names: list[str]


@dataclass(frozen=True)
class Predictions:
    """The likeliest classes of each item, likeliest first."""

    items: list[str]
    classes: list[list[str]]
    """(N, top_k) names."""
    probabilities: NDArray[np.float64]
    """(N, top_k)."""

    @classmethod
    def of(cls, trained: Trained, items: Items, top_k: int) -> Self:
        """Predict; `top_k` is cut at K."""
        if top_k < 1:
            raise InputError(f"top-k: expected at least 1, got {top_k}")
        p = trained.predict(items.x)
        top = np.argsort(-p, axis=1, kind="stable")[:, :top_k]
        names = [[trained.class_names[k] for k in row] for row in top.tolist()]
        return cls(items.names, names, np.take_along_axis(p, top, 1))

    def rows(self) -> list[dict[str, Any]]:
        """One plain record per item."""
        return [
            {
                "item": item,
                "class": names[0],
                "probability": shares[0],
                "top": names,
                "top_probabilities": shares,
            }
            for item, names, shares in zip(self.items, self.classes, self.probabilities.tolist(), strict=True)
        ]

    def to_csv(self) -> str:
        """With a header; the likeliest classes and their probabilities joined by | as in files of labels."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("item", "class", "probability", "top", "top_probabilities"))
        for row in self.rows():
            shares = [f"{share:.6g}" for share in row["top_probabilities"]]
            writer.writerow((row["item"], row["class"], shares[0], join_names(row["top"]), "|".join(shares)))
        return text.getvalue()

    def to_jsonl(self) -> str:
        """One JSON object per line."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows())

    def write(self, path: Path) -> None:
        """Whole or not at all; the ending decides the format."""
        ending = path.suffix.lower()
        if ending not in ENDINGS:
            raise InputError(f"{path}: unknown ending {path.suffix!r}, expected {', '.join(ENDINGS)}")
        with atomic_path(path) as temporary:
            if ending == ".parquet":
                import pyarrow as pa
                import pyarrow.parquet as pq

                pq.write_table(pa.Table.from_pylist(self.rows()), temporary)
            else:
                content = self.to_csv() if ending == ".csv" else self.to_jsonl()
                temporary.write_text(content, encoding="utf-8", newline="")

"""Labels of every kind, and files of them as other programs write them."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from shortlist.labels import NONE, StochasticLabels

FORMATS = ["csv", "jsonl", "parquet"]
AWKWARD = ["a|b", "c\\", '"quoted"', "two\nlines", "\r", " ", "é 漢字 🙂", "\u2028", "0", "-1", "\ufeff", "\x00", "1|"]
LOOSE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@st.composite
def any_labels(draw: st.DrawFn) -> StochasticLabels:
    K = draw(st.integers(2, 6))
    name = st.text(min_size=1, max_size=8) | st.sampled_from(AWKWARD) | st.integers(0, 9).map(str)
    names = draw(st.none() | st.lists(name, min_size=K, max_size=K, unique=True))
    lists, answers = [], []
    for _ in range(draw(st.integers(1, 8))):
        shown = draw(st.permutations(range(K)))[: draw(st.integers(1, K))]
        lists.append(shown)
        answers.append(draw(st.sampled_from(shown if len(shown) == K else [*shown, NONE])))
    items = draw(st.none() | st.lists(st.text(max_size=8), min_size=len(lists), max_size=len(lists)))
    chance = st.floats(0, 1, exclude_min=True) | st.just(np.nan)
    shown = sum(map(len, lists))
    inclusion = draw(st.none() | st.lists(chance, min_size=shown, max_size=shown))
    return StochasticLabels.from_lists(lists, answers, K, class_names=names, items=items, inclusion=inclusion)


def write(path: Path, rows: list[dict], columns=None) -> Path:
    """Rows as another program would write them."""
    columns = columns or list(rows[0])
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({name: row.get(name) for name in columns}) + "\n" for row in rows))
    else:
        pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in columns}), path)
    return path

"""What another model thinks of the items: a file beside the settings, which may be replaced while people work."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from shortlist.annotate.db.schema import Item
from shortlist.annotate.project.project import SCORES, Project, private_file

Matrix = NDArray[np.float32]


def set_scores(project: Project, names: Sequence[str], table: Matrix) -> int:
    """Replace the scores by an (N, K) table, NaN where there is none; how many items have any.

    Stored by the numbers of items and classes, not by their names: a class may be renamed.
    """
    with project.store.read() as connection:
        ids = {name: item_id for item_id, name in connection.execute(select(Item.id, Item.name))}
    rows = [row for row, name in enumerate(names) if name in ids and not np.isnan(table[row]).all()]
    with private_file(project.folder / SCORES) as file:
        np.savez(file, items=np.array([ids[names[row]] for row in rows], np.int64), scores=table[rows])
    return len(rows)


def scores_of(project: Project, ids: Sequence[int], num_classes: int) -> Matrix | None:
    """(N, K) of these items, NaN where there is none; None: no scores at all."""
    try:
        with np.load(project.folder / SCORES) as content:
            items, scores = content["items"], content["scores"]
    except FileNotFoundError:
        return None
    table = np.full((len(ids), num_classes), np.nan, np.float32)
    places = {item_id: row for row, item_id in enumerate(ids)}
    pairs = [(row, places[item]) for row, item in enumerate(items.tolist()) if item in places]
    if pairs:
        here, there = np.array(pairs).T
        table[there, : scores.shape[1]] = scores[here]
    return table


def scores_stamp(project: Project) -> tuple[int, int] | None:
    """Changes when the scores do."""
    try:
        found = (project.folder / SCORES).stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size

"""A second opinion on the labels: Dawid and Skene's model of who errs how, by crowd-kit, beside the majority.

It takes the votes of crowd-kit's table, in which None is a label of its own and corrections are left out. It knows
nothing of shortlists, so it is no replacement for a model trained on them: where it differs, somebody should look.
"""

import csv
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from shortlist.annotate.formats.answers import standing_answers
from shortlist.annotate.formats.crowd_kit import NONE_LABEL
from shortlist.annotate.formats.labels import picks
from shortlist.annotate.project.project import Project
from shortlist.errors import InputError
from shortlist.internal.cells import guard_cell

COLUMNS = ("item", "majority", "dawid_skene", "probability")
ROUNDS = 100


def write_csv(project: Project, path: Path) -> int:
    """One row per item that somebody answered; the majority is empty where two labels are level."""
    try:
        import pandas as pd
        from crowdkit.aggregation import DawidSkene
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: pip install crowd-kit") from error
    with project.store.read() as connection:
        picked = picks(row for row in standing_answers(connection) if row["gold"] is None)
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for (item, _), answer in picked.items():
        votes[item][answer or NONE_LABEL] += 1
    table = pd.DataFrame(
        [(item, who, answer or NONE_LABEL) for (item, who), answer in picked.items()],
        columns=["task", "worker", "label"],
    )
    likely: Any = DawidSkene(n_iter=ROUNDS).fit(table).probas_ if len(table) else None
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for item, counts in votes.items():
            ranked = counts.most_common(2)
            level = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
            chances = likely.loc[item]
            best = str(chances.idxmax())
            words = ("" if level else guard_cell(ranked[0][0]), guard_cell(best), f"{float(chances.max()):.6g}")
            writer.writerow((guard_cell(item), *words))
    return len(votes)

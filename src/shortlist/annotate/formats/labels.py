"""One row per item: the class that people gave it, and how many said so. What other tools take as labels."""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from shortlist.annotate.db.class_map import read_class_map
from shortlist.annotate.db.schema import Item
from shortlist.annotate.db.statements import class_names, current_names
from shortlist.annotate.formats.answers import (
    TYPED,
    corrections_by_name,
    known_by_name,
    reviewer_name,
    standing_answers,
)
from shortlist.annotate.project.project import Project
from shortlist.internal.cells import guard_cell
from shortlist.internal.names import split_names

COLUMNS = ("item", "label", "votes", "against")
_TEXTS = select(Item.name, Item.text).where(Item.text.is_not(None))
BY, KNEW, TEXT = "corrected_by", "known", "text"


def picks(given: Iterable[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """(item, annotator) -> the class picked or typed, empty for None; in the order of the first answers.

    Where a None is asked again, somebody answers several lists about an item: what they picked in the end counts.
    """
    found: dict[tuple[str, str], str] = {}
    for row in given:
        who = (row["item"], row["annotator"])
        found[who] = row.get(TYPED) or row["answer"] or found.get(who, "")
    return found


def write_csv(project: Project, path: Path) -> int:
    """Every item that was answered or whose class the owner knew, except gold ones, on which people are measured.

    The label is empty where nobody picked a class, or two classes were picked equally often. Where a reviewer has
    corrected an item, theirs is the label; else the owner's, if they knew it. Three more columns, each there if it says
    anything, have who corrected an item, which classes were known (`yes`), whatever people said, and the texts.
    """
    with project.store.read() as connection:
        picked: dict[str, Counter[str]] = defaultdict(Counter)
        for (item, _), answer in picks(row for row in standing_answers(connection) if row["gold"] is None).items():
            picked[item].update([answer] if answer else [])
        left = _left(connection, {item for item, votes in picked.items() if not votes})
        corrected, known = _corrected(connection), known_by_name(connection)
        items = dict.fromkeys((*picked, *corrected, *known))
        texts = {item: text or "" for item, text in connection.execute(_TEXTS) if item in items}
    by = {item: who for item, (_, who) in corrected.items()}
    more = [(name, said) for name, said in ((BY, by), (KNEW, dict.fromkeys(known, "yes")), (TEXT, texts)) if said]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow((*COLUMNS, *(name for name, _ in more)))
        for item in items:
            votes = picked.get(item, Counter())
            label, _ = corrected.get(item, (known.get(item, ""), ""))
            agree = votes[label]
            if item not in corrected and item not in known:
                label, agree = _majority(votes, left.get(item, ""))
            counted = [guard_cell(item), guard_cell(label), agree, votes.total() - agree]
            writer.writerow([*counted, *(guard_cell(said.get(item, "")) for _, said in more)])
    return len(items)


def _majority(votes: Counter[str], left: str) -> tuple[str, int]:
    """The class picked most often, empty in a tie, and how often; where nobody picked one, the one that is left."""
    ranked = votes.most_common(2) or [(left, 0)]
    tied = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
    return "" if tied else ranked[0][0], ranked[0][1]


def _corrected(connection: Connection) -> dict[str, tuple[str, str]]:
    """Item -> (class, empty where there is none; who said so)."""
    names, classes = class_names(connection), read_class_map(connection)
    found = {}
    for item, row in corrections_by_name(connection).items():
        class_id = None if row.class_id is None else classes.now(row.class_id)
        found[item] = ("" if class_id is None else names[class_id], reviewer_name(row.author))
    return found


def _left(connection: Connection, items: set[str]) -> dict[str, str]:
    """The only class not refused, for items that have just one left: a model that asks again stops there."""
    names = current_names(connection)
    refused: dict[str, set[str]] = defaultdict(set)
    for row in standing_answers(connection):
        if row["item"] in items:
            refused[row["item"]].update(split_names(row["shortlist"]))
    return {item: (set(names) - gone).pop() for item, gone in refused.items() if len(gone) == len(names) - 1}

"""Items worth a second look: people differ about them, or a model that did not see the answer does not believe it."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, select

from shortlist.annotate.db.class_map import read_class_map
from shortlist.annotate.db.schema import Answer, Item, Question, Slot
from shortlist.annotate.db.statements import NO_UNDO, STANDING, batches, class_names
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.review.corrections import standing_corrections

DOUBTS = "doubts.json"
"""What the trainer last found hard to believe, in the project's folder `live`."""
MOST = 1000
"""Answers that the trainer names at most."""


@dataclass(frozen=True)
class SecondLook:
    """One item that somebody should look at again."""

    item_id: int
    item: str
    """Its name."""
    label: str | None
    """The class that most people gave it; None: as many gave another, or nobody gave any."""
    believed: str | None
    """The class that the model holds likeliest; None: it has not said that it differs."""
    chance: float | None
    """The model's probability of the class that was answered, by a model trained on other items."""
    people: dict[str, int]
    """How many people gave it each class."""
    refused: dict[str, int]
    """Of these classes, those that somebody else was shown and refused, and how many did."""
    reason: Literal["people differ", "the model differs", "both differ"]


def second_look(project: Project, most: int | None = None, among: Sequence[int] | None = None) -> list[SecondLook]:
    """The items worth a second look, the most doubtful first: at most `most` of them, all if None; `among` some items.

    First those about which people and the model differ, then those about which people do (two classes were given, or
    one was given that somebody else was shown and refused), then those whose answer the model finds hard to believe,
    hardest first. Gold items are left out, and so are those whose class a reviewer has corrected. What the model says
    is as old as the trainer's last word on it, and there only in projects whose lists a model chooses; an answer that
    was changed since is not held against anybody.
    """
    with project.store.read() as connection:
        names = class_names(connection)
        given = _given(connection, among)
        doubts = {
            item: (said, believed, chance)
            for item, said, believed, chance in _read_doubts(project.live)
            if item in given and max(said, believed) < len(names) and given[item].label in (None, said)
        }
        found = [(item, one) for item, one in given.items() if one.differ or item in doubts]
        ranks = {item: rank for rank, item in enumerate(doubts)}
        found.sort(key=lambda pair: (_group(pair[1].differ, pair[0] in doubts), ranks.get(pair[0], 0), pair[0]))
        found = found[:most]
        items = _item_names(connection, [item for item, _ in found])
    return [_look(item, items[item], one, doubts.get(item), names) for item, one in found]


def write_doubts(live: Path, doubts: Iterable[tuple[int, int, int, float]]) -> None:
    """Replace what the model found hard to believe: (item, class answered, class believed, chance), hardest first."""
    temporary = live / f".{DOUBTS}.{os.getpid()}"
    temporary.write_text(json.dumps([list(one) for one in doubts]) + "\n", encoding="utf-8")
    temporary.replace(live / DOUBTS)


def _read_doubts(live: Path) -> list[tuple[int, int, int, float]]:
    try:
        found = json.loads((live / DOUBTS).read_text(encoding="utf-8"))
        return [(int(item), int(said), int(believed), float(chance)) for item, said, believed, chance in found]
    except (OSError, ValueError, TypeError):  # there is none, or a power cut has damaged it
        return []


@dataclass
class _Given:
    """What people said about one item."""

    last: dict[int, int] = field(default_factory=dict)
    """Annotator -> the class they gave."""
    shown: dict[int, set[int]] = field(default_factory=dict)
    """Annotator -> the classes that they refused."""

    @property
    def votes(self) -> "Counter[int]":
        return Counter(self.last.values())

    @property
    def refusals(self) -> dict[int, int]:
        """Class given by somebody -> how many others refused it."""
        count = {k: sum(k in gone and self.last.get(who) != k for who, gone in self.shown.items()) for k in self.votes}
        return {k: n for k, n in count.items() if n}

    @property
    def differ(self) -> bool:
        return len(self.votes) > 1 or bool(self.refusals)

    @property
    def label(self) -> int | None:
        ranked = self.votes.most_common(2)
        tied = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
        return None if tied or not ranked else ranked[0][0]


def _given(connection: Connection, among: Sequence[int] | None) -> dict[int, _Given]:
    """Everything that stands about items that are not gold, by item."""
    statement = (
        select(Question.item_id, Question.annotator_id, Question.shortlist, Answer.class_id)
        .join_from(Answer, Question, Question.id == Answer.question_id)
        .join(Item, Item.id == Question.item_id)
        .where(Item.gold.is_(None), *STANDING)
        .order_by(Answer.id)
    )
    if among is not None:  # the slots lead to their answers, by indices
        mine = select(Slot.id).where(Slot.item_id.in_(among))
        statement = statement.where(Question.slot_id.in_(mine), NO_UNDO)
    classes, settled = read_class_map(connection), standing_corrections(connection)
    found: dict[int, _Given] = {}
    rows: Iterator[Any] = iter(connection.execution_options(yield_per=2000).execute(statement))
    for item, who, shown, picked in rows:
        one = found.setdefault(item, _Given())
        if picked is None:
            one.shown.setdefault(who, set()).update(k for k in shown if classes.now(k) == k)
        elif (now := classes.now(picked)) is not None:  # of a class that is part of another today, that one
            one.last[who] = now
    return {item: one for item, one in found.items() if item not in settled}


def _group(people_differ: bool, model_differs: bool) -> int:
    return 0 if people_differ and model_differs else 1 if people_differ else 2


def _item_names(connection: Connection, ids: list[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for batch in batches(ids, 500):
        rows = connection.execute(select(Item.id, Item.name).where(Item.id.in_(batch)))
        found |= {row.id: row.name for row in rows}
    return found


def _look(item_id: int, item: str, given: _Given, doubt: tuple[int, int, float] | None, names: list[str]) -> SecondLook:
    reason: Any = ("both differ", "people differ", "the model differs")[_group(given.differ, doubt is not None)]
    return SecondLook(
        item_id,
        item,
        None if given.label is None else names[given.label],
        None if doubt is None else names[doubt[1]],
        None if doubt is None else doubt[2],
        {names[k]: count for k, count in given.votes.most_common()},
        {names[k]: count for k, count in given.refusals.items()},
        reason,
    )

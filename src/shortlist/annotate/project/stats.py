"""What the pages tell: progress, and for the admin who did what, how well and how fast.

Counts come from counters and an index; what needs the answers themselves (agreement, medians, gold) looks at the latest
`SAMPLE` of them, so the admin page costs the same after a million answers.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations
from statistics import fmean, median
from typing import Any

from sqlalchemy import Connection, exists, false, func, select, true
from sqlalchemy.orm import aliased

from shortlist.annotate.db.schema import Annotator, Answer, Item, Measure, Question, Slot
from shortlist.annotate.db.store import Store

SAMPLE = 10_000
POINTS = 250
KEEP_SECONDS = 2.5  # the admin page asks every 3 s: what it shows is fresh
KEEP_COUNTS_SECONDS = 20.0  # every answer is counted: a second's work where there are a million


class Stats:
    """Computed at most once in `KEEP_SECONDS`, however many pages ask."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._locks = {
            name: threading.Lock() for name in ("progress", "status", "counts")
        }  # answers need not wait for an admin
        self._kept: dict[str, tuple[float, dict[Any, Any]]] = {}

    def progress(self, settled: int = 0) -> dict[str, Any]:
        """Slots done and in all, gold apart.

        Args:
            settled: how many the queue has seen done so far: what it saw since the count is added, so that nobody
                misses the answer just given.
        """

        def compute(connection: Connection) -> dict[str, Any]:
            return {**_progress(connection), "settled": settled}

        kept = self._keep("progress", compute)
        return {"done": kept["done"] + settled - kept["settled"], "total": kept["total"]}

    def status(self) -> dict[str, Any]:
        """Everything on the admin page."""
        return self._keep("status", _status)

    def class_counts(self) -> dict[int | None, int]:
        """How many answers picked each class, gold items apart; the key None is None's."""
        return self._keep("counts", _class_counts, KEEP_COUNTS_SECONDS)

    def _keep(
        self, name: str, compute: Callable[[Connection], dict[Any, Any]], seconds: float = KEEP_SECONDS
    ) -> dict[Any, Any]:
        with self._locks[name]:
            made, value = self._kept.get(name, (float("-inf"), {}))
            if time.monotonic() - made > seconds:
                with self.store.read() as connection:
                    value = compute(connection)
                self._kept[name] = (time.monotonic(), value)
            return value


def _progress(connection: Connection) -> dict[str, Any]:
    statement = select(Slot.state, func.count()).where(Slot.gold == false()).group_by(Slot.state)
    counts = {state: count for state, count in connection.execute(statement)}  # noqa: C416 - rows are no pairs to mypy
    return {"done": counts.get("done", 0), "total": sum(counts.values()) - counts.get("closed", 0)}


def _status(connection: Connection) -> dict[str, Any]:
    # gold items are asked for ever; one that a policy has closed needs no more asking, as one that is done
    statement = select(Item.state, func.count()).where(Item.gold.is_(None)).group_by(Item.state)
    states = {state: count for state, count in connection.execute(statement)}  # noqa: C416
    items = sum(states.values())
    latest = latest_answers(connection)
    # half of the gold lists hold the right class, of the others as many as there happen to be: shares and medians of
    # both together would be of neither
    plain = [row for row in latest if not row["is_gold"]]
    people = [dict(row) for row in connection.execute(_ANNOTATORS).mappings()]
    on_gold = {row.annotator_id: row for row in connection.execute(_ON_GOLD)}
    quality, seconds = gold_quality(latest), _seconds(plain, "annotator_id")
    asked = 0
    for row in people:
        gold = on_gold.get(row["id"])
        others = row["answers"] - (gold.answers if gold else 0)
        row["nones"] -= gold.nones if gold else 0
        row["none_share"] = row["nones"] / others if others else None
        row["median_seconds"] = seconds.get(row["id"])
        row |= quality.get(row["id"], _NO_GOLD)
        asked += others
    return {
        **{"items": items, "items_done": items - states.get("open", 0)},
        **{"progress": _progress(connection), "answers": sum(row["answers"] for row in people)},
        "none_share": sum(row["nones"] for row in people) / asked if asked else None,
        "skips": sum(row["skips"] for row in people),
        "hours": _hours(people, latest),
        "agreement": agreement(plain),
        "seconds_by_size": [{"size": k, "median_seconds": v} for k, v in sorted(_seconds(plain, "size").items())],
        "annotators": people,
        "measures": measures(connection),
    }


_NO_GOLD = {"gold": 0, "gold_shown": 0, "slips": 0, "misses": 0, "strays": 0}
_ANNOTATORS = select(
    *(Annotator.id, Annotator.name, Annotator.active, Annotator.answers, Annotator.nones, Annotator.skips)
).order_by(Annotator.id)
_LIVE = (Answer.kind == "answer", Answer.attempt == Question.attempt, Question.state == "answered")  # not taken back
# everybody is asked about a gold item once, so these are few however many answers there are
_ON_GOLD = (
    select(
        Question.annotator_id,
        func.count().label("answers"),
        (func.count() - func.count(Answer.class_id)).label("nones"),
    )
    .join(Slot, Slot.id == Question.slot_id)
    .join(Answer, Answer.question_id == Question.id)
    .where(Slot.gold == true(), Slot.state == "done", *_LIVE)
    .group_by(Question.annotator_id)
)
_PICKED = (
    select(Answer.class_id, func.count())
    .join(Question, Question.id == Answer.question_id)
    .join(Slot, Slot.id == Question.slot_id)
    .where(Slot.gold == false(), *_LIVE)
    .group_by(Answer.class_id)
)


def _class_counts(connection: Connection) -> dict[int | None, int]:
    return {class_id: count for class_id, count in connection.execute(_PICKED)}  # noqa: C416


def latest_answers(connection: Connection, limit: int = SAMPLE) -> list[dict[str, Any]]:
    """The latest live answers with their questions, newest first."""
    undo = aliased(Answer)
    statement = (
        select(
            *(Answer.class_id, Answer.seconds, Question.annotator_id, Question.item_id, Question.shortlist),
            *(Item.gold, Slot.gold.label("is_gold")),
        )
        .join(Question, Question.id == Answer.question_id)
        .join(Item, Item.id == Question.item_id)
        .join(Slot, Slot.id == Question.slot_id)
        .where(Answer.kind == "answer", ~exists().where(undo.supersedes == Answer.id))
        .order_by(Answer.id.desc())
        .limit(limit)
    )
    rows = [dict(row) for row in connection.execute(statement).mappings()]
    return [{**row, "size": len(row["shortlist"])} for row in rows]


def gold_quality(latest: list[dict[str, Any]]) -> Mapping[int, dict[str, int]]:
    """Per annotator: gold answers, and how many of their lists showed the right class; the mistakes on each kind apart.

    Where it was shown, slips (a wrong class picked) and misses (None); where it was not, strays (a class picked). Gold
    lists show it oftener than others do (`gold.choose_gold`), so that mistakes of both kinds must not be added up.
    """
    found: dict[int, dict[str, int]] = defaultdict(_NO_GOLD.copy)
    for row in latest:
        if not row["is_gold"]:
            continue
        mine = found[row["annotator_id"]]
        mine["gold"] += 1
        shown = row["gold"] in row["shortlist"]
        mine["gold_shown"] += shown
        picked = row["class_id"] is not None
        mine["misses"] += shown and not picked
        mine["slips"] += shown and picked and row["class_id"] != row["gold"]
        mine["strays"] += picked and not shown
    return found


def agreement(plain: list[dict[str, Any]]) -> dict[str, Any]:
    """How often two people agree about an item, over the pairs that could have disagreed.

    Shortlists differ, so two people are compared where one picked a class that the other was shown. Each has one voice
    an item: where a None is asked again, every list it took is one more chance to disagree, but only one to agree.
    """
    by_item: dict[int, dict[int, tuple[set[int], set[int]]]] = defaultdict(dict)
    for row in plain:
        shown, picked = by_item[row["item_id"]].setdefault(row["annotator_id"], (set(), set()))
        shown.update(row["shortlist"])
        picked.update(() if row["class_id"] is None else (row["class_id"],))
    agreeing = pairs = 0
    for voices in by_item.values():
        for (shown, picked), (other_shown, other_picked) in combinations(voices.values(), 2):
            comparable = bool(picked & other_shown or other_picked & shown)
            pairs += comparable
            agreeing += comparable and picked == other_picked
    return {"pairs": pairs, "share": agreeing / pairs if pairs else None}


def _seconds(latest: list[dict[str, Any]], by: str) -> dict[Any, float]:
    grouped: dict[Any, list[float]] = defaultdict(list)
    for row in latest:
        if row["seconds"] is not None:
            grouped[row[by]].append(row["seconds"])
    return {key: median(values) for key, values in grouped.items()}


def _hours(people: list[dict[str, Any]], latest: list[dict[str, Any]]) -> float | None:
    """What people have spent on their answers: as long for each as for their latest ones on average."""
    given: dict[int, list[float]] = defaultdict(list)
    for row in latest:
        if row["seconds"] is not None:
            given[row["annotator_id"]].append(row["seconds"])
    if not given:
        return None
    return float(sum(row["answers"] * fmean(given[row["id"]]) for row in people if row["id"] in given)) / 3600


def measures(connection: Connection, points: int = POINTS) -> list[dict[str, Any]]:
    """What a trainer reported, oldest first, as a curve over the answers: of each name some `points` at the most.

    The latest report of each step of the axis. One that rests on more answers than a later one knew answers that were
    taken back since, so it is no point of the curve any more: the curve never runs backwards.
    """
    most = connection.execute(select(func.max(Measure.answers))).scalar() or 0
    step = most // points + 1
    latest = select(func.max(Measure.id)).group_by(Measure.name, Measure.answers // step)
    columns = (Measure.at, Measure.name, Measure.value, Measure.answers)
    rows = connection.execute(select(*columns).where(Measure.id.in_(latest)).order_by(Measure.id.desc())).mappings()
    fewest: dict[str, int] = {}
    kept = []
    for row in rows:
        if row["answers"] <= fewest.get(row["name"], row["answers"]):
            fewest[row["name"]] = row["answers"]
            kept.append(dict(row))
    return kept[::-1]

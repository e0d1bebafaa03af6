"""What the pages show: progress, and for the admin who did what, how well and how fast.

Counts come from counters and an index; what needs the answers themselves (agreement, medians, gold) looks at the latest
`SAMPLE` of them, so that the admin page costs the same after a million answers.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations
from statistics import fmean, median
from typing import Any

from sqlalchemy import BigInteger, Connection, and_, case, cast, false, func, select, true

from shortlist.annotate.db.class_map import read_class_map
from shortlist.annotate.db.schema import Annotator, Answer, Item, Measure, Question, Slot
from shortlist.annotate.db.statements import STANDING
from shortlist.annotate.db.store import Store
from shortlist.annotate.project.review.agreement import read_units, report
from shortlist.annotate.project.ways import compare_ways

SAMPLE = 10_000
POINTS = 250
DAY, DAYS = 86_400, 30
KEEP_SECONDS = 2.5  # the admin page asks every 3 s, so what it shows is fresh
KEEP_AGREEMENT_SECONDS = 60.0
MANY = 5000  # answers: up to here everything is counted at once
KEEP_COUNTS_SECONDS = 20.0  # this counts every answer: a second's work if there are a million


class Stats:
    """Computed at most once every `KEEP_SECONDS`, however many pages ask."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # one each, so that answers need not wait for an admin
        self._locks = {name: threading.Lock() for name in ("progress", "status", "counts", "agreement", "work")}
        self._kept: dict[str, tuple[float, dict[Any, Any]]] = {}

    def progress(self, settled: int = 0) -> dict[str, Any]:
        """Slots done and in total, without gold.

        Args:
            settled: how many the queue has seen done so far: those since the last count are added, so that nobody
                misses the answer just given.
        """

        def compute(connection: Connection) -> dict[str, Any]:
            return {**_progress(connection), "settled": settled}

        kept = self._keep("progress", compute)
        return {"done": kept["done"] + settled - kept["settled"], "total": kept["total"]}

    def recent_progress(self, settled: int) -> dict[str, Any] | None:
        """The same without waiting for the database: counted a few seconds ago, and renewed beside. None: too old."""
        made, kept = self._kept.get("progress", (float("-inf"), {}))
        age = time.monotonic() - made
        if age > 2 * KEEP_SECONDS:
            return None
        if age > KEEP_SECONDS and not self._locks["progress"].locked():
            threading.Thread(target=self.progress, args=(settled,), daemon=True).start()
        return {"done": kept["done"] + settled - kept["settled"], "total": kept["total"]}

    def status(self) -> dict[str, Any]:
        """Everything on the admin page."""
        return self._keep("status", _status)

    def forget(self) -> None:
        """Compute the next status anew: somebody has changed something and wants to see it."""
        self._kept.pop("status", None)

    def class_counts(self) -> dict[int | None, int]:
        """How many answers picked each class, without gold items; the key None is for None."""
        return self._keep("counts", _class_counts, KEEP_COUNTS_SECONDS)

    def work(self) -> dict[str, Any]:
        """Answers per day and person."""
        kept = self._keep("work", _work, KEEP_AGREEMENT_SECONDS)
        # beside a number of answers that grows, those of a minute ago would seem wrong
        return kept if sum(day["answers"] for day in kept["days"]) > MANY else self._keep("work", _work)

    def agreement(self) -> dict[str, Any]:
        """How far people agree (`review.agreement`)."""
        return self._keep("agreement", lambda connection: report(*read_units(connection)), KEEP_AGREEMENT_SECONDS)

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
    # gold items never end; an item that a policy has closed is as good as done
    statement = select(Item.state, func.count()).where(Item.gold.is_(None)).group_by(Item.state)
    states = {state: count for state, count in connection.execute(statement)}  # noqa: C416
    items = sum(states.values())
    known = select(func.count()).where(Item.known.is_not(None))
    latest = latest_answers(connection)
    # gold lists hold the right class more often than others do: shares and medians over both would describe neither
    plain = [row for row in latest if not row["is_gold"]]
    picked = [row for row in plain if not row["typed"]]
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
        **{"items": items, "items_done": items - states.get("open", 0), "known": connection.scalar(known)},
        **{"progress": _progress(connection), "answers": sum(row["answers"] for row in people)},
        "none_share": sum(row["nones"] for row in people) / asked if asked else None,
        "skips": sum(row["skips"] for row in people),
        "hours": _hours(people, latest),
        "agreement": agreement(plain),
        "typed_share": fmean(row["typed"] for row in plain) if plain else None,
        "seconds_by_size": [{"size": k, "median_seconds": v} for k, v in sorted(_seconds(picked, "size").items())],
        "ways": compare_ways(latest),
        "annotators": people,
        "measures": measures(connection),
    }


_NO_GOLD = {"gold": 0, "gold_shown": 0, "slips": 0, "misses": 0, "strays": 0, "gold_typed": 0, "mistyped": 0}
_ANNOTATORS = select(
    *(Annotator.id, Annotator.name, Annotator.active, Annotator.answers, Annotator.nones, Annotator.skips)
).order_by(Annotator.id)
# everybody is asked about a gold item once, or until they find a class, so these stay few
_ON_GOLD = (
    select(
        Question.annotator_id,
        func.count().label("answers"),
        (func.count() - func.count(Answer.class_id)).label("nones"),
    )
    .join(Slot, Slot.id == Question.slot_id)
    .join(Answer, Answer.question_id == Question.id)
    .where(Slot.gold == true(), *STANDING)
    .group_by(Question.annotator_id)
)
_PICKED = (
    select(Answer.class_id, func.count())
    .join(Question, Question.id == Answer.question_id)
    .join(Slot, Slot.id == Question.slot_id)
    .where(Slot.gold == false(), *STANDING)
    .group_by(Answer.class_id)
)


def _work(connection: Connection) -> dict[str, Any]:
    """Standing answers by day (since 1970) and person, the latest days; those of the last hour, and their pace."""
    day = cast(func.floor(Answer.answered_at / DAY), BigInteger)
    join = select(day, Question.annotator_id, func.count()).join(Question, Question.id == Answer.question_id)
    since = connection.execute(select(func.max(Answer.answered_at))).scalar() or 0.0
    recent = Answer.answered_at > since - DAYS * DAY
    rows = connection.execute(join.where(recent, *STANDING).group_by(day, Question.annotator_id).order_by(day)).all()
    now = time.time()
    # None that is asked again and gold items are answers, too, but bring the end no nearer
    nearer = case((and_(Slot.state == "done", Slot.gold == false()), Slot.id))
    hour = (
        select(func.count(), func.min(Answer.answered_at), func.count(func.distinct(nearer)))
        .join_from(Answer, Question, Question.id == Answer.question_id)
        .join(Slot, Slot.id == Question.slot_id)
        .where(Answer.answered_at > now - 3600, *STANDING)
    )
    count, first, settled = connection.execute(hour).one()
    # who began minutes ago is not slow: the hour begins with its first answer, but a minute says nothing yet
    over = now - first if count else 0.0
    pace = 3600 * settled / over if over > 60 else None
    days = [{"day": int(at), "person": person, "answers": count} for at, person, count in rows]
    return {"days": days, "last_hour": count, "over": over, "pace": pace}


def _class_counts(connection: Connection) -> dict[int | None, int]:
    classes, found = read_class_map(connection), dict[int | None, int]()
    for class_id, count in connection.execute(_PICKED):
        today = None if class_id is None else classes.now(class_id)
        found[today] = found.get(today, 0) + count
    return found


def latest_answers(connection: Connection, limit: int = SAMPLE) -> list[dict[str, Any]]:
    """The latest standing answers with their questions, newest first."""
    statement = (
        select(
            *(Answer.class_id, Answer.seconds, Question.annotator_id, Question.item_id, Question.shortlist),
            *(
                Item.gold,
                Slot.gold.label("is_gold"),
                (Answer.kind == "typed").label("typed"),
                Question.slot_id,
                Question.way,
            ),
        )
        .join(Question, Question.id == Answer.question_id)
        .join(Item, Item.id == Question.item_id)
        .join(Slot, Slot.id == Question.slot_id)
        .where(*STANDING)
        .order_by(Answer.id.desc())
        .limit(limit)
    )
    rows = [dict(row) for row in connection.execute(statement).mappings()]
    return [{**row, "size": len(row["shortlist"])} for row in rows]


def gold_quality(latest: list[dict[str, Any]]) -> Mapping[int, dict[str, int]]:
    """Per annotator: gold answers, how many of their lists showed the right class, and the mistakes on each kind.

    Where it was shown, slips (a wrong class picked) and misses (None); where it was not, strays (a class picked). Gold
    lists show it more often than others do (`gold.choose_gold`), so mistakes of the two kinds must not be added up.
    Whoever typed a class that is not on the list said None to the list; whether they typed the right one is counted
    separately.
    """
    found: dict[int, dict[str, int]] = defaultdict(_NO_GOLD.copy)
    for row in latest:
        if not row["is_gold"]:
            continue
        mine = found[row["annotator_id"]]
        mine["gold"] += 1
        shown = row["gold"] in row["shortlist"]
        mine["gold_shown"] += shown
        picked = row["class_id"] in row["shortlist"]
        mine["gold_typed"] += row["typed"]
        mine["mistyped"] += row["typed"] and row["class_id"] != row["gold"]
        mine["misses"] += shown and not picked
        mine["slips"] += shown and picked and row["class_id"] != row["gold"]
        mine["strays"] += picked and not shown
    return found


def agreement(plain: list[dict[str, Any]]) -> dict[str, Any]:
    """How often two people agree about an item, over the pairs that could have disagreed.

    Shortlists differ, so two people are compared where one picked a class that the other was shown, or could have typed
    instead of another. Everybody counts once per item: where a None is asked again, each further list is another chance
    to disagree, but not to agree.
    """
    by_item: dict[int, dict[int, tuple[set[int], set[int]]]] = defaultdict(dict)
    named: dict[int, set[int]] = defaultdict(set)  # what anybody said of an item
    for row in plain:
        named[row["item_id"]].update(() if row["class_id"] is None else (row["class_id"],))
    for row in plain:
        shown, picked = by_item[row["item_id"]].setdefault(row["annotator_id"], (set(), set()))
        shown.update(named[row["item_id"]] if row["typed"] else row["shortlist"])
        picked.update(() if row["class_id"] is None else (row["class_id"],))
    agreeing = pairs = 0
    for people in by_item.values():
        for (shown, picked), (other_shown, other_picked) in combinations(people.values(), 2):
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
    """The time people have spent on answers, taking each to last as long as their latest ones on average."""
    given: dict[int, list[float]] = defaultdict(list)
    for row in latest:
        if row["seconds"] is not None:
            given[row["annotator_id"]].append(row["seconds"])
    if not given:
        return None
    return float(sum(row["answers"] * fmean(given[row["id"]]) for row in people if row["id"] in given)) / 3600


def measures(connection: Connection, points: int = POINTS) -> list[dict[str, Any]]:
    """What a trainer reported, oldest first, as a curve over the answers with about `points` points per name.

    Each step of the axis has its latest report. A report on more answers than a later one knew answers that were since
    taken back; it is left out, so that the curve never runs backwards.
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

"""What each way to ask costs, and how often it leads to a wrong class: full list, search, shortlist."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from shortlist.annotate.queue.ways import WAYS

AWAY = 300.0
"""Seconds for one answer after which somebody was elsewhere: such items are left out."""
SINGLE = 10
"""Places on a list that are counted one by one; later ones together."""
WIDE = 1.96
"""Standard errors on each side of a 95 % interval."""


def compare_ways(latest: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The latest standing answers (`stats.latest_answers`), way by way; nothing where no ways are compared."""
    if not any(row["way"] for row in latest):
        return []
    mine = {way: [row for row in latest if row["way"] == way] for way in WAYS}
    return [
        {
            "way": way,
            **_cost([row for row in rows if not row["is_gold"]]),
            **_mistakes([row for row in rows if row["is_gold"]]),
        }
        for way, rows in mine.items()
    ]


def _cost(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Seconds per item that got a class, with an interval: all that was spent, on lists that missed as well.

    A ratio of two sums over items, its standard error by linearisation.
    """
    spent: dict[int, list[float]] = defaultdict(list)
    got: Counter[int] = Counter()
    for row in rows:
        spent[row["slot_id"]].append(math.inf if row["seconds"] is None else row["seconds"])
        got[row["slot_id"]] += row["class_id"] is not None
    units = [(sum(each), got[slot]) for slot, each in spent.items() if max(each) <= AWAY]
    count, labelled = len(units), sum(done for _, done in units)
    found: dict[str, Any] = {"items": count, "labelled": labelled, "seconds": None}
    if count > 1 and labelled:
        mean = sum(seconds for seconds, _ in units) / labelled
        squares = sum((seconds - mean * done) ** 2 for seconds, done in units)
        error = math.sqrt(count / (count - 1) * squares) / labelled
        found["seconds"] = {"value": mean, "low": max(mean - WIDE * error, 0.0), "high": mean + WIDE * error}
    return found


def _mistakes(gold: list[dict[str, Any]]) -> dict[str, Any]:
    """On gold items: wrong answers, and how often a wrong class was taken that was shown, by its place on the list."""
    wrong = sum(_is_wrong(row) for row in gold)
    lists: Counter[int] = Counter()
    taken: Counter[int] = Counter()
    for row in gold:
        for place, shown in enumerate(row["shortlist"], 1):
            if shown != row["gold"]:
                lists[min(place, SINGLE + 1)] += 1
                taken[min(place, SINGLE + 1)] += shown == row["class_id"]
    listed = sum(1 for row in gold if row["shortlist"])
    return {
        "gold": len(gold),
        "wrong": _share(wrong, len(gold)),
        "taken": _share(taken.total(), listed),
        "by_place": [{"place": place, "shown": lists[place], "taken": taken[place]} for place in sorted(lists)],
    }


def _is_wrong(row: dict[str, Any]) -> bool:
    """None is wrong only where the right class was shown."""
    if row["class_id"] is None:
        return row["gold"] in row["shortlist"]
    return bool(row["class_id"] != row["gold"])


def _share(count: int, total: int) -> dict[str, float] | None:
    """A share and its interval (Wilson's)."""
    if not total:
        return None
    share, z = count / total, WIDE**2 / total
    middle = (share + z / 2) / (1 + z)
    half = WIDE / (1 + z) * math.sqrt(share * (1 - share) / total + z / (4 * total))
    return {"value": share, "low": max(middle - half, 0.0), "high": min(middle + half, 1.0)}

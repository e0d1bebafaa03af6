"""How far people agree about the same items: Krippendorff's alpha, by class and over time; who differs, about what.

Shortlists differ from person to person, so a None says something only where the list held a class that somebody else
gave the item: there it is a value of its own, elsewhere it is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, false, select

from shortlist.annotate.db.class_map import read_class_map
from shortlist.annotate.db.schema import Answer, Question, Slot
from shortlist.annotate.db.statements import STANDING

LATEST = 50_000
"""Answers that are looked at."""
ROUNDS, INTERVAL = 1000, (2.5, 97.5)
STEPS = 10
FEWEST = 20
"""Items that a figure by class or over time needs."""
REFUSED = -1
"""The value of a None to a list that held a class somebody else gave."""

Unit = dict[int, int]
"""What each person said of an item: person -> class, or REFUSED."""


@dataclass(frozen=True)
class Alpha:
    """1: perfect agreement, 0: as by chance; with a 95 % interval, over so many items."""

    value: float
    low: float
    high: float
    items: int


def alpha(units: Sequence[Unit], rounds: int = ROUNDS, seed: int = 0) -> Alpha | None:
    """Krippendorff's alpha for nominal values, items resampled for the interval; None: it is not defined.

    >>> alpha([{1: 0, 2: 0}, {1: 1, 2: 1}, {1: 0, 2: 1}]).value.__round__(3)
    0.444
    """
    units = [unit for unit in units if len(unit) > 1]
    values = {value: k for k, value in enumerate(sorted({value for unit in units for value in unit.values()}))}
    if len(values) < 2:
        return None
    counts = np.zeros((len(units), len(values)))
    for row, unit in enumerate(units):
        for value in unit.values():
            counts[row, values[value]] += 1
    whole = float(_alpha(np.ones((1, len(units))), counts)[0])
    rng = np.random.Generator(np.random.PCG64(seed))
    found = []
    for start in range(0, rounds, 100):
        weights = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), size=min(100, rounds - start))
        found.append(_alpha(weights.astype(np.float64), counts))
    drawn = np.concatenate(found)
    low, high = np.nanpercentile(drawn, INTERVAL) if not np.isnan(drawn).all() else (whole, whole)
    return Alpha(whole, float(low), float(high), len(units))


def _alpha(weights: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R,) under (R, U) weights of units whose values are counted in (U, V)."""
    size = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (size - 1)
    each = weights @ counts
    total = each.sum(axis=1)
    observed = 1 - weights @ agreeing / total
    expected = 1 - (each * (each - 1)).sum(axis=1) / (total * (total - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


def read_units(connection: Connection, limit: int = LATEST) -> tuple[list[Unit], list[float]]:
    """What several people said of the same items, by the time of the last word on each; and these times."""
    classes = read_class_map(connection)
    statement = (
        select(Question.item_id, Question.annotator_id, Question.shortlist, Question.inclusion, Question.served_at)
        .add_columns(Answer.class_id, Answer.kind, Answer.answered_at)
        .join(Answer, Answer.question_id == Question.id)
        .join(Slot, Slot.id == Question.slot_id)
        .where(Slot.gold == false(), *STANDING)
        .order_by(Answer.id.desc())
        .limit(limit)
    )
    given: dict[int, Unit] = defaultdict(dict)
    refused: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    last: dict[int, float] = {}
    for row in connection.execute(statement):
        typed = row.kind == "typed"
        seen = classes.read(row.shortlist, row.probabilities, row.class_id, typed=typed, served_at=row.served_at)
        said = seen.picked if seen.typed is None else seen.typed
        last[row.item_id] = max(last.get(row.item_id, 0.0), row.answered_at)
        if said is not None:
            given[row.item_id].setdefault(row.annotator_id, said)
        else:
            refused[row.item_id][row.annotator_id].update(seen.shortlist)
    for item, people in refused.items():
        named = set(given[item].values())
        for person, shown in people.items():
            if person not in given[item] and shown & named:
                given[item][person] = REFUSED
    several = sorted((last[item], item) for item, unit in given.items() if len(unit) > 1)
    return [given[item] for _, item in several], [at for at, _ in several]


def report(units: Sequence[Unit], times: Sequence[float]) -> dict[str, Any]:
    """All figures of the page: alpha, by class, over time, who agrees with whom, which classes are confused."""
    return {
        "alpha": alpha(units),
        "classes": by_class(units),
        "times": over_time(units, times),
        "pairs": pairs(units),
        "confusion": confusion(units),
    }


def by_class(units: Sequence[Unit]) -> dict[int, Alpha]:
    """Of each class against all others, where enough items were given it."""
    held = Counter(value for unit in units for value in set(unit.values()) if value != REFUSED)
    found = {}
    for value in sorted(k for k, count in held.items() if count >= FEWEST):
        one = alpha([{who: int(said == value) for who, said in unit.items()} for unit in units], rounds=200)
        if one is not None:
            found[value] = one
    return found


def over_time(units: Sequence[Unit], times: Sequence[float]) -> list[tuple[float, Alpha]]:
    """Of equal parts of the items, in their order; each with the time of its last answer."""
    steps = min(STEPS, len(units) // FEWEST)
    found = []
    for part in np.array_split(np.arange(len(units)), steps) if steps else ():
        one = alpha([units[place] for place in part], rounds=200)
        if one is not None:
            found.append((times[part[-1]], one))
    return found


def pairs(units: Sequence[Unit]) -> list[tuple[int, int, int, int]]:
    """(one person, another, items both spoke about, items on which they agree)."""
    both: Counter[tuple[int, int]] = Counter()
    same: Counter[tuple[int, int]] = Counter()
    for unit in units:
        for one, other in combinations(sorted(unit), 2):
            both[one, other] += 1
            same[one, other] += unit[one] == unit[other]
    return [(*who, count, same[who]) for who, count in sorted(both.items())]


def confusion(units: Sequence[Unit]) -> Mapping[tuple[int, int], int]:
    """(class, class) -> pairs of people of whom one said the one, another the other; the smaller first."""
    found: Counter[tuple[int, int]] = Counter()
    for unit in units:
        for one, other in combinations(unit.values(), 2):
            found[min(one, other), max(one, other)] += 1
    return found

"""What earlier lists and answers mean once classes were merged or retired. The rows themselves are never changed.

A merged class counts as shown only if every part that existed at that time was on the list: None to a list with one of
two parts leaves the merged class possible. Whoever picked a part picked the merged class, which was shown with the
part's probability. No item is of a retired class: an answer that picked it says None to the rest of its list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import select

from shortlist.annotate.db.quick import Runs
from shortlist.annotate.db.schema import classes

_ENDED = select(classes.c.id, classes.c.merged_into, classes.c.ended_at).where(classes.c.ended_at.is_not(None))
ENDED_IDS = select(classes.c.id).where(classes.c.ended_at.is_not(None))


class Seen(NamedTuple):
    """A list as it reads today: its classes, how likely each was to be shown, what was picked from it, or typed."""

    shortlist: list[int]
    inclusion: list[float]
    picked: int | None
    typed: int | None


@dataclass(frozen=True)
class ClassMap:
    """`into`: the class that an ended one was merged into, None if it was retired; `ended`: when that was."""

    into: dict[int, int | None]
    ended: dict[int, float]

    def now(self, class_id: int) -> int | None:
        """The class that this one is part of today; None: it was retired."""
        found = self.last(class_id)
        return None if found in self.into else found

    def last(self, class_id: int) -> int:
        """The class that this one is part of, in use or retired."""
        while (into := self.into.get(class_id)) is not None:
            class_id = into
        return class_id

    @cached_property
    def _parts(self) -> dict[int, list[int]]:
        """Merged class -> every id that is part of it today, its own among them."""
        found: dict[int, list[int]] = {}
        for old in self.into:
            today = self.now(old)
            if today is not None:
                found.setdefault(today, [today]).append(old)
        return found

    def read(
        self,
        shortlist: Sequence[int],
        inclusion: Sequence[float],
        answer: int | None,
        *,
        typed: bool,
        served_at: float,
    ) -> Seen:
        """A question served at that time, with its answer: a class of the list or, if it was typed, any class."""
        picked = answer if answer in shortlist else None
        wrote = answer if typed else None
        if not self.into:
            return Seen(list(shortlist), list(inclusion), picked, wrote)
        today = None if picked is None else self.now(picked)
        chances: dict[int, float] = {}
        for old, chance in zip(shortlist, inclusion, strict=True):
            current = self.now(old)
            if current is None:
                continue
            if current == today:
                chances[current] = chance if old == picked else chances.get(current, chance)
            elif self._whole(current, shortlist, served_at):
                chances[current] = min(chance, chances.get(current, chance))
        return Seen(list(chances), list(chances.values()), today, None if wrote is None else self.now(wrote))

    def _whole(self, class_id: int, shortlist: Sequence[int], served_at: float) -> bool:
        """Whether every part that existed at that time is on the list."""
        needed = (
            part for part in self._parts.get(class_id, [class_id]) if self.ended.get(part, served_at) >= served_at
        )
        return all(part in shortlist for part in needed)


def read_class_map(connection: Runs) -> ClassMap:
    """As it is now."""
    rows = connection.execute(_ENDED).mappings().all()
    return ClassMap({row["id"]: row["merged_into"] for row in rows}, {row["id"]: row["ended_at"] for row in rows})


def ended_classes(connection: Runs) -> list[int]:
    """The ids of merged and retired classes, which are on no list any more. A `Quick` transaction reads them once."""
    memo: dict[str, Any] = getattr(connection, "memo", {})
    if "ended" not in memo:
        memo["ended"] = sorted(connection.execute(ENDED_IDS).scalars())
    found: list[int] = memo["ended"]
    return found

"""Who gets which question next. Every step costs the same whatever the number of items and answers."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, exists, false, or_, select, update

from shortlist.annotate.chooser import Choice, Chooser
from shortlist.annotate.rows import ClassNames, free_slot, insert_id, next_rank, refused_classes
from shortlist.annotate.schema import Annotator, Item, Question, Slot
from shortlist.annotate.store import Store

RECLAIM_AT_ONCE = 16
HINT_SECONDS = 60.0


@dataclass(frozen=True)
class Served:
    """A question as an annotator may see it: no item name (it may give the class away), no gold class."""

    id: int
    attempt: int
    item_id: int
    kind: str
    text: str | None
    media_type: str | None
    shortlist: list[int]
    names: list[str]
    served_at: float
    lease_until: float


class Leases:
    """Gives out slots by rank and takes back those whose lease ran out."""

    def __init__(self, store: Store, chooser: Chooser, gold_every: int, lease_seconds: float) -> None:
        self.store = store
        self.chooser = chooser
        self.gold_every = gold_every
        self.lease_seconds = lease_seconds
        self.classes = ClassNames()
        # Below this rank there is nothing for this annotator, because freed slots go to the end. Only a hint, forgotten
        # after a minute: on PostgreSQL a rank may become visible after a higher one.
        self._hints: dict[int, tuple[int, float]] = {}

    def held(self, connection: Connection, annotator_id: int) -> list[RowMapping]:
        """The annotator's open questions with their slots, oldest first, the slots locked."""
        mine = (Question.annotator_id == annotator_id, Question.state == "open")
        if not self.store.is_sqlite:
            # First lock, then read: a row read before the wait for its lock would show the past.
            lock = select(Slot.id).join(Question, Question.slot_id == Slot.id).where(*mine).with_for_update(of=Slot)
            connection.execute(lock).all()
        statement = (
            select(*_QUESTION, Slot.gold, Item.kind, Item.text, Item.media_type)
            .join(Slot, Slot.id == Question.slot_id)
            .join(Item, Item.id == Question.item_id)
            .where(*mine)
            .order_by(Question.id)
        )
        return list(connection.execute(statement).mappings())

    def top_up(self, connection: Connection, annotator: RowMapping, hold: int, now: float, seeds: Any) -> list[Served]:
        """Renew what the annotator holds and lease more until there are `hold` (or no more to be had)."""
        until = now + self.lease_seconds
        rows = self.held(connection, annotator["id"])
        if rows:
            held = [row["slot_id"] for row in rows]
            connection.execute(update(Slot).where(Slot.id.in_(held)).values(lease_until=until))
        leased = 0
        while len(rows) + leased < hold and self._lease(connection, annotator, now, seeds()):
            leased += 1
        if leased:
            rows = self.held(connection, annotator["id"])
        names = self.classes.all(connection)
        return [_served(row, names, until) for row in rows]

    def _lease(self, connection: Connection, annotator: RowMapping, now: float, seed: int) -> bool:
        while True:
            freed = self._reclaim(connection, now)
            slot = self._find(connection, annotator["id"])
            if slot is None:
                if freed < RECLAIM_AT_ONCE:
                    return False
                continue
            if seed % self.gold_every == 0 and self._lease_gold(connection, annotator, now, seed):
                return True
            refused = refused_classes(connection, slot["slot_id"]) if slot["turn"] else []
            choice = self._choose(connection, slot["name"], refused, seed)
            if choice is None:
                self._close(connection, slot["item_id"])
                continue
            taken = {"state": "leased", "annotator_id": annotator["id"], "lease_until": now + self.lease_seconds}
            connection.execute(update(Slot).where(Slot.id == slot["slot_id"]).values(taken))
            _ask(connection, slot, annotator["id"], choice, seed, now)
            return True

    def _choose(self, connection: Connection, item: str, refused: Sequence[int], seed: int) -> Choice | None:
        return self.chooser.choose(item, len(self.classes.all(connection)), refused, seed)

    def _find(self, connection: Connection, annotator_id: int) -> RowMapping | None:
        """The first free slot that this annotator may have: of no item they spoke about in another slot or turn."""
        start, made = self._hints.get(annotator_id, (0, 0.0))
        if time.monotonic() - made > HINT_SECONDS:
            start, made = 0, time.monotonic()
        spoken = exists().where(
            Question.annotator_id == annotator_id,
            Question.item_id == Slot.item_id,
            Question.state != "expired",
            or_(Question.slot_id != Slot.id, Question.turn == Slot.turn),
        )
        statement = (
            select(Slot.id.label("slot_id"), Slot.item_id, Slot.turn, Slot.rank, Item.name)
            .join(Item, Item.id == Slot.item_id)
            .where(Slot.gold == false(), Slot.state == "free", Slot.rank >= start, ~spoken)
            .order_by(Slot.rank)
            .limit(1)
        )
        found = connection.execute(self.store.locked(statement, of=Slot, skip=True)).mappings().first()
        self._hints[annotator_id] = (next_rank(connection) if found is None else found["rank"], made)
        return found

    def _reclaim(self, connection: Connection, now: float) -> int:
        """Take back some leases that ran out; returns how many."""
        statement = (
            select(Slot.id.label("slot_id"), Slot.gold, Slot.annotator_id)
            .where(Slot.state == "leased", Slot.lease_until <= now)
            .order_by(Slot.lease_until)
            .limit(RECLAIM_AT_ONCE)
        )
        rows = connection.execute(self.store.locked(statement, of=Slot, skip=True)).mappings().all()
        for row in rows:
            expire_slot(connection, row)
            self._hints.pop(row["annotator_id"], None)  # the item's other slots are open to its annotator again
        return len(rows)

    def _lease_gold(self, connection: Connection, annotator: RowMapping, now: float, seed: int) -> bool:
        """Ask the annotator's next gold item, in a slot made for them alone."""
        seen = connection.execute(select(Annotator.gold_seen).where(Annotator.id == annotator["id"])).scalar_one()
        statement = select(Item.id, Item.name).where(Item.gold.is_not(None), Item.id > seen).order_by(Item.id).limit(1)
        item = connection.execute(statement).mappings().first()
        choice = self._choose(connection, item["name"], [], seed) if item is not None else None
        if item is None or choice is None:
            return False
        slot = {
            "item_id": item["id"],
            "number": annotator["id"],
            "gold": True,
            "state": "leased",
            "rank": -1,
            "turn": 0,
        }
        slot |= {"annotator_id": annotator["id"], "lease_until": now + self.lease_seconds}
        slot_id = insert_id(connection, Slot, slot)
        connection.execute(update(Annotator).where(Annotator.id == annotator["id"]).values(gold_seen=item["id"]))
        _ask(connection, {**slot, "slot_id": slot_id}, annotator["id"], choice, seed, now)
        return True

    def _close(self, connection: Connection, item_id: int) -> None:
        """The policy asks this item no more: its free slots leave the queue."""
        connection.execute(update(Item).where(Item.id == item_id).values(state="closed"))
        free = (Slot.item_id == item_id, Slot.state == "free")
        connection.execute(update(Slot).where(*free).values(state="closed"))


_QUESTION = (
    Question.id,
    Question.slot_id,
    Question.item_id,
    Question.attempt,
    Question.shortlist,
    Question.served_at,
)


def expire_slot(connection: Connection, slot: RowMapping) -> None:
    """End a slot's open question and put the slot back."""
    open_question = (Question.slot_id == slot["slot_id"], Question.state == "open")
    connection.execute(update(Question).where(*open_question).values(state="expired"))
    free_slot(connection, slot)


def _ask(connection: Connection, slot: Any, annotator_id: int, choice: Choice, seed: int, now: float) -> int:
    return insert_id(
        connection,
        Question,
        {
            "slot_id": slot["slot_id"],
            "item_id": slot["item_id"],
            "annotator_id": annotator_id,
            "turn": slot["turn"],
            "shortlist": list(choice.shortlist),
            "policy": choice.policy,
            "policy_version": choice.policy_version,
            "probabilities": list(choice.probabilities),
            "seed": seed,
            "state": "open",
            "attempt": 0,
            "served_at": now,
        },
    )


def _served(row: RowMapping, names: Sequence[str], until: float) -> Served:
    return Served(
        id=row["id"],
        attempt=row["attempt"],
        item_id=row["item_id"],
        kind=row["kind"],
        text=row["text"],
        media_type=row["media_type"],
        shortlist=row["shortlist"],
        names=[names[k] for k in row["shortlist"]],
        served_at=row["served_at"],
        lease_until=until,
    )

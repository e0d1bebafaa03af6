"""Who gets which question next. No step takes longer where there are more items or answers."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import BigInteger, Float, bindparam, cast, exists, false, func, or_, select, true, union_all, update

from shortlist.annotate.db.class_map import ended_classes
from shortlist.annotate.db.quick import Quick, Row, Rows, Runs
from shortlist.annotate.db.schema import items, questions, slots
from shortlist.annotate.db.statements import (
    ASKABLE,
    LEASE,
    LEASE_GOLD,
    count_classes,
    expect_classes,
    free_slot,
    next_rank,
    refused_classes,
    reopen,
    set_slot,
    shown_classes,
)
from shortlist.annotate.db.steps import Steps
from shortlist.annotate.db.store import Store
from shortlist.annotate.queue.chooser import Choice, Chooser
from shortlist.annotate.queue.gold import gold_like

RECLAIM_AT_ONCE = 16
HINT_SECONDS = 60.0
LOWEST = -(1 << 62)  # before every rank
WANTED_AT_ONCE, LOOKS = 32, 8  # of a policy's front: items looked up together, and lookups per request
GOLD_AT_ONCE = 16  # gold items looked at on each side
PRIME = (1 << 31) - 1

_Q, _S, _I = questions.c, slots.c, items.c
_MINE = (_Q.annotator_id == bindparam("annotator"), _Q.state == "open")
_SHOWN = (_I.kind, _I.text, _I.media_type)
_HELD = (
    select(_Q.id, _Q.slot_id, _Q.item_id, _Q.attempt, _Q.shortlist, _Q.served_at, *_SHOWN)
    .add_columns(_S.gold, _S.turn, _S.annotator_id)
    .join(slots, _S.id == _Q.slot_id)
    .join(items, _I.id == _Q.item_id)
    .where(*_MINE)
    .order_by(_Q.id)
)
_RENEW = update(slots).where(_S.id.in_(select(_Q.slot_id).where(*_MINE))).values(lease_until=bindparam("until"))
# the annotator was asked about the item in another slot, or in this turn of this slot
_SPOKEN = exists().where(
    _Q.annotator_id == bindparam("annotator"),
    _Q.item_id == _S.item_id,
    _Q.state != "expired",
    or_(_Q.slot_id != _S.id, _Q.turn == _S.turn),
)
_FIND = (
    select(_S.id.label("slot_id"), _S.item_id, _S.turn, _S.rank, _S.gold, *_SHOWN)
    .join(items, _I.id == _S.item_id)
    .where(_S.gold == false(), _S.state == "free", _S.rank >= bindparam("start"), ~_SPOKEN)
    .order_by(_S.rank)
    .limit(1)
)
# slots of items that a policy wants, closed ones included: it has changed its mind. Never gold ones, which it may not
# know yet. Written so that SQLite looks the items up instead of walking through all free slots
_WAITING = (_S.state != "leased", _S.state != "done", ~_S.gold)
_WANTED = (
    select(_S.id, _S.item_id, _SPOKEN.label("spoken"))
    .where(_S.item_id.in_(bindparam("wanted", expanding=True)), *_WAITING, ASKABLE)
    .order_by(_S.rank.desc())
)
_TAKE = (
    select(_S.id.label("slot_id"), _S.item_id, _S.turn, _S.state, _S.gold, *_SHOWN)
    .join(items, _I.id == _S.item_id)
    .where(_S.id == bindparam("slot"), *_WAITING)
)
_CLOSE = (
    update(items).where(_I.id == bindparam("item")).values(state="closed"),
    update(slots).where(_S.item_id == bindparam("item"), _S.state == "free").values(state="closed"),
)
_EXPIRED = (
    select(_S.id.label("slot_id"), _S.gold, _S.turn, _S.annotator_id)
    .where(_S.state == "leased", _S.lease_until <= bindparam("now"))
    .order_by(_S.lease_until)
    .limit(RECLAIM_AT_ONCE)
)
_EXPIRE = update(questions).where(_Q.slot_id == bindparam("slot"), _Q.state == "open").values(state="expired")
# one of the gold items around a place drawn by chance, in an order drawn by chance: in one order for all, the place in
# a session would tell gold items from others
_GOLD = _I.gold.is_not(None)
_LOW, _HIGH = (select(end(_I.id)).where(_GOLD).scalar_subquery() for end in (func.min, func.max))
_PLACE = _LOW + cast((_HIGH - _LOW) * bindparam("place", type_=Float), BigInteger)
_AROUND = union_all(
    *(
        select(select(_I.id).where(_GOLD, side).order_by(order).limit(GOLD_AT_ONCE).subquery().c.id)
        for side, order in ((_I.id >= _PLACE, _I.id), (_I.id < _PLACE, _I.id.desc()))
    )
)
_NEXT_GOLD = (
    select(_I.id.label("item_id"), _I.gold.label("truth"), *_SHOWN)
    .where(_I.id.in_(_AROUND))
    .where(~exists().where(_S.item_id == _I.id, _S.annotator_id == bindparam("annotator")))
    .order_by(_I.id % PRIME * bindparam("factor", type_=BigInteger) % PRIME)
    .limit(1)
)
# gold items that this annotator is asked about again, after None, as they would be about any other
_AGAIN = (
    select(_S.id.label("slot_id"), _S.item_id, _S.turn, _S.gold, _I.gold.label("truth"), *_SHOWN)
    .join(items, _I.id == _S.item_id)
    .where(_S.gold == true(), _S.state == "free", _S.annotator_id == bindparam("annotator"), ~_SPOKEN)
    .order_by(_S.id)
    .limit(1)
)


@dataclass(frozen=True)
class Served:
    """A question as an annotator may see it: no item name (it may give the class away) and no gold class."""

    id: int
    attempt: int
    item_id: int
    kind: Literal["image", "text", "audio"]
    text: str | None
    media_type: str | None
    shortlist: list[int]
    names: list[str]
    descriptions: list[str | None]
    turn: int
    served_at: float
    lease_until: float


@dataclass(frozen=True)
class Ask:
    """A request for questions within one transaction: by whom, when, and where seeds come from."""

    connection: Quick
    annotator_id: int
    now: float
    seeds: Callable[[], int]
    held: Rows
    """Their open questions, oldest first: sent, not yet waited for."""

    @property
    def num_classes(self) -> int:
        """How many classes there are now."""
        return count_classes(self.connection)

    @property
    def ended(self) -> list[int]:
        """Classes that were merged or retired: on no list any more."""
        return ended_classes(self.connection)


class Leases:
    """Gives out slots by rank and takes back those whose lease has run out."""

    def __init__(self, store: Store, chooser: Chooser, gold_every: int, lease_seconds: float) -> None:
        self.store = store
        self.chooser = chooser
        self.gold_every = gold_every
        self.lease_seconds = lease_seconds
        # every row that is read is locked: after a wait for a lock, PostgreSQL shows the others as they were before it
        self._held = store.locked(_HELD, of=[slots, questions])
        self._find_slot = store.locked(_FIND, of=slots, skip=True)
        self._take_slot = store.locked(_TAKE, of=slots, skip=True)
        self._find_again = store.locked(_AGAIN, of=slots, skip=True)
        self._find_expired = store.locked(_EXPIRED, of=slots, skip=True)
        # Below this rank there is nothing for this annotator: a freed slot goes to the end, and of an item's free slots
        # the one with the lowest rank is taken first. A hint only, forgotten after a minute, because on PostgreSQL a
        # rank may become visible after a higher one.
        self._hints: dict[int, tuple[int, float]] = {}

    def held(self, connection: Quick, annotator_id: int) -> Rows:
        """The annotator's open questions with their slots, oldest first, the slots locked."""
        return connection.execute(self._held, {"annotator": annotator_id})

    def look(self, connection: Quick, annotator_id: int, now: float, seeds: Callable[[], int]) -> Ask:
        """Send what `top_up` will need first."""
        if "expired" not in connection.memo:
            connection.expect(self._find_expired, {"now": now})
        expect_classes(connection)
        return Ask(connection, annotator_id, now, seeds, self.held(connection, annotator_id))

    def top_up(self, ask: Ask, hold: int) -> Steps[list[Served]]:
        """Renew what the annotator holds and lease more until there are `hold` (or no more to be had)."""
        connection, until = ask.connection, ask.now + self.lease_seconds
        rows: list[Row] = list(ask.held.all())
        if rows:
            connection.execute(_RENEW, {"annotator": ask.annotator_id, "until": until})
        hold = min(hold, self.chooser.most_held)
        while len(rows) < hold and (row := self._lease(ask)) is not None:
            rows.append(row)
        named = connection.memo.setdefault("named", set())
        named.update(k for row in rows for k in row["shortlist"])
        yield
        shown = shown_classes(connection, named)
        return [_served(row, [shown[k] for k in row["shortlist"]], until) for row in rows]

    def _lease(self, ask: Ask) -> Row | None:
        while True:
            freed, seed = self._reclaim(ask), ask.seeds()
            golden, waiting = self._find_gold(ask, seed), self._look_again(ask)
            wanted = self._find_wanted(ask)
            found = wanted or self._find(ask)
            gold, again = golden.first(), waiting.first()
            slot = found or again  # with nothing else left, a gold item is asked about again all the same
            if slot is None:
                if freed < RECLAIM_AT_ONCE:
                    return None
                continue
            # a gold item that is asked about again takes this slot's place, as if its refused classes were the slot's
            asked = again or slot
            refused = refused_classes(ask.connection, asked["slot_id"]) if asked["turn"] else []
            left_out = [*refused, *ask.ended]
            choice = self.chooser.choose(slot["item_id"], ask.num_classes, left_out, seed)
            if choice is None:
                # that the policy is done with an item says nothing of a gold one that would take its place
                if asked is slot or self.chooser.choose(slot["item_id"], ask.num_classes, ask.ended, seed) is None:
                    self._close(ask, slot)
                else:
                    self._close(ask, asked)
                    self._put_back(wanted)
                continue
            # drawn for every question as well
            other = None if gold is None else gold_like(choice, gold["truth"], ask.num_classes, ask.ended, seed)
            if again is not None:
                made = self._ask(ask, again, gold_like(choice, again["truth"], ask.num_classes, left_out, seed), seed)
            # nothing comes between None and the same item again, gold or not
            elif gold is not None and other is not None and not slot["turn"] and seed % self.gold_every == 0:
                made = self._ask_gold(ask, gold, other, seed)
            else:
                return self._ask(ask, slot, choice, seed)
            self._put_back(wanted)
            return made

    def _put_back(self, wanted: Row | None) -> None:
        """Leave an item of the policy's front there: a gold one is asked about in its place."""
        if wanted is not None:
            self.chooser.front.put(wanted["item_id"])

    def _find_wanted(self, ask: Ask) -> Row | None:
        """A slot of the first item at the policy's front that this annotator may have."""
        front, start = self.chooser.front, 0
        for _ in range(LOOKS):
            head = front.head(start, WANTED_AT_ONCE)
            if not head:
                return None
            rows = ask.connection.execute(_WANTED, {"annotator": ask.annotator_id, "wanted": head}).mappings().all()
            # the last row of an item is its first slot
            mine = {row["item_id"]: row["id"] for row in rows if not row["spoken"]}
            gone = set(head) - {row["item_id"] for row in rows}
            found = next(filter(None, (self._take(ask, mine[item]) for item in head if item in mine)), None)
            front.drop(gone if found is None else {*gone, found["item_id"]}, start + len(head))
            if found is not None:
                return found
            start += len(head) - len(gone)
        return None

    def _take(self, ask: Ask, slot_id: int) -> Row | None:
        """The slot, unless somebody else has it by now."""
        found = ask.connection.execute(self._take_slot, {"slot": slot_id}).mappings().first()
        if found is not None and found["state"] == "closed":
            reopen(ask.connection, found["item_id"])
        return found

    def _find(self, ask: Ask) -> Row | None:
        """The first free slot by rank that this annotator may have."""
        start, made = self._hints.get(ask.annotator_id, (LOWEST, 0.0))
        if time.monotonic() - made > HINT_SECONDS:
            start, made = LOWEST, time.monotonic()
        wanted = {"annotator": ask.annotator_id, "start": start}
        found = ask.connection.execute(self._find_slot, wanted).mappings().first()
        self._hints[ask.annotator_id] = (next_rank(ask.connection) if found is None else found["rank"], made)
        return found

    def _reclaim(self, ask: Ask) -> int:
        """Take back some leases that have run out; returns how many. People who are being served now keep theirs."""
        memo = ask.connection.memo
        if memo.get("expired", RECLAIM_AT_ONCE) < RECLAIM_AT_ONCE:
            return 0  # in this transaction there are no more
        rows = ask.connection.execute(self._find_expired, {"now": ask.now}).mappings().all()
        memo["expired"] = len(rows)
        served = {ask.annotator_id, *ask.connection.together_with}
        lost = [row for row in rows if row["annotator_id"] not in served]
        for row in lost:
            self.expire(ask.connection, row)
        return len(lost)

    def expire(self, connection: Runs, slot: Row) -> None:
        """End a slot's open question and put the slot back."""
        connection.execute(_EXPIRE, {"slot": slot["slot_id"]})
        # the holder may now have the item's other slots, also those passed over so far
        self._hints.pop(slot["annotator_id"], None)
        free_slot(connection, slot, slot["turn"])

    def _find_gold(self, ask: Ask, seed: int) -> Rows:
        """A gold item for this annotator, drawn by the seed. Looked for at every question, or the time would tell."""
        dice = random.Random(seed)
        drawn = {"annotator": ask.annotator_id, "place": dice.random(), "factor": dice.randrange(1, PRIME)}
        return ask.connection.execute(_NEXT_GOLD, drawn)

    def _look_again(self, ask: Ask) -> Rows:
        """A gold item that waits to be asked about again. Looked for at every question, too."""
        return ask.connection.execute(self._find_again, {"annotator": ask.annotator_id})

    def _ask(self, ask: Ask, slot: Row, choice: Choice, seed: int) -> Row:
        """Lease the slot."""
        values = _question(ask, slot, choice, seed)
        lease = {"slot": slot["slot_id"], "to_state": "leased", "to_turn": slot["turn"], "holder": ask.annotator_id}
        lease |= {"until": ask.now + self.lease_seconds, **_with("new_", values)}
        return {**slot, **values, "id": LEASE.run(ask.connection, lease)}

    def _ask_gold(self, ask: Ask, item: Row, choice: Choice, seed: int) -> Row:
        """Ask about a gold item instead, in a slot made for this annotator alone."""
        values = _question(ask, {**item, "slot_id": None, "turn": 0}, choice, seed)
        slot = {"item_id": item["item_id"], "number": ask.annotator_id, "annotator_id": ask.annotator_id}
        slot |= {"gold": True, "state": "leased", "rank": -1, "turn": 0, "lease_until": ask.now + self.lease_seconds}
        given = {**_with("slot_", slot), **_with("new_", values)}
        return {**item, **values, "id": LEASE_GOLD.run(ask.connection, given)}

    def _close(self, ask: Ask, slot: Row) -> None:
        """The policy does not ask about this item any more: its free slots leave the queue."""
        if slot["gold"]:
            set_slot(ask.connection, slot["slot_id"], "closed", slot["turn"], ask.annotator_id)
            return
        for statement in _CLOSE:
            ask.connection.execute(statement, {"item": slot["item_id"]})


def _with(before: str, values: Row) -> dict[str, Any]:
    return {before + name: value for name, value in values.items()}


def _question(ask: Ask, slot: Row, choice: Choice, seed: int) -> dict[str, Any]:
    return {
        "slot_id": slot["slot_id"],
        "item_id": slot["item_id"],
        "annotator_id": ask.annotator_id,
        "turn": slot["turn"],
        "shortlist": list(choice.shortlist),
        "policy": choice.policy,
        "policy_version": choice.policy_version,
        "probabilities": list(choice.inclusion),
        "seed": seed,
        "state": "open",
        "attempt": 0,
        "served_at": ask.now,
        "way": choice.way,
    }


def _served(row: Row, shown: Sequence[Row], until: float) -> Served:
    return Served(
        id=row["id"]() if callable(row["id"]) else row["id"],  # a new one is waited for only now
        attempt=row["attempt"],
        item_id=row["item_id"],
        kind=row["kind"],
        text=row["text"],
        media_type=row["media_type"],
        shortlist=row["shortlist"],
        names=[one["name"] for one in shown],
        descriptions=[one["description"] for one in shown],
        turn=row["turn"],
        served_at=row["served_at"],
        lease_until=until,
    )

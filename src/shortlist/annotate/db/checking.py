"""Whether the tables agree with each other: what `shortlist annotate check` asks beyond the database's own check."""

from collections.abc import Iterator

from sqlalchemy import Connection, and_, case, func, or_, select

from shortlist.annotate.db.schema import Annotator, Answer, Item, Question, Slot
from shortlist.annotate.db.store import Store


def check_rows(store: Store) -> list[str]:
    """What does not add up, one line each; empty when nothing is wrong."""
    with store.read() as connection:
        return [*_counters(connection), *_items(connection), *_leases(connection)]


def _counters(connection: Connection) -> Iterator[str]:
    """The annotators' counters against their answers that stand."""
    skip = Answer.kind == "skip"
    standing = (
        select(
            Question.annotator_id,
            func.sum(case((skip, 0), else_=1)).label("answers"),
            func.sum(case((and_(~skip, Answer.class_id.is_(None)), 1), else_=0)).label("nones"),
            func.sum(case((skip, 1), else_=0)).label("skips"),
        )
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.kind != "undo", Answer.attempt == Question.attempt)
        .group_by(Question.annotator_id)
        .subquery()
    )
    wrong = or_(
        *(Annotator.__table__.c[name] != func.coalesce(standing.c[name], 0) for name in ("answers", "nones", "skips"))
    )
    found = select(Annotator.id).join(standing, standing.c.annotator_id == Annotator.id, isouter=True).where(wrong)
    for one in connection.execute(found.order_by(Annotator.id)).scalars():
        yield f"annotator {one}: the counters are not those of the answers"


def _items(connection: Connection) -> Iterator[str]:
    """Every item against its slots."""
    waiting = func.sum(case((Slot.state != "done", 1), else_=0)).label("waiting")
    slots = select(Slot.item_id, waiting).where(~Slot.gold).group_by(Slot.item_id).subquery()
    differs = or_(Item.pending != slots.c.waiting, (Item.state == "done") != (slots.c.waiting == 0))
    found = select(Item.id).join(slots, slots.c.item_id == Item.id).where(Item.gold.is_(None), differs)
    closed = found.where(or_(Item.state != "closed", Item.pending != slots.c.waiting)).order_by(Item.id)
    for one in connection.execute(closed).scalars():
        yield f"item {one}: what waits is not what its slots say"


def _leases(connection: Connection) -> Iterator[str]:
    """Every open question has its slot, and no slot two live ones."""
    opened = select(Question.slot_id).where(Question.state == "open")
    orphans = select(Slot.id).where(
        or_(and_(Slot.state == "leased", Slot.id.not_in(opened)), and_(Slot.state != "leased", Slot.id.in_(opened)))
    )
    for one in connection.execute(orphans.order_by(Slot.id)).scalars():
        yield f"slot {one}: leased without a question, or asked without a lease"

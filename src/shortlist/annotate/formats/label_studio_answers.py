"""Answers from Label Studio: its JSON, JSON_MIN and CSV exports of the tasks that `label_studio.py` wrote.

Importing the same file twice changes nothing: by then, the annotator's answer about the item is known.
"""

import csv
import io
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select

from shortlist.annotate.db.schema import Annotator, Answer, Item, Question, Slot, questions, slots
from shortlist.annotate.db.statements import class_names, count_answer, insert_id, set_slot, settle_item, take_turns
from shortlist.annotate.formats.label_studio import NONE_ALIAS, NONE_NAME
from shortlist.annotate.project.people import find_annotator, insert_annotator
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.review.class_changes import ask_about_retired
from shortlist.annotate.project.sources import check_name
from shortlist.errors import InputError
from shortlist.internal.files import separator_of

PREFIX = "label-studio:"  # of the names of people who come from there


@dataclass
class AnswersOutcome:
    """How many answers came in, how many were known already, and what was left out and why."""

    added: int = 0
    known: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    """One annotation of one task, as it stands in the file."""

    where: str
    stochastic: Any
    choice: Any
    annotator: Any
    seconds: Any
    at: Any = None
    skipped: bool = False


def import_file(project: Project, path: Path, *, strict: bool = False) -> AnswersOutcome:
    """Read an export by its ending: .csv, or JSON of either kind."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return import_answers(project, data, is_csv=path.suffix.lower() == ".csv", strict=strict)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def import_answers(project: Project, data: bytes, *, is_csv: bool, strict: bool = False) -> AnswersOutcome:
    """Import a whole export in one transaction; with `strict`, one bad answer refuses all."""
    found = list(_read_csv(data) if is_csv else _read_json(data))
    if found and all(one.stochastic is None for one in found):
        raise InputError(
            "no task here is one of ours (none has `stochastic`): expected Label Studio's export of the tasks that "
            "`shortlist annotate export PROJECT tasks.json --format label-studio` wrote"
        )
    outcome = AnswersOutcome()
    with project.store.write() as connection:
        take_turns(connection)
        names = class_names(connection)
        for one in found:
            try:
                if _store(connection, one, names):
                    outcome.added += 1
                else:
                    outcome.known += 1
            except InputError as error:
                if strict:
                    raise InputError(f"nothing imported: {one.where}: {error}") from error
                outcome.skipped.append((one.where, str(error)))
    ask_about_retired(project)
    return outcome


def _read_json(data: bytes) -> Iterator[Found]:
    try:
        tasks = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(tasks, list):
        raise InputError("expected a list of tasks, as Label Studio exports it")
    for place, task in enumerate(tasks, start=1):
        if not isinstance(task, dict):
            raise InputError(f"task {place}: expected an object")
        where = f"task {task.get('id', place)}"
        if "annotations" not in task:
            yield from _flat(where, task)
            continue
        content = task.get("data")
        stochastic = content.get("stochastic") if isinstance(content, dict) else None
        for annotation in task["annotations"] if isinstance(task["annotations"], list) else []:
            if isinstance(annotation, dict):
                by, seconds = annotation.get("completed_by"), annotation.get("lead_time")
                choice, skipped = _choice(annotation.get("result")), bool(annotation.get("was_cancelled"))
                at = annotation.get("updated_at") or annotation.get("created_at")
                yield Found(where, stochastic, choice, by, seconds, at, skipped)


def _choice(result: Any) -> Any:
    """The one choice of an annotation's result; None where there is none."""
    for part in result if isinstance(result, list) else []:
        value = part.get("value") if isinstance(part, dict) else None
        choices = value.get("choices") if isinstance(value, dict) else None
        if isinstance(choices, list) and len(choices) == 1:
            return choices[0]
    return None


def _read_csv(data: bytes) -> Iterator[Found]:
    try:
        text = data.decode("utf-8-sig")
        separator = separator_of(text.partition("\n")[0])  # a spreadsheet may have saved it anew
        for place, row in enumerate(csv.DictReader(io.StringIO(text), delimiter=separator), start=2):
            yield from _flat(f"row {place}", {key: value for key, value in row.items() if key is not None})
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"not a CSV file in UTF-8: {error}") from error


def _flat(where: str, row: dict[str, Any]) -> Iterator[Found]:
    """A record of JSON_MIN or CSV: the data's fields beside `answer`, `annotator` and `lead_time`."""
    if row.get("annotation_id", 0) in (None, ""):  # with all tasks exported: one that nobody has answered yet
        return
    stochastic = row.get("stochastic")
    if isinstance(stochastic, str):
        try:
            stochastic = json.loads(stochastic)
        except (ValueError, RecursionError):
            stochastic = None
    at = row.get("updated_at") or row.get("created_at")
    yield Found(where, stochastic, row.get("answer"), row.get("annotator"), row.get("lead_time"), at)


def _store(connection: Connection, found: Found, names: Sequence[str]) -> bool:
    """Store one answer; False if it is there already."""
    asked = _check_asked(found.stochastic, len(names))
    answer = None if found.skipped else _check_answer(found.choice, asked["classes"], names)
    item_id = connection.execute(select(Item.id).where(Item.name == asked["item_id"])).scalar()
    if item_id is None:
        raise InputError(f"there is no item {asked['item_id']!r}")
    name, kind, now = _name(found.annotator), "skip" if found.skipped else "answer", _moment(found.at)
    known, annotator_id = _known(connection, item_id), find_annotator(connection, name)
    # the seed tells apart two tasks about an item that got the same list by chance
    task = [one for one in known if (one.shortlist, one.seed) == (asked["classes"], asked["seed"])]
    same = [one for one in task if (one.kind, one.class_id) == (kind, answer)]
    if any(one.annotator_id == annotator_id or _is_same_person(one, name, now) for one in same):
        return False
    if any(one.annotator_id == annotator_id for one in task):
        who = name.removeprefix(PREFIX)
        raise InputError(f"{who!r} answered the same list for item {asked['item_id']!r} differently before")
    if annotator_id is None:  # somebody new, without a way to sign in
        annotator_id = insert_annotator(connection, name, time.time(), active=False)
    if found.skipped:
        _store_skip(connection, asked, item_id, annotator_id, found.seconds, now)
        return True
    slot_id, turn, gold = _take_slot(connection, item_id, annotator_id)
    _log(connection, asked, (slot_id, item_id, annotator_id, turn), "answer", answer, found.seconds, now)
    if not gold:
        settle_item(connection, item_id, -1)
    return True


def _is_same_person(one: Any, name: str, now: float) -> bool:
    """Whether this answer is known under the other kind of name: some exports have numbers, others e-mail addresses."""
    return one.name.startswith(PREFIX) and ("@" in one.name) != ("@" in name) and one.answered_at == now


def _store_skip(
    connection: Connection, asked: dict[str, Any], item_id: int, annotator_id: int, seconds: Any, now: float
) -> None:
    """A cancelled task: the slot that it was about stays free for others."""
    first = select(Slot.id, Slot.turn).where(Slot.item_id == item_id).order_by(Slot.state != "free", Slot.number)
    slot = connection.execute(first.limit(1)).first()
    if slot is None:  # a gold item nobody was asked about
        raise InputError(f"item {asked['item_id']!r} is gold: a skip of it says nothing")
    _log(connection, asked, (slot.id, item_id, annotator_id, slot.turn), "skip", None, seconds, now)


def _log(
    connection: Connection,
    asked: dict[str, Any],
    place: tuple[int, int, int, int],
    kind: str,
    answer: int | None,
    seconds: Any,
    now: float,
) -> None:
    """The question as it was asked there, and what was said."""
    question = {
        **dict(zip(("slot_id", "item_id", "annotator_id", "turn"), place, strict=True), attempt=0),
        **{"shortlist": asked["classes"], "probabilities": asked["inclusion_prob"], "seed": asked["seed"]},
        **{"policy": asked["policy"], "policy_version": asked["policy_version"]},
        **{"state": "skipped" if kind == "skip" else "answered", "served_at": now},
    }
    question_id = insert_id(connection, questions, question)
    row = {"question_id": question_id, "attempt": 0, "kind": kind, "class_id": answer, "answered_at": now}
    connection.execute(insert(Answer).values(**row, seconds=_seconds(seconds), supersedes=None))
    count_answer(connection, place[2], kind, answer, +1)


def _moment(at: Any) -> float:
    """When it was answered, as Label Studio says it; if it does not, now."""
    try:
        return min(datetime.fromisoformat(str(at)).timestamp(), time.time())
    except (ValueError, OverflowError):
        return time.time()


def _check_asked(stochastic: Any, num_classes: int) -> dict[str, Any]:
    if not isinstance(stochastic, dict):
        raise InputError("no `stochastic` in the data: not a task of ours")
    shown, shares = stochastic.get("classes"), stochastic.get("inclusion_prob")
    seed = stochastic.get("seed", 0)
    if not isinstance(shown, list) or not shown or len(set(map(str, shown))) != len(shown):
        raise InputError("`classes` is not a shortlist")
    if not all(type(k) is int and 0 <= k < num_classes for k in shown):
        raise InputError(f"a class is out of range, expected 0..{num_classes - 1}")
    fair = isinstance(shares, list) and len(shares) == len(shown)
    if not fair or not all(isinstance(p, int | float) and 0 < p <= 1 for p in shares or []):
        raise InputError("`inclusion_prob` is not a probability for each class")
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise InputError("`seed` is not a whole number")
    texts = {key: str(stochastic.get(key, "")) for key in ("item_id", "policy", "policy_version")}
    check_name(texts["item_id"], "item")
    check_name(texts["policy"], "policy")
    return {**texts, "classes": shown, "inclusion_prob": [float(p) for p in shares or []], "seed": seed}


def _check_answer(choice: Any, shown: list[int], names: Sequence[str]) -> int | None:
    """The class that a choice names, by its alias or (older exports) its value."""
    if not isinstance(choice, str) or not choice:
        raise InputError("no answer")
    by_name = {str(k): k for k in shown} | {names[k]: k for k in shown if names[k] not in map(str, shown)}
    if choice in by_name:
        return by_name[choice]
    if choice in (NONE_ALIAS, NONE_NAME):
        return None
    raise InputError(f"the answer {choice[:40]!r} is not on the shortlist")


def _name(by: Any) -> str:
    """What we call the person: by e-mail address or, in an export without, by number."""
    if isinstance(by, dict):
        by = by.get("email") or by.get("id")
    return check_name(f"{PREFIX}{'unknown' if by in (None, '') else by}", "annotator")


def _known(connection: Connection, item_id: int) -> Sequence[Any]:
    """What was said about the item so far, by whom, when and to which lists."""
    statement = (
        select(Question.annotator_id, Annotator.name, Question.shortlist, Question.seed)
        .add_columns(Answer.kind, Answer.class_id, Answer.answered_at)
        .join_from(Slot, Question, Question.slot_id == Slot.id)  # of slots there is an index by item
        .join(Answer, Answer.question_id == Question.id)
        .join(Annotator, Annotator.id == Question.annotator_id)
        .where(Slot.item_id == item_id, Answer.kind.in_(("answer", "skip")))
    )
    return connection.execute(statement).all()


def _take_slot(connection: Connection, item_id: int, annotator_id: int) -> tuple[int, int, bool]:
    """A waiting slot of the item, or an additional one, as every answer is kept: its id, its turn, whether it is gold.

    With an overlap, somebody may have had two tasks about an item, each with a list of its own. But nobody has two
    slots of an item, so the second is nobody's.
    """
    gold = connection.execute(select(Item.gold).where(Item.id == item_id)).scalar() is not None
    theirs = select(Slot.id).where(Slot.item_id == item_id, Slot.annotator_id == annotator_id)
    holder = annotator_id if connection.execute(theirs).scalar() is None else None
    free = select(Slot.id, Slot.turn).where(Slot.item_id == item_id, Slot.state == "free", ~Slot.gold)
    # locked: on PostgreSQL somebody may be given it at this moment
    locked = free.order_by(Slot.number).limit(1).with_for_update(of=Slot, skip_locked=True)
    found = connection.execute(locked).first()
    if found is not None:
        set_slot(connection, found.id, "done", found.turn, holder)
        return found.id, found.turn, gold
    number = _number(connection, item_id, holder, gold=gold)
    slot = {"item_id": item_id, "number": number, "gold": gold, "state": "done"}
    slot |= {"rank": -1, "turn": 0, "annotator_id": holder, "lease_until": None}
    if not gold:
        settle_item(connection, item_id, +1)  # one more answer than planned
    return insert_id(connection, slots, slot), 0, gold


def _number(connection: Connection, item_id: int, annotator_id: int | None, *, gold: bool) -> int:
    """Of one more slot. Those of a gold item have the ids of their annotators, so what is nobody's is below them."""
    if gold and annotator_id is not None:
        return annotator_id
    numbers = select(func.min(Slot.number), func.max(Slot.number)).where(Slot.item_id == item_id)
    least, most = connection.execute(numbers).one()
    if gold:
        return int(min(least or 0, 0)) - 1
    return 0 if most is None else int(most) + 1


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None

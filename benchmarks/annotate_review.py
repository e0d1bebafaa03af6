"""How long a page of items and answers takes among many items: `python benchmarks/annotate_review.py 1000000`.

It prints its figures and keeps none; docs/annotate-owner.md says what they were.

Rows are put into the tables directly, two answers to an item. Printed: the seconds of processor of the longest request
for each filter, and of all requests until the page is full, where few items match.
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

from shortlist.annotate.db.schema import Note, annotators, answers, classes, items, questions, slots
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.review.browse import Filter, browse, history

CLASSES, PEOPLE, BATCH = 100, 20, 50_000
RARE = CLASSES - 1
FILTERS = {
    "all": Filter(),
    "answered": Filter(answered=True),
    "a class": Filter(class_id=3),
    "a class given 5 times": Filter(class_id=RARE),
    "a person": Filter(person=7),
    "None": Filter(none=True),
    "disagreement": Filter(disagreement=True),
    "over 30 s": Filter(slower=30.0),
    "over 1,000 s (nobody)": Filter(slower=1000.0),
    "flagged": Filter(flagged=True),
    "by a name": Filter(words="item 77777"),
    "by words that no text has": Filter(words="no such words"),
}


def fill(project: Project, count: int) -> None:
    """Items with two answers each, by chance."""
    dice = random.Random(0)
    with project.store.write() as connection:
        connection.execute(insert(classes), [{"id": k, "name": f"class {k}"} for k in range(CLASSES)])
        person = {"active": True, "invite_serial": 0, "created_at": 0.0, "answers": 0, "nones": 0, "skips": 0}
        people = [{**person, "id": who, "name": f"person {who}", "gold_seen": 0} for who in range(1, PEOPLE + 1)]
        connection.execute(insert(annotators), people)
    for start in range(1, count + 1, BATCH):
        with project.store.write() as connection:
            _insert(connection, range(start, min(start + BATCH, count + 1)), dice)
    with project.store.write() as connection:
        flag = {"author": "x", "kind": "flag", "text": "?", "at": 0.0}
        connection.execute(insert(Note), [{**flag, "item_id": item} for item in range(1, count, count // 10)])


def _insert(connection: Connection, numbers: range, dice: random.Random) -> None:
    said: dict[str, list[dict[str, Any]]] = {"items": [], "slots": [], "questions": [], "answers": []}
    for item in numbers:
        said["items"].append({"id": item, "name": f"item {item}", "kind": "text", "text": f"Words of item {item}."})
        said["items"][-1] |= {"state": "done", "pending": 0}
        for number, who in enumerate(dice.sample(range(1, PEOPLE + 1), 2)):
            key, shown = 2 * item + number, dice.sample(range(RARE), 5)
            picked = dice.choice([None, *shown]) if item % 200_001 else RARE
            slot = {
                "id": key,
                "item_id": item,
                "number": number,
                "gold": False,
                "state": "done",
                "rank": key,
                "turn": 0,
            }
            said["slots"].append({**slot, "annotator_id": who})
            asked = {"id": key, "slot_id": key, "item_id": item, "annotator_id": who, "turn": 0, "shortlist": shown}
            asked |= {"policy": "uniform", "policy_version": "1", "probabilities": [0.05] * 5, "seed": 0}
            said["questions"].append({**asked, "state": "answered", "attempt": 0, "served_at": 0.0})
            given = {"id": key, "question_id": key, "attempt": 0, "kind": "answer", "class_id": picked}
            said["answers"].append({**given, "seconds": dice.expovariate(0.15), "answered_at": float(key)})
    for table in (items, slots, questions, answers):
        connection.execute(insert(table), said[table.name])


def main() -> None:
    """Fill a project, then look at it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder, Project.create(Path(folder) / "p", Settings("p", 5)) as project:
        fill(project, count)
        for name, wanted in FILTERS.items():
            after: int | None = 0
            found, longest, requests, begun = 0, 0.0, 0, time.process_time()
            while after is not None and found < 50:
                start = time.process_time()
                with project.store.read() as connection:
                    rows, after = browse(connection, wanted, after, 50)
                longest, found, requests = max(longest, time.process_time() - start), found + len(rows), requests + 1
            took = time.process_time() - begun
            line = {"filter": name, "items": count, "found": found, "requests": requests}
            print(json.dumps({**line, "longest_s": round(longest, 4), "page_s": round(took, 4)}), flush=True)
        start = time.process_time()
        with project.store.read() as connection:
            history(connection, count // 2)
        print(json.dumps({"history_s": round(time.process_time() - start, 4)}))


if __name__ == "__main__":
    main()

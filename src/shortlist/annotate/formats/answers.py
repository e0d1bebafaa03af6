"""Our own files: what `StochasticLabels.read` takes, and who answered, how fast, and how the list was chosen.

`answer` is what the list was answered, so it is None where somebody typed a class that the list does not hold, and the
rows are those of the paper's mechanism. What was typed stands beside it, in a column that is there if anybody typed;
`way` is there if ways were compared.
"""

import csv
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import chain, starmap
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, String, cast, select

from shortlist.annotate.db.class_map import read_class_map
from shortlist.annotate.db.schema import NO_CLASS, Annotator, Answer, Item, Question
from shortlist.annotate.db.statements import STANDING, class_names, current_names
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.review.corrections import standing_corrections
from shortlist.internal.cells import guard_cell
from shortlist.internal.names import KNOWN, join_names, split_names

COLUMNS = (
    "item",
    "shortlist",
    "answer",
    "classes",
    "annotator",
    "seconds",
    "policy",
    "probabilities",
    "seed",
    "gold",
    "served_at",
    "answered_at",
)
TYPED, WAY = "typed", "way"
CORRECTION = "correction/1"


PSEUDONYMS: ContextVar[bool] = ContextVar("PSEUDONYMS", default=False)
"""Whether exports call people by numbers that only the project can tell."""


def standing_answers(connection: Connection) -> Iterator[dict[str, Any]]:
    """Every answer that was not taken back, in the order given, with class names, as it reads today (`class_map`)."""
    names, classes = class_names(connection), read_class_map(connection)
    person = ("person " + cast(Annotator.id, String)) if PSEUDONYMS.get() else Annotator.name
    statement = (
        select(
            *(Item.name.label("item"), person.label("annotator"), Answer.class_id, Answer.seconds, Item.gold),
            *(
                Question.shortlist,
                Question.inclusion.label("inclusion"),
                Question.policy,
                Question.policy_version,
                Question.seed,
            ),
            *(Question.served_at, Answer.answered_at, Answer.kind, Question.way),
        )
        .join_from(Answer, Question, Question.id == Answer.question_id)
        .join(Item, Item.id == Question.item_id)
        .join(Annotator, Annotator.id == Question.annotator_id)
        .where(*STANDING)
        .order_by(Answer.id)
    )
    result = connection.execution_options(yield_per=2000).execute(statement)
    for place, row in enumerate(result.mappings()):
        asked = (row["shortlist"], row["inclusion"], row["class_id"])
        seen = classes.read(*asked, typed=row["kind"] == "typed", served_at=row["served_at"])
        merged = any(classes.into.get(k) is not None for k in row["shortlist"])
        yield {
            "item": row["item"],
            "shortlist": join_names(names[k] for k in seen.shortlist),
            "answer": "" if seen.picked is None else names[seen.picked],
            # every class there is, in the first row, as in every file of labels
            "classes": "" if place else join_names(current_names(connection)),
            "annotator": row["annotator"],
            "seconds": row["seconds"],
            # what a merge has left of a uniform list is no uniform list
            "policy": f"{row['policy']}/{row['policy_version']}{'+merged' if merged else ''}",
            "probabilities": "|".join(map(repr, seen.inclusion)),
            "seed": row["seed"],
            "gold": None if row["gold"] is None else names[row["gold"]],
            "served_at": row["served_at"],
            "answered_at": row["answered_at"],
            **({} if seen.typed is None else {TYPED: names[seen.typed]}),
            **({WAY: row["way"]} if row["way"] is not None else {}),
        }


def _trainable(connection: Connection) -> Iterator[dict[str, Any]]:
    """The same without what must not be learned from, and with what reviewers said and owners knew.

    Left out are answers on gold items, whose lists depend on the class and which are there to score on, and None to a
    list of all classes, which says nothing and which training refuses. In place of all answers about an item that a
    reviewer has corrected, or whose class the owner knows, there is one row: a list of that class alone.
    """
    names = current_names(connection)
    classes, corrected, known = join_names(names), corrections_by_name(connection), known_by_name(connection)
    rows = (row for row in standing_answers(connection) if row["item"] not in corrected and row["item"] not in known)
    for row in chain(rows, _corrected_rows(connection, corrected), starmap(_known_row, known.items())):
        shown = row["shortlist"] and len(split_names(row["shortlist"])) < len(names)
        if row["gold"] is None and (row["answer"] or row.get(TYPED) or shown):
            yield {**row, "classes": classes}
            classes = ""


def corrections_by_name(connection: Connection) -> dict[str, Any]:
    """Item -> the standing correction of its class. Not of gold items: there it has changed the gold class."""
    return {row.name: row for row in standing_corrections(connection).values() if row.gold is None}


def reviewer_name(author: str) -> str:
    """What the export calls them."""
    return "reviewer" if PSEUDONYMS.get() else author


def _corrected_rows(connection: Connection, corrected: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names, classes = class_names(connection), read_class_map(connection)
    for item, row in corrected.items():
        class_id = None if row.class_id is None else classes.now(row.class_id)
        if class_id is not None:
            label = {"item": item, "shortlist": join_names([names[class_id]]), "answer": names[class_id]}
            said = {"annotator": reviewer_name(row.author), "policy": CORRECTION, "probabilities": "1.0"}
            yield {**dict.fromkeys(COLUMNS), **label, **said, "served_at": row.at, "answered_at": row.at}


def known_by_name(connection: Connection) -> dict[str, str]:
    """Item -> the class that its owner knew; where a reviewer has corrected it, theirs counts instead."""
    names, corrected = class_names(connection), corrections_by_name(connection)
    statement = select(Item.name, Item.known).where(Item.known != NO_CLASS, Item.gold.is_(None)).order_by(Item.id)
    return {item: names[k] for item, k in connection.execute(statement) if k is not None and item not in corrected}


def _known_row(item: str, label: str) -> dict[str, Any]:
    said = {"item": item, "shortlist": join_names([label]), "answer": label, "policy": KNOWN, "probabilities": "1.0"}
    return {**dict.fromkeys(COLUMNS), **said}


def _on_gold(connection: Connection) -> Iterator[dict[str, Any]]:
    return (row for row in standing_answers(connection) if row["gold"] is not None)


def write_csv(project: Project, path: Path) -> int:
    """A table with a header; a missing value is empty."""
    return _write_table(project, path, _trainable)


def write_gold_csv(project: Project, path: Path) -> int:
    """The answers on gold items, which the other files leave out."""
    return _write_table(project, path, _on_gold)


def _write_table(project: Project, path: Path, rows: Callable[[Connection], Iterator[dict[str, Any]]]) -> int:
    with project.store.read() as connection, path.open("w", newline="", encoding="utf-8") as file:
        # CRLF line ends make the csv module quote both \r and \n inside a field
        writer = csv.DictWriter(file, _columns(connection), lineterminator="\r\n")
        writer.writeheader()
        return sum(1 for row in rows(connection) if writer.writerow(_guarded(row)))


def _guarded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: guard_cell(value) if isinstance(value, str) else value for name, value in row.items()}


def _columns(connection: Connection) -> tuple[str, ...]:
    typed = select(Answer.id).where(Answer.kind == "typed").limit(1)
    compared = select(Question.id).where(Question.way.is_not(None)).limit(1)
    more = {TYPED: typed, WAY: compared}
    return (*COLUMNS, *(name for name, found in more.items() if connection.execute(found).scalar() is not None))


def write_jsonl(project: Project, path: Path) -> int:
    """One object per line."""
    with project.store.read() as connection, path.open("w", encoding="utf-8", newline="\n") as file:
        return sum(1 for row in _trainable(connection) if file.write(json.dumps(row, ensure_ascii=False) + "\n"))


def write_parquet(project: Project, path: Path) -> int:
    """The same columns, typed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = {"seconds": pa.float64(), "served_at": pa.float64(), "answered_at": pa.float64(), "seed": pa.int64()}
    count = 0
    with project.store.read() as connection:
        schema = pa.schema([(name, numbers.get(name, pa.string())) for name in _columns(connection)])
        with pq.ParquetWriter(path, schema) as writer:
            batch: list[dict[str, Any]] = []
            for row in _trainable(connection):
                batch.append(row)
                count += 1
                if len(batch) == 10_000:
                    writer.write_table(pa.Table.from_pylist(batch, schema))
                    batch.clear()
            writer.write_table(pa.Table.from_pylist(batch, schema))
    return count

"""Items into the database: all are checked first, then added, also while a server runs."""

import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import IntegrityError

from shortlist.annotate.db.schema import Item, Slot
from shortlist.annotate.db.statements import batches, class_ids, next_rank, take_turns
from shortlist.annotate.project.classes import Names, add_classes
from shortlist.annotate.project.media import EXTENSIONS, clean_media, read_media
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import Source, check_name, check_text, is_name
from shortlist.errors import InputError

BATCH = 2000  # items per transaction: annotators of a running server wait for one batch, not for the import
POOL_FROM = 256  # fewer images than this are done before a pool of processes has started

Progress = Callable[[int, int], None]

ROW_NUMBER = " (rows without a column `item` are named by their number: give a second table that column)"


@dataclass
class ImportOutcome:
    """What an import did: how many items were added, which were left out and why, how many classes there are now.

    `known` counts the items whose class is known, which nobody is asked about, `scored` those with a score of another
    model. `remark` says what was added although it looks like a slip.
    """

    added: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    classes: int = 0
    known: int = 0
    scored: int = 0
    remark: str = ""


@dataclass(frozen=True)
class Ready:
    """A checked item."""

    name: str
    kind: str
    text: str | None
    file: str | None
    media_type: str | None
    gold: str | None


def add_items(
    project: Project,
    sources: Iterable[Source],
    *,
    gold: Mapping[str, str] | None = None,
    classes: Names = (),
    strict: bool = False,
    progress: Progress = lambda done, total: None,
) -> ImportOutcome:
    """Check every source, then add the good ones; with `strict` a bad one refuses the whole import.

    `classes` are added with them, before the first item and only if nothing is refused.
    """
    found = list(sources)
    check_kinds(project, kinds(found))
    outcome = ImportOutcome()
    with project.store.read() as connection:
        names = {*class_ids(connection), *classes}
        good = check_items(connection, found, gold or {}, names, outcome)
    _refuse_if(strict, outcome)
    with _media_batch(project.media) as (folder, keep):
        ready = list(_prepare(good, folder, project.media, outcome, progress))
        _refuse_if(strict, outcome)
        if ready and folder.exists():
            os.sync()  # the files are on the disk before the rows that name them
        if classes:
            outcome.classes = add_classes(project, classes)
        for batch in batches(ready, BATCH):
            _insert(project, batch)
            keep()
            outcome.added += len(batch)
    if outcome.added > BATCH and not project.store.is_sqlite:
        with project.store.write() as connection:
            connection.execute(text("ANALYZE"))  # or the planner takes the table for empty
    return outcome


def check_kinds(project: Project, kinds: set[str]) -> None:
    """Refuse items of another kind where a model chooses, or chose, the lists: its trainer could not go on.

    A policy that was given to `serve` alone is known by the folder that the trainer leaves.
    """
    if project.settings.live is None and not project.live.exists():
        return
    with project.store.read() as connection:
        there = set(connection.execute(select(Item.kind).distinct()).scalars())
    if there and kinds - there:
        without = "" if project.settings.live else f" (or remove {project.live} if no model is to choose here again)"
        raise InputError(
            f"a model chooses this project's lists and needs items of one kind; they are {there.pop()}, these "
            f"{sorted(kinds)[0]}: make another project for these{without}"
        )


def kinds(sources: Iterable[Source]) -> set[str]:
    """The kinds of items among the sources."""
    return {source.kind for source in sources if source.problem is None}


def _refuse_if(strict: bool, outcome: ImportOutcome) -> None:
    if strict and outcome.skipped:
        where, reason = outcome.skipped[0]
        more = f" (and {len(outcome.skipped) - 1} more)" if len(outcome.skipped) > 1 else ""
        raise InputError(f"nothing imported: {where}: {reason}{more}")


def check_items(
    connection: Connection,
    found: list[Source],
    gold: Mapping[str, str],
    classes: Collection[str],
    outcome: ImportOutcome,
) -> list[Source]:
    """The good ones, as far as can be told without opening files; a bad gold answer alone costs no item."""
    stored: set[str] = set()
    for batch in batches(found, 500):
        names = [source.name for source in batch if is_name(source.name)]
        stored |= set(connection.execute(select(Item.name).where(Item.name.in_(names))).scalars())
    unknown = set(gold) - {source.name for source in found}
    outcome.skipped += [(name, "a gold answer for an item that does not exist") for name in sorted(unknown)]
    good, seen = [], set()
    for source in found:
        try:
            if source.problem:
                raise InputError(source.problem)
            check_name(source.name, "the name")
            if source.name in seen:
                raise InputError("a duplicate id")
            if source.name in stored:
                raise InputError(f"the project has an item of this name{ROW_NUMBER if source.name.isdigit() else ''}")
            if source.path is None:
                check_text(source.text or "")
        except InputError as error:
            outcome.skipped.append((source.where, str(error)))
            continue
        seen.add(source.name)
        known = gold.get(source.name, source.gold)
        if known is not None and known not in classes:
            reason = f"the gold answer {known!r} is not a class: the item is added without it"
            outcome.skipped.append((source.where, reason))
            known = None
        good.append(replace(source, gold=known))
    return good


def _prepare(
    sources: list[Source],
    folder: Path,
    root: Path,
    outcome: ImportOutcome,
    progress: Progress,
) -> Iterator[Ready]:
    jobs = [(source.path, folder / str(i // 1000) / str(i % 1000)) for i, source in enumerate(sources) if source.path]
    for directory in sorted({target.parent for _, target in jobs}):
        directory.mkdir(parents=True, exist_ok=True)
    files = _clean_files(jobs)
    for done, source in enumerate(sources, start=1):
        kind, file, media_type = "text", None, None
        if source.path is not None:
            file, media_type, problem = next(files)
            if problem is not None:
                outcome.skipped.append((source.where, problem))
                continue
            kind = media_type.split("/")[0]
            file = Path(file).relative_to(root).as_posix()
        yield Ready(source.name, kind, source.text, file, media_type, source.gold)
        if done % 200 == 0 or done == len(sources):
            progress(done, len(sources))


def _clean_files(jobs: list[tuple[Path, Path]]) -> Iterator[tuple[str, str, str | None]]:
    if len(jobs) < POOL_FROM:
        yield from map(_clean_file, jobs)
        return
    with ProcessPoolExecutor() as pool:
        yield from pool.map(_clean_file, jobs, chunksize=64)


def _clean_file(job: tuple[Path, Path]) -> tuple[str, str, str | None]:
    """Decode one file, encode it anew and store it: its path, its type, and what is wrong with it, if anything."""
    source, target = job
    try:
        data, media_type = clean_media(read_media(source))
    except InputError as error:
        return "", "", str(error)
    path = target.with_suffix(EXTENSIONS[media_type])
    path.write_bytes(data)
    return str(path), media_type, None


def store_media(project: Project, name: str, data: bytes, gold: str | None = None) -> None:
    """Add one image or sound that came over the network."""
    check_name(name, "the name")
    clean, media_type = clean_media(data)
    check_kinds(project, {media_type.split("/")[0]})
    with _media_batch(project.media) as (folder, keep):
        folder.mkdir(parents=True)
        path = folder / f"0{EXTENSIONS[media_type]}"
        path.write_bytes(clean)
        with path.open("rb") as written:
            os.fsync(written.fileno())
        file = path.relative_to(project.media).as_posix()
        _insert(project, [Ready(name, media_type.split("/")[0], None, file, media_type, gold)])
        keep()


@contextmanager
def _media_batch(root: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A new folder for the files of one import, removed in the end unless `keep` was called: rows refer to it."""
    folder = root / secrets.token_hex(8)
    kept: list[bool] = []
    try:
        yield folder, lambda: kept.append(True)
    except OSError as error:
        error.filename = error.filename or str(root)  # a full disk
        raise
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _insert(project: Project, batch: Sequence[Ready]) -> None:
    """Items and their slots in one transaction: an item without slots would never be asked."""
    overlap = project.settings.overlap
    try:
        with project.store.write() as connection:
            take_turns(connection)
            ids_by_name = class_ids(connection) if any(item.gold is not None for item in batch) else {}
            rows = [
                {
                    **{"name": item.name, "kind": item.kind, "text": item.text, "file": item.file},
                    **{"media_type": item.media_type, "gold": None if item.gold is None else ids_by_name[item.gold]},
                    **{"state": "open", "pending": 0 if item.gold is not None else overlap},
                }
                for item in batch
            ]
            statement = insert(Item).returning(Item.id, sort_by_parameter_order=True)
            ids = list(connection.execute(statement, rows).scalars())
            plain = [item_id for item_id, item in zip(ids, batch, strict=True) if item.gold is None]
            slots = list(_slots(plain, overlap, next_rank(connection)))
            if slots:
                connection.execute(insert(Slot), slots)
    except (IntegrityError, KeyError) as error:
        raise InputError("an item was added or a class renamed in the meantime: import the rest again") from error


def _slots(item_ids: list[int], overlap: int, rank: int) -> Iterator[dict[str, Any]]:
    """The first slot of every item before the second of any."""
    free = {"gold": False, "state": "free", "turn": 0, "annotator_id": None, "lease_until": None}
    for number in range(overlap):
        for place, item_id in enumerate(item_ids):
            yield {"item_id": item_id, "number": number, "rank": rank + number * len(item_ids) + place, **free}

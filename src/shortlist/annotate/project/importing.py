"""Items and classes into the store: everything is checked first, then put in; it may run beside a serving server."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from shortlist.annotate.db.schema import Item, LabelClass, Slot
from shortlist.annotate.db.statements import batches, next_rank
from shortlist.annotate.live.items import check_added
from shortlist.annotate.problems import Conflict, NotFound
from shortlist.annotate.project.media import EXTENSIONS, clean_media, read_media
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.sources import Source, check_name, check_text
from shortlist.errors import InputError

BATCH = 2000  # items a transaction: annotators of a running server wait for one batch, not for the import
POOL_FROM = 256  # fewer images than this are done before a pool of processes has started
MAX_CLASSES = 100_000

Progress = Callable[[int, int], None]

ROW_NUMBER = " (rows without a column `item` are named by their number: give a second table that column)"


@dataclass
class Report:
    """What an import did: how many items are in, each one left out, by name and reason, and the classes there are."""

    added: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    classes: int = 0


@dataclass(frozen=True)
class Ready:
    """A checked item."""

    name: str
    kind: str
    text: str | None
    file: str | None
    media_type: str | None
    gold: int | None


def add_classes(project: Project, names: Iterable[str] | Mapping[str, str | None]) -> int:
    """Add classes behind those there are, with what each means where `names` says it; returns how many there are now.

    With descriptions, classes that are there already may be among them: theirs is the one given last. An empty one
    takes it away, None leaves it as it is.
    """
    clean = [check_name(name.strip(), "class") for name in names]
    said = names.items() if isinstance(names, Mapping) else ()
    described = {name.strip(): words.strip() for name, words in said if words is not None}
    for name, words in described.items():
        if words:
            check_name(words, f"the description of {name!r}")
    with project.store.write() as connection:
        known = list(connection.execute(select(LabelClass.name).order_by(LabelClass.id)).scalars())
        there, seen = set(known), set(known)
        for name in clean:
            if name in there and not described:
                raise InputError(f"the project has the class {name!r} already: give new ones only")
            if name in seen and name not in there:
                raise InputError(f"class {name!r} occurs twice")
            seen.add(name)
        if len(seen) > MAX_CLASSES:
            raise InputError(f"{len(seen)} classes: expected at most {MAX_CLASSES}")
        new = [name for name in clean if name not in there]
        if new:
            connection.execute(insert(LabelClass), [{"id": len(known) + i, "name": name} for i, name in enumerate(new)])
        for name, words in described.items():
            connection.execute(update(LabelClass).where(LabelClass.name == name).values(description=words or None))
    return len(seen)


def rename_class(project: Project, class_id: int, name: str) -> None:
    """Call a class something else; answers, lists and gold items refer to it by its id and stay."""
    name = check_name(name.strip(), "class")
    try:
        with project.store.write() as connection:
            changed = connection.execute(update(LabelClass).where(LabelClass.id == class_id).values(name=name))
    except IntegrityError as error:
        raise Conflict("name_taken", f"the project has the class {name!r} already: two cannot be made one") from error
    if not changed.rowcount:
        raise NotFound("no_class", f"there is no class {class_id}")


def add_items(
    project: Project,
    sources: Iterable[Source],
    *,
    gold: dict[str, str] | None = None,
    strict: bool = False,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Check every source, then add the good ones; with `strict` a bad one refuses the whole import."""
    found = list(sources)
    check_added(project, kinds(found))
    report = Report()
    with project.store.read() as connection:
        class_ids = {name: k for k, name in connection.execute(select(LabelClass.id, LabelClass.name))}
        good = _check(connection, found, gold or {}, class_ids, report)
    _refuse_if(strict, report)
    with _media_batch(project.media) as (folder, keep):
        ready = list(_prepare(good, folder, project.media, class_ids, report, progress))
        _refuse_if(strict, report)
        if ready and folder.exists():
            os.sync()  # the files are on the disk before the rows that name them
        for batch in batches(ready, BATCH):
            _insert(project, batch)
            keep()
            report.added += len(batch)
    if report.added > BATCH and not project.store.is_sqlite:
        with project.store.write() as connection:
            connection.execute(text("ANALYZE"))  # or the planner takes the table for empty
    return report


def kinds(sources: Iterable[Source]) -> set[str]:
    """What would come in."""
    return {source.kind for source in sources if source.problem is None}


def _refuse_if(strict: bool, report: Report) -> None:
    if strict and report.skipped:
        where, reason = report.skipped[0]
        more = f" (and {len(report.skipped) - 1} more)" if len(report.skipped) > 1 else ""
        raise InputError(f"nothing imported: {where}: {reason}{more}")


def _check(
    connection: Connection, found: list[Source], gold: dict[str, str], class_ids: dict[str, int], report: Report
) -> list[Source]:
    """Everything that can be said without opening the files; a bad gold answer alone costs no item."""
    stored: set[str] = set()
    for batch in batches(found, 500):
        names = [source.name for source in batch if "\x00" not in source.name and source.name.isprintable()]
        stored |= set(connection.execute(select(Item.name).where(Item.name.in_(names))).scalars())
    unknown = set(gold) - {source.name for source in found}
    report.skipped += [(name, "a gold answer for an item that is not there") for name in sorted(unknown)]
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
            report.skipped.append((source.where, str(error)))
            continue
        seen.add(source.name)
        known = gold.get(source.name, source.gold)
        if known is not None and known not in class_ids:
            reason = f"the gold answer {known!r} is not a class: the item is taken without it"
            report.skipped.append((source.where, reason))
            known = None
        good.append(replace(source, gold=known))
    return good


def _prepare(
    sources: list[Source],
    folder: Path,
    root: Path,
    class_ids: dict[str, int],
    report: Report,
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
                report.skipped.append((source.where, problem))
                continue
            kind = media_type.split("/")[0]
            file = Path(file).relative_to(root).as_posix()
        known = None if source.gold is None else class_ids[source.gold]
        yield Ready(source.name, kind, source.text, file, media_type, known)
        if done % 200 == 0 or done == len(sources):
            progress(done, len(sources))


def _clean_files(jobs: list[tuple[Path, Path]]) -> Iterator[tuple[str, str, str | None]]:
    if len(jobs) < POOL_FROM:
        yield from map(_clean_file, jobs)
        return
    with ProcessPoolExecutor() as pool:
        yield from pool.map(_clean_file, jobs, chunksize=64)


def _clean_file(job: tuple[Path, Path]) -> tuple[str, str, str | None]:
    """Decode, encode anew and store one file: (its path, its type, or what is wrong with it)."""
    source, target = job
    try:
        data, media_type = clean_media(read_media(source))
    except InputError as error:
        return "", "", str(error)
    path = target.with_suffix(EXTENSIONS[media_type])
    path.write_bytes(data)
    return str(path), media_type, None


def store_media(project: Project, name: str, data: bytes, gold: int | None = None) -> None:
    """Add one image or sound that came over the network."""
    check_name(name, "the name")
    clean, media_type = clean_media(data)
    check_added(project, {media_type.split("/")[0]})
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
    """A new folder for the files of one import; it goes again unless `keep` was called: rows refer to it."""
    folder = root / secrets.token_hex(8)
    kept: list[bool] = []
    try:
        yield folder, lambda: kept.append(True)
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _insert(project: Project, batch: Sequence[Ready]) -> None:
    """Items and their slots in one transaction: an item without slots would never be asked."""
    overlap = project.settings.overlap
    rows = [
        {
            **{"name": item.name, "kind": item.kind, "text": item.text, "file": item.file},
            **{"media_type": item.media_type, "gold": item.gold},
            **{"state": "open", "pending": 0 if item.gold is not None else overlap},
        }
        for item in batch
    ]
    try:
        with project.store.write() as connection:
            statement = insert(Item).returning(Item.id, sort_by_parameter_order=True)
            ids = list(connection.execute(statement, rows).scalars())
            plain = [item_id for item_id, item in zip(ids, batch, strict=True) if item.gold is None]
            slots = list(_slots(plain, overlap, next_rank(connection)))
            if slots:
                connection.execute(insert(Slot), slots)
    except IntegrityError as error:
        raise InputError("an item of this name was added in the meantime: import the rest again") from error


def _slots(item_ids: list[int], overlap: int, rank: int) -> Iterator[dict[str, Any]]:
    """The first voice on every item before the second on any."""
    free = {"gold": False, "state": "free", "turn": 0, "annotator_id": None, "lease_until": None}
    for number in range(overlap):
        for place, item_id in enumerate(item_ids):
            yield {"item_id": item_id, "number": number, "rank": rank + number * len(item_ids) + place, **free}

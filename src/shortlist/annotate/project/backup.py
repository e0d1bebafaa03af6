"""A whole project in one .zip: the settings, the secret, the rows of every table, the media, scores.

The rows are read in one transaction, so a running server may go on; they are plain JSON lines, so a backup from SQLite
can be restored to PostgreSQL and the other way round.
"""

import io
import json
import logging
import os
import re
import shutil
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from shortlist.annotate.db.schema import REVISION, Item, credentials, tables
from shortlist.annotate.db.store import first_line
from shortlist.annotate.project.instructions import instructions_of, set_instructions
from shortlist.annotate.project.project import (
    INSTRUCTIONS,
    SCORES,
    SECRET,
    SETTINGS,
    Project,
    check_target,
    parse_settings,
    private_file,
    remove_files,
)
from shortlist.errors import InputError
from shortlist.internal.files import sync_directory

LOGGER = logging.getLogger("shortlist.annotate")
FORMAT = {"format": "shortlist-annotate-backup", "revision": REVISION}
# columns added since may be empty, so older rows still fit
READABLE = [f"{number:04}" for number in range(1, int(REVISION) + 1)]
_DAMAGED = (KeyError, ValueError, TypeError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged .zip raises; the RuntimeErrors are ways to pack or to encrypt that Python does not know."""
_MEDIA_NAME = re.compile(r"media/[0-9a-f]{16}/(?:[0-9]+/)?[0-9]+\.[a-z0-9]+")
_BATCH = 2000
MOST_GROWTH, MANY_BYTES = 100, 16 * 1024 * 1024


@dataclass
class Saved:
    """What a backup holds: the number of rows, and the names of items whose pictures or sounds could not be read."""

    rows: int = 0
    missing: list[str] = field(default_factory=list)


def write_backup(project: Project, out: Path, *, secrets: bool = True) -> Saved:
    """Write the backup, readable by its owner only; without `secrets`, nothing in it lets anybody in.

    A file that is gone or cannot be read is left out and named: it is the answers that cannot be replaced.
    """
    check_target(out)
    saved = Saved()
    with private_file(out) as written, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("backup.json", json.dumps(FORMAT))
        kept = project.settings if secrets else replace(project.settings, database=None)  # which may hold a password
        archive.writestr(SETTINGS, json.dumps(asdict(kept)))
        if secrets:
            archive.write(project.folder / SECRET, SECRET)
        if words := instructions_of(project):
            archive.writestr(INSTRUCTIONS, words)
        with suppress(FileNotFoundError):
            archive.writestr(SCORES, (project.folder / SCORES).read_bytes())
        with project.store.read() as connection:
            for table in tables():
                saved.rows += _dump(connection, table, archive, empty=table is credentials and not secrets)
            files = select(Item.name, Item.file).where(Item.file.is_not(None)).order_by(Item.id)
            for name, file in connection.execute(files):
                try:
                    content = (project.media / str(file)).read_bytes()
                except OSError:
                    saved.missing.append(name)
                    continue
                archive.writestr(f"media/{file}", content, zipfile.ZIP_STORED)
    return saved


def _dump(connection: Connection, table: Table, archive: zipfile.ZipFile, empty: bool) -> int:
    count = 0
    statement = select(table).order_by(*table.primary_key.columns).limit(0 if empty else None)
    with archive.open(f"tables/{table.name}.jsonl", "w", force_zip64=True) as file:
        for row in connection.execute(statement, execution_options={"yield_per": _BATCH}).mappings():
            file.write(json.dumps(dict(row)).encode() + b"\n")
            count += 1
    return count


def restore_backup(source: Path, folder: Path, database: str | None = None) -> int:
    """Make a project from a backup; returns the number of rows.

    It is made beside `folder` under another name and moved there when it is complete: if it is killed in between, there
    is no project, and the next attempt clears away what is left.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already: expected a new or an empty folder")
    folder = folder.resolve()
    made = folder.with_name(f".{folder.name}.restoring")
    try:
        archive = zipfile.ZipFile(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from error
    except _DAMAGED as error:
        raise InputError(f"{source}: not a backup: {error}") from error
    with archive:
        _refuse_bombs(archive, source)
        settings, secret = _read_head(archive, source)
        remove_files(made)
        project = Project.create(made, replace(settings, database=database), secret)
        try:
            _extract_media(project, archive)
            if INSTRUCTIONS in archive.namelist():
                set_instructions(project, archive.read(INSTRUCTIONS).decode())
            if SCORES in archive.namelist():
                with private_file(project.folder / SCORES) as file:
                    file.write(archive.read(SCORES))
            count = _load(project, archive)
        except BaseException as error:
            project.discard()
            why = _why_not(error, source, folder)
            if why is not None:
                raise InputError(why) from error
            raise
        project.close()
    try:
        made.rename(folder)
        sync_directory(folder.parent)
    except OSError as error:
        Project.open(made).discard()  # the backup is still there, and the next attempt would remove it anyway
        raise InputError(f"{folder}: cannot be made: {error.strerror}; nothing was restored") from error
    return count


def _why_not(error: BaseException, source: Path, folder: Path) -> str | None:
    """Whether the backup is to blame, or the database or disk that should hold it; None: neither."""
    if isinstance(error, OSError | OperationalError):
        why = getattr(error, "strerror", None) or first_line(error)
        return f"{folder}: cannot be made: {why}; nothing was restored"
    return (
        f"{source}: a damaged backup: {first_line(error)}" if isinstance(error, (*_DAMAGED, SQLAlchemyError)) else None
    )


def _refuse_bombs(archive: zipfile.ZipFile, source: Path) -> None:
    """Ours hold media as they are and rows as text: nothing shrinks to a hundredth, nor is listed twice."""
    names = archive.namelist()
    packed, unpacked = source.stat().st_size, sum(one.file_size for one in archive.infolist())
    if unpacked > MOST_GROWTH * packed + MANY_BYTES or len(set(names)) < len(names):
        raise InputError(
            f"{source}: {packed:,} bytes that would become {unpacked:,}: not a backup of ours "
            f"(expected at most {MOST_GROWTH} times as many)"
        )


def _read_head(archive: zipfile.ZipFile, source: Path) -> tuple[Any, bytes | None]:
    """The settings and the secret; a backup without one gets a new one."""
    try:
        head = json.loads(archive.read("backup.json"))
        if head.get("format") != FORMAT["format"] or head.get("revision") not in READABLE:
            known, found = " or ".join(READABLE), head.get("revision")
            raise InputError(
                f"{source}: expected a backup of revision {known}, got {found}: was it made by a newer Shortlist?"
            )
        secret = archive.read(SECRET) if SECRET in archive.namelist() else None
        return parse_settings(archive.read(SETTINGS).decode(), source), secret
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source}: not a backup of ours: {error}") from error


def _load(project: Project, archive: zipfile.ZipFile) -> int:
    """All rows; tables that came later than an older backup stay empty."""
    count, older = 0, json.loads(archive.read("backup.json"))["revision"] < REVISION
    with project.store.write() as connection:
        packed = set(archive.namelist())
        for table in tables():
            name = f"tables/{table.name}.jsonl"
            if older and name not in packed:
                continue
            with archive.open(name) as file:
                for batch in _batches(file):
                    if table is credentials:
                        batch = _renamed_role(batch)
                    connection.execute(insert(table), batch)
                    count += len(batch)
            if not project.store.is_sqlite and table.autoincrement_column is not None:
                _advance(connection, table)
    return count


def _renamed_role(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Until revision 0004 an owner was an "admin"."""
    return [row | {"role": "owner"} if row["role"] == "admin" else row for row in rows]


def _batches(file: Any) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for line in io.TextIOWrapper(file, "utf-8"):
        batch.append(json.loads(line))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _advance(connection: Connection, table: Table) -> None:
    """PostgreSQL numbers rows by a sequence, which explicit ids do not advance."""
    last = connection.execute(select(func.max(table.c.id))).scalar()
    if last is not None:
        connection.execute(select(func.setval(func.pg_get_serial_sequence(table.name, "id"), last)))


def _extract_media(project: Project, archive: zipfile.ZipFile) -> None:
    """Only to names that a backup of ours has: one from a stranger must not write elsewhere."""
    for name in archive.namelist():
        if not name.startswith("media/"):
            continue
        if not _MEDIA_NAME.fullmatch(name):
            raise InputError(f"a damaged backup: the name {name!r} is not one of ours")
        target = project.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as packed, target.open("wb") as file:
            shutil.copyfileobj(packed, file)
    os.sync()


# -- scheduled ---------------------------------------------------------------------------------------------------------

BACKUPS = "backups"
_PERIOD = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class Schedule:
    """A backup every so many seconds, and how many to keep."""

    seconds: float
    keep: int


def read_period(words: str) -> float:
    """Seconds from words such as 30m, 1h or 1d."""
    found = _PERIOD.fullmatch(words.strip())
    if found is None:
        raise InputError(f"--backup-every {words!r}: expected a number and s, m, h or d, such as 1h")
    return float(found[1]) * _SECONDS[found[2]]


def last_backup(folder: Path) -> float | None:
    """When the newest scheduled backup was written."""
    times = [path.stat().st_mtime for path in (folder / BACKUPS).glob("*.zip")]
    return max(times, default=None)


@contextmanager
def backing_up(project: Project, schedule: Schedule | None) -> Iterator[None]:
    """Backups by a thread, into a folder of the project, until the block ends."""
    if schedule is None:
        yield
        return
    stop = threading.Event()
    threading.Thread(target=_keep_backing_up, args=(project, schedule, stop), name="backups", daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def _keep_backing_up(project: Project, schedule: Schedule, stop: threading.Event) -> None:
    last = last_backup(project.folder)
    while not stop.wait(0 if last is None else max(0.0, last + schedule.seconds - time.time())):
        last = time.time()
        try:
            back_up(project, schedule.keep)
        except Exception as error:  # a full disk now may have room in an hour
            fields = {"error": f"{type(error).__name__}: {first_line(error)}"[:300]}
            LOGGER.error("a backup failed", extra={"fields": fields})


def back_up(project: Project, keep: int | None) -> Path:
    """Write one backup beside the others and remove the oldest beyond `keep`; None: all are kept."""
    folder = project.folder / BACKUPS
    folder.mkdir(mode=0o700, exist_ok=True)
    out = folder / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.zip"
    saved = write_backup(project, out)
    if saved.missing:
        LOGGER.error("a backup lacks files", extra={"fields": {"missing": len(saved.missing)}})
    for old in [] if keep is None else sorted(folder.glob("*.zip"))[:-keep]:
        old.unlink(missing_ok=True)
    return out

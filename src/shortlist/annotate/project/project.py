"""A project folder: project.json, the secret, the media, the SQLite file (unless the database is elsewhere).

And instructions for annotators and scores of another model, if there are any.
"""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from sqlalchemy import delete, select
from sqlalchemy.exc import DBAPIError

from shortlist.annotate.db.checking import check_rows
from shortlist.annotate.db.schema import Credential, Item, LabelClass, tables
from shortlist.annotate.db.store import Store, first_line, sqlite_url
from shortlist.annotate.project.alone import alone
from shortlist.annotate.project.score import read_score
from shortlist.annotate.project.stats import Stats
from shortlist.annotate.queue.chooser import Chooser, Current, UniformChooser
from shortlist.annotate.queue.pinned import Pinned
from shortlist.annotate.queue.queue import Queue
from shortlist.annotate.queue.ways import Comparing
from shortlist.errors import InputError
from shortlist.internal.files import sync_directory

SETTINGS, SECRET, DATABASE, MEDIA, LIVE = "project.json", "secret.key", "annotations.db", "media", "live"
INSTRUCTIONS, SCORES = "instructions.txt", "scores.npz"
UNFINISHED = ".unfinished"  # there while `init` fills the project


@dataclass(frozen=True)
class Settings:
    """What `init` was told, and what an owner has changed since.

    Attributes:
        title: what people see above the questions.
        size: classes on a shortlist; of a policy that chooses the size, at most.
        overlap: how many people are asked about an item.
        gold_every: about one question in so many is about a gold item.
        database: a PostgreSQL URL; None: SQLite in the folder.
        live: the settings of the model that chooses the lists (`live.plan`); None: uniform lists.
        typing: whether classes may be typed that are not on the list; None: only where a model chooses the lists.
        compare: ask a third of the questions each by the full list, by a search and by a shortlist.
        pinned: the number of a class that is on every list.
        text_column: that of the first table of items; later tables that have it are read by it, too.
        item_column: that of the first table; later tables have it, too.
    """

    title: str
    size: int
    overlap: int = 1
    gold_every: int = 10
    database: str | None = None
    live: dict[str, Any] | None = None
    typing: bool | None = None
    compare: bool = False
    pinned: int | None = None
    text_column: str | None = None
    item_column: str | None = None

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise InputError("title: expected some text")
        for name, least in (("size", 1), ("overlap", 1), ("gold_every", 2)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= 1_000_000:
                raise InputError(f"{name} {value!r}: expected a whole number of at least {least}")
        if self.compare and self.typing is False:
            raise InputError("ways to ask cannot be compared without typing: a search among all classes is one of them")


@dataclass(frozen=True)
class Project:
    """An open project."""

    folder: Path
    settings: Settings
    store: Store
    secret: bytes

    @property
    def media(self) -> Path:
        """The folder below which all files of items are."""
        return self.folder / MEDIA

    @property
    def live(self) -> Path:
        """The folder of the model that chooses the shortlists, if one does or did."""
        return self.folder / LIVE

    @classmethod
    def create(cls, folder: Path, settings: Settings, secret: bytes | None = None) -> "Project":
        """Make the folder (it may exist, but not hold a project) with a fresh secret and empty tables."""
        _check_none(folder)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / MEDIA).mkdir(mode=0o700)
            _write_private(folder / SECRET, secret or secrets.token_hex(32).encode())
            store = _open_empty(_url(folder, settings))
            # the settings make it a project, so they come last; they may hold the database's password
            _write_private(folder / SETTINGS, (json.dumps(asdict(settings), indent=2) + "\n").encode())
        except BaseException as error:
            remove_files(folder)
            if isinstance(error, OSError):
                raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
            raise
        return cls(folder, settings, store, _secret(folder))

    @classmethod
    def open(cls, folder: Path, share: int = 1) -> "Project":
        """Open what `create` made; `share`: how many processes share the database's connections.

        If its secret was removed, a new one is made, and nobody stays signed in.
        """
        if (folder / UNFINISHED).exists():
            raise InputError(f"{folder}: `shortlist annotate init` did not finish here: run it again")
        settings, known = read_settings(folder), (folder / SECRET).exists()
        project = cls(folder, settings, Store.open(_url(folder, settings), share), _secret(folder))
        if not known:
            with project.store.write() as connection:
                connection.execute(delete(Credential))
        return project

    def queue(self, chooser: Chooser | None = None, **options: Any) -> Queue:
        """The queue, with uniform shortlists unless another chooser is given."""
        chooser, typing = self.lists(chooser)
        return Queue(self.store, Current(chooser), gold_every=self.settings.gold_every, typing=typing, **options)

    def lists(self, chooser: Chooser | None) -> tuple[Chooser, bool]:
        """What chooses the lists by the settings, around `chooser` if given; and whether classes may be typed."""
        typing = chooser is not None if self.settings.typing is None else self.settings.typing
        chooser = chooser or UniformChooser(self.settings.size)
        if self.settings.pinned is not None:
            chooser = Pinned(chooser, self.settings.pinned)
        if self.settings.compare:
            chooser, typing = Comparing(chooser), True
        return chooser, typing

    def with_settings(self, changes: Mapping[str, Any]) -> Settings:
        """The settings with these changed, checked."""
        return replace(self.settings, **changes)

    def store_settings(self, settings: Settings) -> None:
        """Write the settings down; this open project has them from now on, others when they are opened."""
        _write_private(self.folder / SETTINGS, (json.dumps(asdict(settings), indent=2) + "\n").encode())
        self.take_settings(settings)

    def take_settings(self, settings: Settings) -> None:
        """Use these settings from now on: another process wrote them down."""
        object.__setattr__(self, "settings", settings)

    def status(self) -> dict[str, Any]:
        """Progress, annotators, agreement, the model's score: what the admin page shows."""
        return {**Stats(self.store).status(), "score": read_score(self.live)}

    def check(self) -> list[str]:
        """What is wrong with the database, its rows and the files of items, one line each."""
        found = self.store.check()
        if found:
            return found  # rows cannot be trusted to be read
        with self.store.read() as connection:
            files = connection.execute(select(Item.id, Item.file).where(Item.file.is_not(None)).order_by(Item.id)).all()
        missing = [f"item {key}: its file is missing" for key, file in files if not (self.media / str(file)).is_file()]
        return [*check_rows(self.store), *missing]

    def discard(self) -> None:
        """Remove what `create` made and everything that came in since."""
        if not self.store.is_sqlite:
            with self.store.write() as connection:
                for table in reversed(tables()):
                    connection.execute(delete(table))
        self.close()
        remove_files(self.folder)

    def close(self) -> None:
        """Close the database."""
        self.store.close()

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.close()
        if isinstance(error, DBAPIError):  # a full disk, a server that is gone
            raise InputError(f"{self.folder}: the database: {first_line(error)}") from error


def _open_empty(url: str) -> Store:
    store = Store.open(url)
    with store.read() as connection:
        taken = connection.execute(select(LabelClass.id).limit(1)).scalar() is not None
    if taken:
        store.close()
        raise InputError("this database already holds a project: give another one")
    return store


def remove_files(folder: Path) -> None:
    """Remove what makes `folder` a project, and the folder if nothing else is in it."""
    shutil.rmtree(folder / MEDIA, ignore_errors=True)
    for name in (SETTINGS, SECRET, INSTRUCTIONS, SCORES, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # not empty: it was there before
        folder.rmdir()


def read_settings(folder: Path) -> Settings:
    """The settings of the project in `folder`."""
    path = folder / SETTINGS
    try:
        return parse_settings(path.read_text(encoding="utf-8"), path)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "is a file, expected the folder of a project" if folder.is_file() else "holds no project"
        raise InputError(f"{folder} {what}: make one with `shortlist annotate init`") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def parse_settings(content: str, where: Path) -> Settings:
    """The settings written in `content`."""
    try:
        return Settings(**json.loads(content))
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: not the settings of a project: {error}") from error


def _url(folder: Path, settings: Settings) -> str:
    if settings.database:
        return settings.database
    path = (folder / DATABASE).resolve()
    # SQLite gives the files beside it the same mode; a folder that was there before may be open to others
    if not path.exists():
        path.touch(mode=0o600)
    elif path.stat().st_mode & 0o077:
        with suppress(OSError):
            path.chmod(0o600)
    return sqlite_url(path)


@contextmanager
def unfinished(folder: Path) -> Iterator[None]:
    """Marks `folder` until the block ends: killed in between, it holds no project, and the next `init` begins anew."""
    left = (folder / UNFINISHED).exists()
    if not left:
        _check_none(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(folder / UNFINISHED, f"another `shortlist annotate init` is at work in {folder}"):
            if left:
                _clear(folder)
            try:
                yield
            finally:
                (folder / UNFINISHED).unlink(missing_ok=True)
    except BaseException as error:
        with suppress(OSError):  # not empty: it was there before
            folder.rmdir()
        if isinstance(error, OSError | DBAPIError):
            why = getattr(error, "strerror", None) or first_line(error)
            raise InputError(f"{folder}: cannot be made: {why}") from error
        raise


def _clear(folder: Path) -> None:
    """Remove what an `init` that was killed has left."""
    if (folder / SETTINGS).exists():
        settings = read_settings(folder)
        Project(folder, settings, Store.open(_url(folder, settings)), b"").discard()
    remove_files(folder)


def _check_none(folder: Path) -> None:
    if any((folder / name).exists() for name in (SETTINGS, DATABASE, MEDIA)):
        raise InputError(
            f"{folder} already holds a project: add items with `shortlist annotate add`, or remove it to begin anew"
        )
    for name in (SECRET, INSTRUCTIONS, SCORES):  # they would be replaced, or removed with a project that fails
        if (folder / name).exists():
            raise InputError(f"{folder} holds a file {name}, which is the name of a project's own: give another folder")


def _secret(folder: Path) -> bytes:
    """The signing secret; a new one is made if it was removed, which ends every invite link."""
    path = folder / SECRET
    if not path.exists():
        _write_private(path, secrets.token_hex(32).encode())
    if path.stat().st_mode & 0o077:
        raise InputError(f"{path} can be read by others: expected mode 0600 (chmod 600 {path})")
    value = path.read_bytes().strip()
    if len(value) < 32:
        raise InputError(f"{path} is too short for a secret: remove it and a new one is made")
    return value


def check_target(path: Path) -> None:
    """Refuse what cannot be written as a file, before any work is done."""
    if not path.parent.is_dir():
        what = "a file, expected a folder" if path.parent.exists() else "no such folder"
        raise InputError(f"{path.parent}: {what}")
    if path.is_dir():
        raise InputError(f"{path}: a folder, expected the name of a file")
    if path.exists() and not path.is_file():  # a new file would take its place: root would lose /dev/null
        raise InputError(f"{path}: a device or a pipe, expected the name of a file")


@contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that only its owner can read, from the first byte on; it takes its place when the block ends well.

    `files.atomic_path` gives its files the usual mode, which is too open for a secret.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")  # mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        temporary.replace(path)
        sync_directory(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a full disk
            error.filename = str(path)
        raise


def _write_private(path: Path, content: bytes) -> None:
    with private_file(path) as file:
        file.write(content)

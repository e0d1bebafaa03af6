"""A project folder: project.json, the secret, the SQLite file (unless the database is elsewhere) and the media."""

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shortlist.annotate.chooser import UniformChooser
from shortlist.annotate.queue import Queue
from shortlist.annotate.store import Store, sqlite_url
from shortlist.errors import InputError

SETTINGS, SECRET, DATABASE, MEDIA = "project.json", "secret.key", "annotations.db", "media"


@dataclass(frozen=True)
class Settings:
    """What `init` was told. `database` is None for the SQLite file in the folder."""

    title: str
    size: int
    overlap: int = 1
    gold_every: int = 10
    database: str | None = None

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise InputError("title: expected some text")
        for name, least in (("size", 1), ("overlap", 1), ("gold_every", 2)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= 1_000_000:
                raise InputError(f"{name} {value!r}: expected a whole number of at least {least}")


@dataclass(frozen=True)
class Project:
    """An open project."""

    folder: Path
    settings: Settings
    store: Store
    secret: bytes

    @property
    def media(self) -> Path:
        """The one root below which item files are."""
        return self.folder / MEDIA

    @classmethod
    def create(cls, folder: Path, settings: Settings) -> "Project":
        """Make the folder (it may exist, but not hold a project) with fresh secrets and empty tables."""
        if (folder / SETTINGS).exists():
            raise InputError(f"{folder} already holds a project: add items with `shortlist annotate add`")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MEDIA).mkdir(exist_ok=True)
        _write_private(folder / SECRET, secrets.token_hex(32).encode())
        store = Store.open(_url(folder, settings))
        # the settings make it a project, so they come last; they may hold the database's password
        _write_private(folder / SETTINGS, (json.dumps(asdict(settings), indent=2) + "\n").encode())
        return cls(folder, settings, store, _secret(folder))

    @classmethod
    def open(cls, folder: Path) -> "Project":
        """Open what `create` made."""
        settings = read_settings(folder)
        return cls(folder, settings, Store.open(_url(folder, settings)), _secret(folder))

    def queue(self, **options: Any) -> Queue:
        """The queue with the project's policy."""
        return Queue(self.store, UniformChooser(self.settings.size), gold_every=self.settings.gold_every, **options)

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_settings(folder: Path) -> Settings:
    """The settings of the project in `folder`."""
    path = folder / SETTINGS
    try:
        return Settings(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise InputError(f"{folder} holds no project: make one with `shortlist annotate init`") from error
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _url(folder: Path, settings: Settings) -> str:
    return settings.database or sqlite_url((folder / DATABASE).resolve())


def _secret(folder: Path) -> bytes:
    """The signing secret; made anew if it was removed (which ends every invite link), never guessable."""
    path = folder / SECRET
    if not path.exists():
        _write_private(path, secrets.token_hex(32).encode())
    if path.stat().st_mode & 0o077:
        raise InputError(f"{path} can be read by others: expected mode 0600 (chmod 600 {path})")
    value = path.read_bytes().strip()
    if len(value) < 32:
        raise InputError(f"{path} is too short for a secret: remove it and a new one is made")
    return value


def _write_private(path: Path, content: bytes) -> None:
    """Write for the owner's eyes only, from the first byte on."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(path)

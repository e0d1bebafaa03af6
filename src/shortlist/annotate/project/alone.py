"""Locks that end with their process: one `init` at a time, one server of a SQLite project, where it is served."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from shortlist.errors import InputError


@contextmanager
def alone(path: Path, otherwise: str) -> Iterator[None]:
    """Hold the lock of the file `path`, made if it is not there; refuse with `otherwise` if somebody has it."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        if not _locked(file):
            holder = file.read(20).strip()
            raise InputError(f"{otherwise}{f' (process {holder})' if holder else ''}")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


@contextmanager
def announcing(path: Path, words: str) -> Iterator[None]:
    """Leave `words` in the file `path` for `announced`, unless another process has left its own there."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        if _locked(file):
            file.truncate(0)
            file.write(words)
            file.flush()
        yield


def announced(path: Path) -> str | None:
    """What a process that still runs has left there; None if there is none, as after one was killed."""
    try:
        with path.open("r+") as file:
            return None if _locked(file) else file.read() or None
    except OSError:
        return None


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

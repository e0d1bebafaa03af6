"""Locks that end with their process: one `init` at a time, one server of a SQLite project, where it is served."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
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
    """Leave `words` for `announced`: in the file `path`, or in one beside it if another process has that."""
    for number in count(1):
        place = path if number == 1 else path.with_name(f"{path.name}.{number}")
        with os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            if _locked(file):
                file.truncate(0)
                file.write(words)
                file.flush()
                yield
                return


def announced(path: Path) -> list[str]:
    """What the processes that still run have left there, without what a killed one has left."""
    found = []
    for place in sorted(path.parent.glob(f"{path.name}*")):
        with suppress(OSError), place.open("r+") as file:
            if not _locked(file) and (words := file.read()):
                found.append(words)
    return found


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

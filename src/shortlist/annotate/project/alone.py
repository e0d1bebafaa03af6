"""Locks that end with their process: one `init` at a time, one server of a SQLite project."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shortlist.errors import InputError


@contextmanager
def alone(path: Path, otherwise: str) -> Iterator[None]:
    """Hold the lock of the file `path`, made if it is not there; refuse with `otherwise` if somebody has it."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = file.read(20).strip()
            raise InputError(f"{otherwise}{f' (process {holder})' if holder else ''}") from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield

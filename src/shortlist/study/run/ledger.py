"""The ledger: one JSON object per line, one line per run, appended whole or not at all.

A file may be read and written by many processes at once: a lock on the file itself orders them, and every append looks
at what others wrote since. A line is written by one call and is on the disk when `append` returns. A process that dies
while writing leaves at most part of a line; the next to open the file cuts it off (or skips it, without the right to
write) and says so.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shortlist.errors import InputError
from shortlist.internal.files import sync_directory

Row = dict[str, Any]
FOLDER = "ledger"
"""Inside the folder of results."""
TUNING, SEARCH = "tuning", "search"
RUN = "run"
"""The kind of rows that hold a trial of a cell; runs that settings are chosen by are of another kind."""
_PLACE = frozenset(("dataset", "line", "protocol"))
_RAN = frozenset(("last", "mean_of_last_ten", "failed", "seconds", "recipe", "config", "accuracy"))
_WHERE = frozenset(("hardware", "versions", "commit", "date"))
NEEDED = {RUN: _PLACE | {"classes", "size", "trial"} | _RAN | _WHERE, "choice": _PLACE | {"settings", "source"}}
"""What rows of these kinds must have. (`plan.recipes` has the kind "choice", but needs torch.)"""


class Ledger:
    """One file of the ledger.

    Args:
        path: a .jsonl file, made by the first append.
        say: told of repairs.
    """

    def __init__(self, path: Path, say: Callable[[str], None] = lambda line: None) -> None:
        self.path, self.say = path, say
        self._rows: dict[str, Row] = {}
        self._read_to, self._lines = 0, 0
        self.refresh()

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> Row | None:
        """The row of a key."""
        return self._rows.get(key)

    def rows(self) -> list[Row]:
        """All rows, in the order of the file."""
        return list(self._rows.values())

    def refresh(self) -> None:
        """Read what was added since."""
        if not self.path.exists():
            self._rows, self._read_to, self._lines = {}, 0, 0
            return
        with self._locked(os.O_RDONLY, fcntl.LOCK_SH) as file:
            rest = self._read_new(file)
        if rest and os.access(self.path, os.W_OK):
            with self._locked(os.O_RDWR | os.O_APPEND, fcntl.LOCK_EX) as file:
                self._repair(file, self._read_new(file))  # read again: another process may have repaired it by now
        elif rest:
            self.say(f"{self.path}: the last line is not whole ({len(rest)} bytes) and is skipped")

    def append(self, row: Mapping[str, Any]) -> bool:
        """Add a row by its `key`; False where the key is there already (then nothing is written).

        Raises:
            InputError: the file cannot be written, or a line of it is no row.
        """
        # in ASCII: no character that some reader would take for the end of the line
        line = json.dumps(row, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(os.O_RDWR | os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as file:
            self._repair(file, self._read_new(file))
            if row["key"] in self._rows:
                return False
            _write_whole(file, line, self.path)
            self._rows[row["key"]] = json.loads(line)
            self._read_to += len(line)
            self._lines += 1
        if new:
            sync_directory(self.path.parent)
        return True

    @contextmanager
    def _locked(self, flags: int, lock: int) -> Iterator[int]:
        try:
            file = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from error
        try:
            fcntl.flock(file, lock)  # freed by the kernel, also when the process is killed
            yield file
        finally:
            os.close(file)

    def _read_new(self, file: int) -> bytes:
        """Read the whole lines added since the last time; returns the bytes after the last of them."""
        size = os.fstat(file).st_size
        if size < self._read_to:  # somebody put an older file in its place
            self._rows, self._read_to, self._lines = {}, 0, 0
        content = _read(file, self._read_to, size - self._read_to)
        end = content.rfind(b"\n") + 1
        for line in content[:end].splitlines():
            self._lines += 1
            row = _row_of(line)
            if row is None:
                raise InputError(f"{self.path}: line {self._lines} is no row of a ledger: {line[:40]!r}")
            self._check(row, self._lines)
            if row["key"] in self._rows:
                self.say(f"{self.path}: line {self._lines} repeats the run {row['key']} and is skipped")
            self._rows.setdefault(row["key"], row)
        self._read_to += end
        return content[end:]

    def _check(self, row: Row, line: int) -> None:
        """Refuse a row that lacks what its readers need."""
        kind = str(row.get("kind"))
        if lacking := sorted(NEEDED.get(kind, frozenset()) - row.keys()):
            raise InputError(f"{self.path}: line {line} is no row of a ledger: a {kind} without {', '.join(lacking)}")

    def _repair(self, file: int, rest: bytes) -> None:
        """Make the file end with a whole line again."""
        if not rest:
            return
        row = _row_of(rest)
        if row is not None:  # only the end of the line is missing
            self._check(row, self._lines + 1)
            _write_whole(file, b"\n", self.path)
            self._rows.setdefault(row["key"], row)
            self._read_to += len(rest) + 1
            self._lines += 1
            self.say(f"{self.path}: the last line had no end; repaired")
            return
        os.ftruncate(file, self._read_to)
        os.fsync(file)
        self.say(f"{self.path}: the last line was not whole ({len(rest)} bytes) and was cut off; its run is done again")


def _row_of(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:  # also for bytes that are no UTF-8
        return None
    return row if isinstance(row, dict) and isinstance(row.get("key"), str) else None


def _read(file: int, start: int, count: int) -> bytes:
    parts = []
    while count > 0:
        part = os.pread(file, count, start)
        if not part:
            break
        parts.append(part)
        start, count = start + len(part), count - len(part)
    return b"".join(parts)


def _write_whole(file: int, content: bytes, path: Path) -> None:
    """One write; on a full disk the file is put back to what it was."""
    before = os.fstat(file).st_size
    try:
        written = os.write(file, content)
        if written != len(content):
            raise OSError(28, "No space left on device")
        os.fsync(file)
    except OSError as error:
        os.ftruncate(file, before)
        raise InputError(f"{path} could not be written: {error.strerror or error}") from error


class Ledgers:
    """All files of a folder of results: one per dataset, and one each for tuning and search."""

    def __init__(self, results: Path, say: Callable[[str], None] = lambda line: None) -> None:
        self.folder, self.say = results / FOLDER, say
        self._open: dict[str, Ledger] = {}

    def of(self, name: str) -> Ledger:
        """The ledger of a dataset, or `tuning` or `search`."""
        if name not in self._open:
            self._open[name] = Ledger(self.folder / f"{name}.jsonl", self.say)
        return self._open[name]

    def datasets(self) -> list[str]:
        """The datasets that have a file."""
        names = sorted(path.stem for path in self.folder.glob("*.jsonl"))
        return [name for name in names if name not in (TUNING, SEARCH)]

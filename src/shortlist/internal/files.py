"""Files that are written whole or not at all, CSV with any separator and long fields, the user's cache."""

import csv
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shortlist.errors import InputError


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`. It replaces `path` when the block ends, and is removed if the block fails.

    The bytes are on disk (fsync) before the name changes, so a crash leaves the old file or the new one, never a part.
    As with a plain write, a link stays a link (its target is replaced) and an existing file keeps its mode.
    """
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")
    try:
        # not tempfile, whose files are private: results have the mode of any other new file
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        with suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
        sync_directory(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and str(error.filename) == str(temporary):
            error.filename = str(path)  # nobody knows the temporary name
        raise


def atomic_write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write `content` (text as UTF-8) to `path` atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without the byte order mark that Excel and Notepad write."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def make_folder(path: Path) -> None:
    """Make a folder and its parents, unless they are there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made a folder: {error.strerror or error}") from error


def allow_long_fields() -> None:
    """Let csv read fields of more than 128 KB: a long text, the names of ten thousand classes.

    The limit is one of the whole process. It always gets the same value and is never reset, so that threads agree.
    """
    csv.field_size_limit(2**31 - 1)


def separator_of(header: str) -> str:
    r"""What separates the columns of a .csv file, judging by its first line.

    Commas; or semicolons or tabs, which spreadsheets write in countries with decimal commas, if one of them separates
    columns and commas do not.

    >>> [separator_of(line) for line in ("text,a;b", "text;label", "text\tlabel", '"a;b"', "a;b\tc")]
    [',', ';', '\t', ',', ',']
    """
    allow_long_fields()
    try:
        counts = {mark: len(next(csv.reader([header], delimiter=mark), ())) for mark in ",;\t"}
    except csv.Error:  # reading the file will say what is wrong
        return ","
    others = [mark for mark in ";\t" if counts[mark] > 1]
    return others[0] if counts[","] < 2 and len(others) == 1 else ","


def first_row(path: Path) -> int:
    """The number that the first item's row of a table has in an editor or a spreadsheet: a header comes before it."""
    return 2 if path.suffix.lower() in (".csv", ".tsv", ".xlsx") else 1


def cache_folder() -> Path:
    """Shortlist's cache, where pooch would put it; machines that only train need not have pooch."""
    try:
        import pooch
    except ImportError:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shortlist"
    return Path(pooch.os_cache("shortlist"))


def sync_directory(directory: Path) -> None:
    """Make a rename inside `directory` survive a power cut, if the system can."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

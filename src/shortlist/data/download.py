"""Downloads that continue where they broke off, checked before they count (pooch, with a downloader of ours)."""

from __future__ import annotations

import http.client
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from shortlist.data.source import RemoteFile

TIMEOUT = 20.0
ATTEMPTS = 3
_CHUNK = 1 << 16


class DownloadError(OSError):
    """A file could not be had; the message is a short reason."""


def download(file: RemoteFile, target: Path) -> None:
    """Fetch `file` to `target` from the first address that gives it, whole and with the right checksum.

    What arrived before a break is kept beside the target as NAME.part, and the next call asks only for the rest.

    Raises:
        DownloadError: where no address gives it.
    """
    if os.environ.get("SHORTLIST_OFFLINE"):
        raise DownloadError("not downloaded, as SHORTLIST_OFFLINE is set")
    try:
        import pooch
    except ImportError as error:
        raise DownloadError("cannot be downloaded without the package pooch") from error
    pooch.get_logger().setLevel("WARNING")  # its notes would break the progress bar
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(target):
            if not target.is_file():  # another process may have brought it while we waited
                _from_any(file, target)
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(f"cannot be written to {target.parent}: {error.strerror or error}") from error


def _from_any(file: RemoteFile, target: Path) -> None:
    reasons = []
    for url in file.urls:
        try:
            return _retrieve(url, file, target)
        except DownloadError as error:
            reasons.append(f"{urllib.parse.urlsplit(url).netloc}: {error}")
    raise DownloadError(f"cannot be downloaded ({'; '.join(reasons)})")


def _retrieve(url: str, file: RemoteFile, target: Path) -> None:
    import pooch

    while True:
        downloader = ResumingDownloader(target.with_name(target.name + ".part"))
        try:
            pooch.retrieve(url, file.checksum, file.name, str(target.parent), downloader=downloader)
            return
        except ValueError as error:  # pooch's word for a wrong checksum; it has removed the file
            if not downloader.resumed:
                raise DownloadError("what it sends has the wrong checksum") from error
            # the part was of something else, or damaged: begin again without it


class ResumingDownloader:
    """A downloader for pooch that keeps what arrived in `part` and asks for the rest by an HTTP Range request.

    Attributes:
        resumed: whether bytes of an earlier call are in the file.
    """

    def __init__(self, part: Path) -> None:
        self.part = part
        self.resumed = part.is_file() and part.stat().st_size > 0

    def __call__(self, url: str, output_file: str, pooch: Any = None, check_only: bool = False) -> None:
        """Download `url` to `output_file`."""
        for attempt in range(ATTEMPTS):
            try:
                self._continue(url)
                break
            except urllib.error.HTTPError as error:
                raise DownloadError(f"{error.code} {error.reason}") from error
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, urllib.error.URLError) or attempt == ATTEMPTS - 1:
                    raise DownloadError(_reason(error, self.part)) from error
                time.sleep(0.2 * 2**attempt)
        self.part.replace(output_file)

    def _continue(self, url: str) -> None:
        start = self.part.stat().st_size if self.part.is_file() else 0
        request = urllib.request.Request(url, headers={"User-Agent": "shortlist", "Accept-Encoding": "identity"})
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            response = urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            if error.code != 416 or not start:
                raise
            # the server has nothing beyond our part: it is whole, or not a part of this file at all
            if error.headers.get("Content-Range", "").rpartition("/")[2] == str(start):
                return
            self._forget()
            self._continue(url)
            return
        with response:
            if start and response.status != 206:  # it sends all of it again
                self._forget()
                start = 0
            length = response.headers.get("Content-Length")
            total = None if length is None else start + int(length)
            with self.part.open("ab") as out, _progress(self.part.stem, start, total) as show:
                got = start + _copy(response, out, show)
        if total is not None and got != total:
            raise ConnectionError(f"the connection broke off after {got:,} of {total:,} bytes")

    def _forget(self) -> None:
        self.part.unlink()
        self.resumed = False


def _copy(response: http.client.HTTPResponse, out: IO[bytes], show: Any) -> int:
    copied = 0
    while chunk := response.read(_CHUNK):
        out.write(chunk)
        copied += len(chunk)
        show(len(chunk))
    return copied


def _reason(error: BaseException, part: Path) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    text = " ".join((getattr(cause, "strerror", None) or str(cause) or type(cause).__name__).split())
    if part.is_file() and part.stat().st_size:
        return f"{text}, what arrived is kept and the next try continues"
    return text


@contextmanager
def _progress(name: str, start: int, total: int | None) -> Iterator[Any]:
    """A line on stderr that is rewritten as bytes arrive; a single note where stderr is not a terminal."""
    done, shown, out = start, 0.0, sys.stderr
    size = "" if total is None else f" of {total / 1e6:.1f} MB"
    terminal = out.isatty()
    if not terminal:
        print(f"downloading {name}{size}", file=out)

    def show(more: int) -> None:
        nonlocal done, shown
        done += more
        now = time.monotonic()
        if terminal and (now - shown > 0.1 or done == total):
            shown = now
            filled = int(30 * done / total) if total else 0
            bar = f" [{'#' * filled}{'.' * (30 - filled)}]" if total else ""
            print(f"\rdownloading {name}{bar} {done / 1e6:.1f}{size}", end="", file=out, flush=True)

    try:
        yield show
    finally:
        if terminal:
            print(file=out)


@contextmanager
def _only_one(target: Path) -> Iterator[None]:
    """Let one process at a time bring `target`; the others wait (where the system has flock)."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with target.with_name(f".{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

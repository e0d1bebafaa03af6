"""Downloads with pooch: whole files with the right checksum, or nothing."""

from __future__ import annotations

import os
import sys
import urllib.parse
from pathlib import Path

import pooch
from requests.exceptions import RequestException  # type: ignore[import-untyped, unused-ignore]  # brought by pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from shortlist.data.source import RemoteFile
from shortlist.errors import first_line

TIMEOUT = 20
RETRIES = 2
_CHUNK = 1 << 16


class DownloadError(OSError):
    """A file could not be downloaded; the message is a short reason."""


def download(file: RemoteFile, target: Path) -> None:
    """Fetch `file` to `target` from the first address that gives it, whole and with the right checksum.

    Raises:
        DownloadError: no address gives it.
    """
    if os.environ.get("SHORTLIST_OFFLINE"):
        raise DownloadError("not downloaded, as SHORTLIST_OFFLINE is set")
    pooch.get_logger().setLevel("WARNING")  # its notes would break the progress bar
    reasons = []
    for url in file.urls:
        try:
            return _retrieve(url, file, target)
        except (RequestException, ValueError) as error:  # a ValueError is pooch's word for a wrong checksum
            reasons.append(f"{urllib.parse.urlsplit(url).netloc}: {_reason(error)}")
        except OSError as error:
            raise DownloadError(f"cannot be written to {target.parent}: {error.strerror or error}") from error
    raise DownloadError(f"cannot be downloaded ({'; '.join(reasons)})")


def _retrieve(url: str, file: RemoteFile, target: Path) -> None:
    """Download from one address, with retries; the file appears by a rename, so two processes do no harm."""
    known = pooch.create(
        target.parent, "", registry={target.name: file.checksum}, urls={target.name: url}, retry_if_failed=RETRIES
    )
    bar = _Bar(file.name) if sys.stderr.isatty() else None
    if bar is None:
        print(f"downloading {file.name}", file=sys.stderr)
    try:
        known.fetch(target.name, downloader=pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK, timeout=TIMEOUT))
    finally:
        if bar is not None:
            bar.close()


def _reason(error: Exception) -> str:
    """One short line; what requests says names the address twice, and objects in memory."""
    if isinstance(error, RequestException):
        if error.response is not None:
            return f"{error.response.status_code} {error.response.reason}"
        inner: BaseException = error
        while (deeper := inner.__cause__ or inner.__context__) is not None:
            inner = deeper
        return getattr(inner, "strerror", None) or first_line(error)
    return "what it sends has the wrong checksum"


class _Bar:
    """A progress bar of rich with the methods that pooch calls."""

    total: float = 0

    def __init__(self, name: str) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
        self._bars = Progress(*columns, console=Console(stderr=True))
        self._task = self._bars.add_task(f"downloading {name}")
        self._bars.start()

    def update(self, amount: int) -> None:
        self._bars.update(self._task, advance=amount, total=self.total or None)

    def reset(self) -> None:
        self._bars.reset(self._task)

    def close(self) -> None:
        self._bars.stop()

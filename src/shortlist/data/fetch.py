"""Where the files of known datasets are: under $SHORTLIST_DATA, in the user's cache, or on the network."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from shortlist.data.source import RemoteFile
from shortlist.errors import InputError
from shortlist.internal.files import cache_folder


def folders(source: str) -> list[Path]:
    """The folders in which files of `source` are looked for, in order; the last is where downloads go."""
    found = []
    stated = os.environ.get("SHORTLIST_DATA")
    if stated:
        if not Path(stated).is_dir():
            raise InputError(f"SHORTLIST_DATA is {stated}, which is not a folder")
        found.append(Path(stated) / source)
    return [*found, cache_folder() / source]


def find(source: str, name: str) -> Path | None:
    """The first file called `name` (which may contain a /) in these folders, unopened and unchecked."""
    return next((folder / name for folder in folders(source) if (folder / name).is_file()), None)


def fetch(source: str, files: Sequence[RemoteFile]) -> list[Path]:
    """The paths of the files, checked; those that are not here are downloaded.

    Raises:
        InputError: a file is not the published one, or is missing and cannot be downloaded; it says which, and where to
            put it.
    """
    paths = {file: find(source, file.name) for file in files}
    for file, path in paths.items():
        if path is not None:
            check(path, file.checksum)
    missing = [file for file, path in paths.items() if path is None]
    for file in missing:
        from shortlist.data.download import download

        target = folders(source)[-1] / file.name
        try:
            download(file, target)
        except OSError as error:
            still = [f for f in missing if find(source, f.name) is None]
            raise InputError(_how_to_get(source, still, str(error))) from error
        paths[file] = target
    return [path for path in paths.values() if path is not None]


def check(path: Path, checksum: str) -> None:
    """Refuse a file that is not the published one."""
    algorithm, _, expected = checksum.partition(":")
    try:
        with path.open("rb") as handle:
            found = hashlib.file_digest(handle, algorithm).hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if found != expected:
        raise InputError(
            f"{path} is corrupt, truncated or not the published file:"
            f" {algorithm} {found[:12]}..., expected {expected[:12]}..."
        )


def _how_to_get(source: str, missing: Sequence[RemoteFile], reason: str) -> str:
    names = ", ".join(file.name for file in missing)
    where = folders(source)[0]
    hint = "" if os.environ.get("SHORTLIST_DATA") else f" or into the folder {source} of $SHORTLIST_DATA"
    addresses = " ".join(file.urls[0] for file in missing)
    plural, it = ("are", "them") if len(missing) > 1 else ("is", "it")
    return f"{source}: {names} {plural} missing and {reason}: put {it} into {where}{hint}, from {addresses}"

"""Files that a browser sends to make a project of: a table, or pictures and sounds, one by one or as a .zip.

Names come from elsewhere: everything is stored below one folder, and only pictures and sounds are.
"""

import shutil
import zlib
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile

from shortlist.annotate.problems import TooLarge
from shortlist.annotate.project.media import AUDIO_ENDINGS, IMAGE_ENDINGS
from shortlist.errors import InputError

MOST_UNPACKED = 8 << 30
LONGEST_NAME = 200
MEDIA = IMAGE_ENDINGS | AUDIO_ENDINGS


def place_of(name: str, folder: Path) -> Path | None:
    """Where below `folder` the picture or sound of this name belongs; None for anything else."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    hidden = any(part.startswith((".", "/", "__MACOSX")) or len(part) > LONGEST_NAME for part in parts)
    if not parts or hidden or "\0" in name or Path(parts[-1]).suffix.lower() not in MEDIA:
        return None
    place = folder.joinpath(*parts)
    return place if place.is_relative_to(folder) else None  # C:a.png, on Windows


def unpack(archive: Path, folder: Path) -> None:
    """The pictures and sounds of a .zip, below `folder`."""
    try:
        with ZipFile(archive) as zipped:
            entries = [entry for entry in zipped.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > MOST_UNPACKED:
                raise TooLarge("too_large", f"unpacked, the .zip is larger than {MOST_UNPACKED >> 30} GB")
            for entry in entries:
                place = place_of(entry.filename, folder)
                if place is not None:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with zipped.open(entry) as packed, place.open("wb") as file:
                        shutil.copyfileobj(packed, file)
    except (BadZipFile, RuntimeError, zlib.error, OSError) as error:  # RuntimeError: it wants a password
        raise InputError(f"the .zip cannot be read: {str(error).splitlines()[0][:200]}") from error


def top(folder: Path) -> Path:
    """The folder that has the files: a .zip or a chosen folder often wraps them in one folder or more."""
    inside = list(folder.iterdir())
    return top(inside[0]) if len(inside) == 1 and inside[0].is_dir() else folder

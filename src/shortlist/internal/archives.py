"""NumPy archives (.npz) that strangers made: plain arrays, and nothing in them is run."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError


def read_arrays(path: Path, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Those of the arrays wanted that an archive holds; the first of them must be there."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("it is none, or is damaged")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                found, arrays = archive.files, {name: archive[name] for name in wanted if name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(f"{path} cannot be read as an .npz archive of plain arrays: {reason}") from error
    if wanted[0] not in arrays:
        raise InputError(f"{path} has no array {wanted[0]} (it holds: {', '.join(found) or 'nothing'})")
    return arrays

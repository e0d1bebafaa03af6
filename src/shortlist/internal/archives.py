"""NumPy archives (.npz) that strangers made: plain arrays, and nothing in them is run."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.internal.reasons import reason


def read_arrays(path: Path, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Those of the arrays wanted that an archive holds; the first of them must be there.

    Raises:
        InputError: naming the file, where it is missing, damaged or no archive of plain arrays.
    """
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("it is not one, or is damaged")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                found, arrays = archive.files, {name: archive[name] for name in wanted if name in archive.files}
            for name, array in arrays.items():
                if not isinstance(array, np.ndarray):  # numpy gives the bytes of whatever else lies in the archive
                    raise ValueError(f"{name} is not an array")
    except Exception as error:  # damaged bytes make zipfile and numpy raise nearly anything
        raise InputError(f"{path} cannot be read as an .npz archive of plain arrays: {reason(error)}") from error
    if wanted[0] not in arrays:
        raise InputError(f"{path} has no array {wanted[0]} (it holds: {', '.join(found) or 'nothing'})")
    return arrays

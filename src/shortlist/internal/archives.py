"""NumPy archives (.npz) from anybody: plain arrays only, so that nothing in them is run."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import InputError
from shortlist.internal.reasons import reason


def read_arrays(path: Path, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The wanted arrays that an archive holds; the first of them must be there.

    Raises:
        InputError: names the file, if it is missing, damaged or not an archive of plain arrays.
    """
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("it is not one, or is damaged")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                found, arrays = archive.files, {name: archive[name] for name in wanted if name in archive.files}
            for name, array in arrays.items():
                if not isinstance(array, np.ndarray):  # of any other file in the archive numpy gives the bytes
                    raise ValueError(f"{name} is not an array")
    except Exception as error:  # damaged bytes make zipfile and numpy raise nearly anything
        raise InputError(f"{path} cannot be read as an .npz archive of plain arrays: {reason(error)}") from error
    if wanted[0] not in arrays:
        raise InputError(f"{path} has no array {wanted[0]} (it holds: {', '.join(found) or 'nothing'})")
    return arrays

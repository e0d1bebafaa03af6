"""Pickles of plain values and NumPy arrays, and of nothing else: a pickle may otherwise run any code."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

_reconstruct: Any = np.empty(0).__reduce__()[0]

# what a pickled array refers to, under the old and the new name of NumPy's inner module
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, only NumPy arrays are allowed") from None


def loads_arrays(data: bytes) -> Any:
    """The plain values and arrays in a pickle; strings of Python 2 come as bytes.

    Raises:
        pickle.UnpicklingError: for a pickle that is damaged or refers to anything but arrays.
    """
    try:
        return _ArraysOnly(io.BytesIO(data), encoding="bytes").load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise pickle.UnpicklingError(f"it is damaged: {type(error).__name__}: {error}") from error
